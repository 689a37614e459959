"""Truth tables against brute force over assignments."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from oscar_causal.data.rules import And, Event, Not, Or, Rule, literal_count
from oscar_causal.discovery.contexts import Stream
from oscar_causal.graph.rules.mining import Mined
from oscar_causal.graph.rules.truth_table import TruthTable, observed_lines, rule_of, subsets


def truth(rule: Rule, present: set[str]) -> bool:
    match rule:
        case Event(name):
            return name in present
        case Not(item):
            return not truth(item, present)
        case And(items):
            return all(truth(item, present) for item in items)
        case Or(items):
            return any(truth(item, present) for item in items)
    raise AssertionError(rule)


def table(
    function: str, names: tuple[str, ...], *, sequences: int = 0, noise: float = 0.0, seed: int = 0
) -> TruthTable:
    """The table of a Python expression over the names; model and observations agree."""
    rng = np.random.default_rng(seed)
    lines = [dict(zip(names, map(bool, row), strict=True)) for row in subsets(len(names))]
    holds = np.array([bool(eval(function, {}, line)) for line in lines])  # noqa: S307
    probs = np.where(holds, 0.9, 0.05) + noise * rng.uniform(-1, 1, (12, len(holds)))
    counts = np.full(len(holds), sequences)
    return TruthTable(names, probs.clip(0, 1), counts, np.where(holds, counts, 0), 4.0)


def test_every_function_of_three_events_becomes_its_rule() -> None:
    names = ("A", "B", "C")
    for bits in range(1, 255):
        holds = np.array([bits >> line & 1 == 1 for line in range(8)])
        rule = rule_of(holds, names)
        assert rule is not None
        for line, row in enumerate(subsets(3)):
            present = {name for name, on in zip(names, row, strict=True) if on}
            assert truth(rule, present) == holds[line], (bits, rule)


def test_constant_tables_have_no_rule() -> None:
    assert rule_of(np.zeros(4, bool), ("A", "B")) is None
    assert rule_of(np.ones(4, bool), ("A", "B")) is None


@pytest.mark.parametrize(
    ("function", "kept"),
    [("A and B", {"A", "B"}), ("A", {"A"}), ("A and (B or C) and not D", {"A", "B", "C", "D"}), ("A != B", {"A", "B"})],
)
def test_bystanders_are_dropped_and_members_stay(function: str, kept: set[str]) -> None:
    full = table(function, ("A", "B", "C", "D"), sequences=2, noise=0.3)
    small = full.reduced()
    assert set(small.candidates) == kept
    rule = small.rule()
    assert rule is not None
    for row in product([False, True], repeat=4):
        values = dict(zip("ABCD", row, strict=True))
        assert truth(rule, {name for name, on in values.items() if on}) == bool(eval(function, {}, values))  # noqa: S307


def test_stray_lines_do_not_make_long_rules() -> None:
    """Three of 64 lines are turned round, each by five observed sequences."""
    clean = table("A and (B or C)", ("A", "B", "C", "D", "E", "F"), noise=0.3)
    sequences, positives = clean.sequences.copy(), clean.positives.copy()
    for line in (0b110001, 0b101000, 0b010110):
        sequences[line] += 5
        positives[line] += 5 * (not clean.holds[line])
    spoiled = TruthTable(clean.candidates, clean.probs, sequences, positives, 4.0)
    rule = spoiled.reduced().rule()
    assert rule is not None
    assert literal_count(rule) == 3


def test_without_adds_up_the_other_lines() -> None:
    full = table("A and B", ("A", "B", "C"), sequences=3, noise=0.2)
    small = full.without(1)
    assert small.candidates == ("A", "C")
    for line, (a, c) in enumerate(subsets(2)):
        halves = [int(a) | 0 << 1 | int(c) << 2, int(a) | 1 << 1 | int(c) << 2]
        assert small.sequences[line] == full.sequences[halves].sum()
        assert small.positives[line] == full.positives[halves].sum()
        np.testing.assert_allclose(small.probs[:, line], full.probs[:, halves].mean(1))


def test_observations_outvote_the_model_and_the_model_fills_the_gaps() -> None:
    probs = np.full((6, 2), 0.9)
    few, many = np.array([1, 0]), np.array([50, 0])
    nothing = np.zeros(2, int)
    assert TruthTable(("A",), probs, few, nothing, 4.0).holds.tolist() == [True, True]
    assert TruthTable(("A",), probs, many, nothing, 4.0).holds.tolist() == [False, True]


def test_more_than_three_candidates_work_in_one_direction() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        probs = rng.uniform(0, 1, (4, 32))
        zeros = np.zeros(32, int)
        holds = TruthTable(tuple("ABCDE"), probs, zeros, zeros, 4.0).holds
        for i in range(5):
            low = np.array([m for m in range(32) if not m >> i & 1])
            ups, downs = (holds[low | 1 << i] & ~holds[low]).any(), (~holds[low | 1 << i] & holds[low]).any()
            assert not (ups and downs)


def test_stability_falls_with_noise() -> None:
    rng = np.random.default_rng(0)
    clear, vague = table("A and B", ("A", "B"), noise=0.1), table("A and B", ("A", "B"))
    shaky = TruthTable(("A", "B"), vague.probs * 0 + rng.uniform(0, 1, (12, 4)), vague.sequences, vague.positives, 4.0)
    assert clear.stability(rng) == 1.0
    assert shaky.stability(rng) < 0.8


def test_effects_are_mean_differences() -> None:
    found = table("A and B", ("A", "B", "C")).effects()
    np.testing.assert_allclose(found, [0.425, 0.425, 0.0], atol=1e-12)


def test_observed_lines_count_patterns(garage: object) -> None:
    fleet = garage.fleet({"y": "A & B"}, count=150)  # type: ignore[attr-defined]
    sequences, positives = observed_lines(Mined(fleet), "y", ("A", "B"))
    for line in range(4):
        wanted = [k for k in range(150) if (("A" in fleet.events_of(k)) + 2 * ("B" in fleet.events_of(k))) == line]
        assert sequences[line] == len(wanted)
        assert positives[line] == sum("y" in fleet.labels_of(k) for k in wanted)


def test_streams_are_keyed() -> None:
    assert Stream(0, "a", "table y").uniforms(1, 1) != Stream(0, "a", "table z").uniforms(1, 1)
