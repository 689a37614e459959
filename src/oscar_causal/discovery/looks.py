"""The focus stage: finalists are replaced in fresh contexts and tested at preset looks; settled sequences stop early.

The looks and what each may spend of alpha are fixed beforehand. A false discovery rate of alpha * weight at every look
adds up to at most alpha whichever look turns out to be the last, so stopping may use anything that was seen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from oscar_causal.density.interface import LabelDensity
from oscar_causal.discovery.contexts import Float64, Int64, Stream
from oscar_causal.discovery.significance import SIDES, ColumnTest, benjamini_hochberg, column_test
from oscar_causal.discovery.subject import Stage, Subject, respond

FEWEST_ROWS = 20
"""Contexts before the first look: fewer cannot reject anything after a correction."""
BLOCK = 1 << 13
"""Redraws that are made at a time."""
STILL_OPEN = 0.25
"""A finalist with a p-value up to this may yet turn out a cause: go on."""


@dataclass(frozen=True)
class Look:
    """One preset look: after so many contexts, with this share of alpha."""

    rows: int
    weight: float


@dataclass(frozen=True)
class Focus:
    """Tests of one label's finalists (indices into the types of the sequence) at the last look."""

    finalists: Int64
    tests: ColumnTest
    q_values: Float64
    """Benjamini-Hochberg within the label, divided by the look's share of alpha."""


def plan_looks(rows: int) -> tuple[Look, ...]:
    """Looks after a quarter, a half and all of the contexts; later looks may spend more. Few contexts: fewer looks.

    >>> [(look.rows, round(look.weight, 2)) for look in plan_looks(40)]
    [(20, 0.2), (40, 0.8)]
    """
    at = [n for n in (rows // 4, rows // 2) if n >= FEWEST_ROWS] + [rows]
    squares = np.arange(1, len(at) + 1) ** 2
    shares = squares / squares.sum()
    return tuple(Look(n, float(share)) for n, share in zip(at, shares, strict=True))


def focus_stage(  # noqa: PLR0913 - a stage of the estimator
    model: LabelDensity,
    subject: Subject,
    labels: Int64,
    finalists: list[Int64],
    rates: Float64,
    looks: tuple[Look, ...],
    *,
    alpha: float,
    delta: float,
    redraws: int,
) -> tuple[Stage, list[Focus]]:
    """Contexts up to the look at which every label is settled, and the tests at that look."""
    masks = Stream(subject.seed, subject.sequence_id, "mask").uniforms(looks[-1].rows, len(subject.types)) < rates
    draws = Stream(subject.seed, subject.sequence_id, "redraw")
    uniforms = draws.uniforms(redraws, looks[-1].rows)
    outcomes = np.zeros((0, len(labels)))
    for k, look in enumerate(looks):
        fresh = respond(model, subject, masks[len(outcomes) : look.rows], labels, f"focus {k}")
        outcomes = np.concatenate([outcomes, fresh])
        stage = Stage(masks[: look.rows], rates, outcomes)
        tested = [
            _test(
                stage,
                j,
                chosen,
                uniforms[:, : look.rows],
                further_redraws(draws, redraws, look, redraws_for(len(chosen), look.weight * alpha)),
                delta,
                look.weight,
            )
            for j, chosen in enumerate(finalists)
        ]
        if all(_settled(focus, alpha, delta) for focus in tested):
            break
    return stage, tested


def redraws_for(finalists: int, alpha: float) -> int:
    """Redraws after which one cause among so many finalists can pass at this alpha, and by a margin.

    >>> redraws_for(8, 0.04)
    801
    """
    smallest = min(share for _, share in SIDES)
    return math.ceil(finalists / (smallest * alpha)) + 1


def further_redraws(draws: Stream, first: int, look: Look, count: int) -> Iterator[Float64]:
    """Uniforms of the redraws from number `first` up to `count`, block by block: (r, rows of the look) each."""
    for begin in range(first, count, BLOCK):
        yield draws.uniforms(min(BLOCK, count - begin), look.rows, first_row=begin)


def _test(  # noqa: PLR0913 - of one label at one look
    stage: Stage,
    label: int,
    finalists: Int64,
    uniforms: Float64,
    more: Iterable[Float64],
    delta: float,
    weight: float,
) -> Focus:
    masks = stage.masks[:, finalists].astype(float)
    tests = column_test(stage.outcomes[:, label], masks, stage.rates[finalists], uniforms, delta=delta, more=more)
    return Focus(finalists, tests, np.minimum(benjamini_hochberg(tests.p_values) / weight, 1.0))


def _settled(focus: Focus, alpha: float, delta: float) -> bool:
    """Something was found, and no finalist left out looks as if more contexts would change that; or there is none."""
    if not len(focus.finalists):
        return True
    found = (focus.q_values <= alpha) & (np.abs(focus.tests.effects) >= delta)
    return bool(found.any() and (found | (focus.tests.p_values > STILL_OPEN)).all())
