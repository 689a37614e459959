"""Reasons against a literal reading of the definitions, over sets of names instead of bit masks."""

from __future__ import annotations

from itertools import chain, combinations

import numpy as np
import pytest

from oscar_causal.data.synthetic.worlds.reasons import EXHAUSTIVE, mattering, reasons, subsets

DELTA = 0.05
Sets = dict[frozenset[int], float]


def powerset(items: list[int]) -> list[frozenset[int]]:
    return [frozenset(s) for s in chain.from_iterable(combinations(items, k) for k in range(len(items) + 1))]


def literal_role(p: Sets, present: list[int], t: int) -> tuple[str, bool, float] | None:
    """(role, necessary, largest fall) by the words of the definition; P is `p[removed types]`."""
    empty = frozenset[int]()

    def blockers(sign: int) -> set[int]:
        return {
            w
            for w in present
            if any(sign * (p[s | {w}] - p[s]) >= DELTA - 1e-9 for s in powerset(present) if w not in s)
        }

    def falls(sign: int) -> list[float]:
        allowed = [
            w
            for w in powerset([x for x in present if x != t])
            if not w or (abs(p[w] - p[empty]) <= DELTA + 1e-9 and not w & blockers(sign))
        ]
        return [sign * (p[w] - p[w | {t}]) for w in allowed]

    necessary = {sign: sign * (p[empty] - p[frozenset({t})]) >= DELTA - 1e-9 for sign in (1, -1)}
    for sign, role in ((1, "cause"), (-1, "blocker")):
        if necessary[sign]:
            return role, True, sign * (p[empty] - p[frozenset({t})])
    for sign, role in ((1, "cause"), (-1, "blocker")):
        if max(falls(sign)) >= DELTA - 1e-9:
            return role, False, max(falls(sign))
    largest = max(max(falls(1)), max(falls(-1)))
    return ("neutral", False, largest) if largest >= DELTA / 2 - 1e-9 else None


def as_sets(probs: np.ndarray, present: int) -> Sets:
    masks = subsets(present)
    return {frozenset(t for t in range(present) if m >> t & 1): float(q) for m, q in zip(masks, probs, strict=True)}


@pytest.mark.parametrize("present", [1, 2, 3, 4])
@pytest.mark.parametrize("levels", [(0.0, 1.0), (0.1, 0.13, 0.9), (0.5, 0.52, 0.54, 0.56, 0.58)])
def test_reasons_follow_the_definition(present: int, levels: tuple[float, ...]) -> None:
    rng = np.random.default_rng([present, len(levels)])
    met = set()
    for _ in range(150):
        probs = rng.choice(levels, size=2**present)
        found = {r.type: r for r in reasons(probs, present, DELTA)}
        for t in range(present):
            expected = literal_role(as_sets(probs, present), list(range(present)), t)
            got = found.get(t)
            assert (got and (got.role, got.necessary)) == (expected and expected[:2])
            met.add(expected and expected[0])
            if got is not None and got.role != "neutral":  # the contingency is a witness
                p, w = as_sets(probs, present), frozenset(got.contingency)
                assert abs(p[w] - p[frozenset()]) <= DELTA + 1e-9
                assert p[w] - p[w | {t}] == pytest.approx(got.fall)
    assert {"cause", "blocker"} <= met


def test_three_stand_ins_need_the_other_two_gone() -> None:
    probs = np.array([0.01 if mask == 7 else 0.9 for mask in subsets(3)])
    assert [(r.role, r.necessary, r.contingency) for r in reasons(probs, 3)] == [
        ("cause", False, (1, 2)),
        ("cause", False, (0, 2)),
        ("cause", False, (0, 1)),
    ]


def test_falls_of_exactly_delta_count() -> None:
    assert [r.role for r in reasons(np.array([0.3, 0.25]), 1)] == ["cause"]
    assert [r.role for r in reasons(np.array([0.3, 0.26]), 1)] == ["neutral"]
    assert reasons(np.array([0.3, 0.28]), 1) == []


def test_beyond_the_exhaustive_size_small_sets_remain() -> None:
    present = EXHAUSTIVE + 2
    masks = subsets(present)
    assert max(bin(m).count("1") for m in masks) == 3
    probs = np.array([0.9 if ~m & 3 else 0.1 for m in masks])  # types 0 and 1 stand in for each other
    assert [(r.type, r.contingency) for r in reasons(probs, present)] == [(0, (1,)), (1, (0,))]


def test_which_occurrences_mattered() -> None:
    recent = mattering(lambda kept: np.where(kept[:, 2], 0.9, 0.1), 3)
    assert recent == [2]  # only the last suffices
    assert mattering(lambda kept: np.where(kept.any(axis=1), 0.9, 0.1), 3) == [0, 1, 2]  # each suffices
    assert mattering(lambda kept: np.where(kept[:, 0] & kept[:, 1], 0.9, 0.1), 3) == [0, 1]  # two together
    assert mattering(lambda kept: np.where(kept.sum(axis=1) >= 2, 0.9, 0.1), 4) == [0, 1, 2, 3]  # any two of four
