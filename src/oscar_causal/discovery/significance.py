"""Tests that keep their promise for any model: the analyst drew the masks, so their law is known exactly.

Sharp null of (event type t, label j): replacing t changes P(Y_j) in no context of the design. Under it P(Y_j) does not
depend on t's own mask column, whatever the other columns do; drawing that column afresh from its known law gives the
exact distribution of any statistic. What else is chosen by looking at P(Y_j) and the *other* columns is harmless.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]

MAX_CONDITIONING = 8
"""At most this many other events are held fixed while one is tested."""
STRONG = 2.2
"""An event is held fixed when its standardised association with the outcome exceeds this."""
SIDES = ((1, 0.75), (-1, 0.25))
"""Sides of a test (1: keeping the event raises P, -1: it lowers P) and their shares of the error: mostly causes are
asked for."""
FEWEST_ROWS = 6
"""Among fewer rows no further event is looked for."""
FEW = 10
"""A statistic that no more of the first redraws reach is redrawn on."""
TINY = 1e-300
"""Stands for zero where a logarithm is taken."""
FLAT = 1e-7
"""Rows whose outcomes spread less than this (root of the sum of squares) agree: what is left is rounding."""


@dataclass(frozen=True)
class ColumnTest:
    """Result for each column (K,)."""

    p_values: Float64
    scores: Float64
    """The largest standardised statistic."""
    effects: Float64
    """Mean outcome kept minus replaced, in the rows where that statistic was largest."""


def leading_columns(outcome: Float64, masks: Float64, rates: Float64) -> list[int]:
    """Columns that explain the outcome best, found one after the other among rows that keep the earlier ones.

    For causes that are all needed, a row that replaces one says nothing about the others: leave such rows out.
    `masks` (N, K) is 1 where replaced.
    """
    found = _leading(outcome[None], masks, rates, np.ones((1, masks.shape[1]), bool))[0]
    return [int(column) for column in found[found >= 0]]


def _leading(outcomes: Float64, masks: Float64, rates: Float64, free: Bool) -> Int64:
    """Leading columns among the `free` ones (C, K) for each of the outcomes (C, N): (C, at most 8), -1 = no more."""
    rows = np.ones(outcomes.shape, bool)
    open_, every = free.copy(), np.arange(len(outcomes))
    found = np.full((len(outcomes), MAX_CONDITIONING), -1)
    going = open_.any(1)
    for step in range(MAX_CONDITIONING):
        going &= (rows.sum(1) >= FEWEST_ROWS) & open_.any(1)
        if not going.any():
            break
        score = np.where(open_, np.abs(standardised(outcomes, masks, rates, rows)), 0.0)  # (C, K)
        best = score.argmax(1)
        going &= score[every, best] >= STRONG
        found[going, step] = best[going]
        open_[every[going], best[going]] = False
        rows &= ~going[:, None] | (masks[:, best].T == 0)
    return found


def column_test(  # noqa: PLR0913 - arrays of one test
    outcome: Float64,
    masks: Float64,
    rates: Float64,
    uniforms: Float64,
    *,
    delta: float = 0.0,
    more: Iterable[Float64] = (),
) -> ColumnTest:
    """Re-randomisation test of every column of `masks` (N, K) with law Bernoulli(rates[k]), outcome (N,).

    The statistic is the largest of several standardised sums: over all rows; over rows that keep the leading other
    columns (for causes that are needed together); over those that replace one other column and keep the other leading
    ones (for causes that stand in for each other). `uniforms` (R, N) are the redraws; p = (1 + number as large) /
    (R + 1) >= 1 / (R + 1). Where at most `FEW` of them reach the statistic, a finer p-value comes from all of `more`
    too (blocks of further uniforms, made only then). All others have p >= (FEW + 2) / (R + 1), so neither way is p at
    or below any t more often than t. With `delta` > 0 the null is an effect of at most delta either way, the same in
    all contexts: delta is taken off the kept rows, and each side is tested on its own with its share of the error
    (`SIDES`).
    """
    sides, shares = (np.zeros(1), np.ones(1)) if delta == 0 else np.array(SIDES).T
    count = masks.shape[1]
    column, side = np.tile(np.arange(count), len(sides)), np.repeat(sides, count)  # (C,) cases, side by side
    cases = _cases(outcome, masks, rates, column, side, delta)
    p, scores, rows = _p_values(cases, uniforms, more), cases.largest, cases.rows
    p, scores = (part.reshape(len(sides), count) for part in (p, scores))  # there may be no column at all
    p = np.minimum(1.0, p / shares[:, None])
    best = np.lexsort((-scores, p), axis=0)[0]  # (K,) the side that speaks loudest
    every = np.arange(count)
    chosen = rows.reshape(len(sides), count, len(outcome))[best, every]  # (K, N)
    return ColumnTest(p[best, every], scores[best, every], _gaps(outcome, masks.T > 0, chosen))


@dataclass(frozen=True)
class _Cases:
    """Some columns with the side (1: keeping raises, -1: lowers, 0: either) on which each is tested."""

    weights: Float64
    """(C, S, N) what a replaced row takes from each standardised sum."""
    rate: Float64
    """(C,)"""
    largest: Float64
    """(C,) the statistic."""
    rows: Bool
    """(C, N) where that sum was the largest."""
    either: bool
    """Do both directions count?"""


def _cases(  # noqa: PLR0913 - arrays of one test
    outcome: Float64, masks: Float64, rates: Float64, column: Int64, side: Float64, delta: float
) -> _Cases:
    """Rows are chosen by the outcome and the other columns alone: that makes the p-value exact."""
    every, rate, either = np.arange(len(column)), rates[column], not side.any()
    shifted = outcome - (side * delta)[:, None] * (1 - masks.T[column])  # (C, N)
    parts = _row_sets(masks, column, _leading(shifted, masks, rates, column[:, None] != np.arange(masks.shape[1])))
    residual = _centred(shifted[:, None], parts)  # (C, S, N)
    spread = _spread(residual) * np.sqrt(rate * (1 - rate))[:, None]
    weights = np.where(side < 0, -1.0, 1.0)[:, None, None] * residual / spread[..., None]
    observed = _turned((weights * (rate[:, None] - masks.T[column])[:, None]).sum(-1), either)  # (C, S)
    at = observed.argmax(1)
    return _Cases(weights, rate, observed[every, at], parts[every, at], either)


def _p_values(cases: _Cases, uniforms: Float64, more: Iterable[Float64]) -> Float64:
    """p-value (C,) of every case."""
    reached, drawn = _as_large(cases, np.arange(len(cases.rate)), uniforms), np.full(len(cases.rate), len(uniforms))
    rare = np.flatnonzero(reached <= FEW)
    if len(rare):
        for block in more:
            reached[rare] += _as_large(cases, rare, block)
            drawn[rare] += len(block)
    p: Float64 = (1 + reached) / (drawn + 1)
    return p


def _as_large(cases: _Cases, which: Int64, uniforms: Float64) -> Int64:
    """How many redraws (R, N) of each chosen case's column reach its statistic.

    One case after the other, in memory that is used again: a product of all would spend its time on fresh pages.
    """
    redrawn = np.empty((cases.weights.shape[1], len(uniforms)))  # (S, R)
    drawn = np.ascontiguousarray(uniforms.T)
    columns = {same: same - (same > drawn) for same in set(cases.rate[which].tolist())}  # (N, R); most share one
    reached = np.empty(len(which), np.int64)
    for place, case in enumerate(which.tolist()):
        column = columns[float(cases.rate[case])]
        _turned(np.matmul(cases.weights[case], column, out=redrawn), cases.either)
        reached[place] = np.count_nonzero(redrawn.max(0) >= cases.largest[case] - 1e-9)
    return reached


def _turned(standard: Float64, either: bool) -> Float64:  # noqa: FBT001
    """The statistic: a sum that has the sign of its side already, or its size where both count."""
    return np.abs(standard, out=standard) if either else standard


def _gaps(outcome: Float64, replaced: Bool, rows: Bool) -> Float64:
    """Mean outcome where kept minus where replaced, among the rows (K, N) of each column; 0 when one never happened."""
    sides = np.stack([rows & ~replaced, rows & replaced])  # (2, K, N)
    counts = sides.sum(-1)
    kept, lost = (outcome * sides).sum(-1) / np.maximum(counts, 1)
    return np.where((counts > 0).all(0), kept - lost, 0.0)


def _row_sets(masks: Float64, column: Int64, leading: Int64) -> Bool:
    """For each case the sets of rows (S, N) in which its column is tested, `leading` (C, ...) being the leading others.

    All rows; those that keep the others; for each further column those that replace it and keep the other others. In
    place of the tested column itself all rows stand once more, which changes no maximum.
    """
    others = (leading[..., None] == np.arange(masks.shape[1])).any(1)  # (C, K)
    broken = others.astype(float) @ masks.T  # (C, N): how many of the others a row replaces
    single = (masks.T > 0) & (broken[:, None] == others[..., None])  # (C, K, N)
    single[np.arange(len(column)), column] = True
    return np.concatenate([np.ones_like(single[:, :1]), (broken == 0)[:, None], single], axis=1)


def _centred(outcome: Float64, rows: Bool) -> Float64:
    """Outcome minus its mean within each set of rows, zero outside: (..., N)."""
    means = (outcome * rows).sum(-1) / np.maximum(rows.sum(-1), 1)
    centred: Float64 = rows * (outcome - means[..., None])
    return centred


def _spread(residual: Float64) -> Float64:
    """Root of the sum of squares over rows; infinite where the rows agree, so that a standardised sum is zero."""
    size = np.sqrt((residual**2).sum(-1))
    spread: Float64 = np.where(size > FLAT, size, np.inf)
    return spread


def standardised(outcome: Float64, masks: Float64, rates: Float64, rows: Bool) -> Float64:
    """Association of each column with the outcome over the chosen rows, in units of its own re-randomisation sd.

    Outcome and rows (..., N), masks (N, K) -> (..., K).
    """
    residual = _centred(outcome, rows)
    spread = _spread(residual)[..., None] * np.sqrt(rates * (1 - rates))
    standard: Float64 = residual @ (rates - masks) / spread
    return standard


def benjamini_hochberg(p_values: Float64) -> Float64:
    """q-values: the smallest false discovery rate at which each hypothesis is rejected.

    >>> benjamini_hochberg(np.array([0.01, 0.04, 0.03])).round(3).tolist()
    [0.03, 0.04, 0.04]
    """
    order = np.argsort(p_values)
    ranked = p_values[order] * len(p_values) / np.arange(1, len(p_values) + 1)
    q = np.empty_like(p_values)
    q[order] = np.minimum.accumulate(ranked[::-1])[::-1].clip(max=1.0)
    return q


def inverted_interval(
    outcome: Float64, mask: Float64, rate: float, uniforms: Float64, level: float
) -> tuple[float, float]:
    """Confidence interval for the difference in means (kept - replaced) by inverting the re-randomisation test.

    For each redraw z the constant effect tau at which the observed difference would tie with the redrawn one has a
    closed form; its quantiles are the interval. Exact for an effect that is the same in every context.
    """
    if mask.sum() in (0, len(mask)):
        return -1.0, 1.0
    observed = _difference(outcome, mask[None, :])[0]
    redraws = (uniforms < rate).astype(float)
    usable = redraws[(redraws.sum(1) > 0) & (redraws.sum(1) < len(mask))]
    shifts = (observed - _difference(outcome, usable)) / np.maximum(1 + _difference(mask, usable), 1e-3)
    tail = (1 - level) / 2
    low, high = np.quantile(shifts, [tail, 1 - tail])
    return float(np.clip(low, -1, 1)), float(np.clip(high, -1, 1))


def _difference(values: Float64, masks: Float64) -> Float64:
    """Mean of `values` where not masked minus where masked, for each row of `masks` (R, N)."""
    masked = masks.sum(1)
    total: Float64 = (1 - masks) @ values / (masks.shape[1] - masked) - masks @ values / masked
    return total


def bounded_interval(outcome: Float64, mask: Float64, level: float) -> tuple[float, float]:
    """Confidence interval for the difference in means (kept - replaced) that asks of the outcome only 0 <= P <= 1.

    Contexts are independent, so kept and replaced rows are two samples of numbers in [0, 1]; of all such with one mean
    a coin spreads most. Clopper-Pearson limits of both means, joined by square-and-add. An event with few replaced
    rows gets a wide interval even when all rows agree: contexts not met may differ. Unlike `inverted_interval` it does
    not suppose one effect for all contexts; it is wider where that holds.

    >>> low, high = bounded_interval(np.repeat([0.9, 0.1], 40), np.repeat([0.0, 1.0], 40), 0.95)
    >>> round(low, 2), round(high, 2)
    (0.61, 0.9)
    """
    low, high = bounded_intervals(outcome, mask[:, None] > 0, level)
    return float(low[0]), float(high[0])


def bounded_intervals(outcome: Float64, masks: Bool, level: float) -> tuple[Float64, Float64]:
    """`bounded_interval` of every column of `masks` (N, K): lower ends (K,), upper ends (K,)."""
    kept_mean, kept_low, kept_high = _coin_limits(outcome, ~masks, level)
    mean, low, high = _coin_limits(outcome, masks, level)
    effect, both = kept_mean - mean, masks.any(0) & ~masks.all(0)
    down, up = np.hypot(kept_mean - kept_low, high - mean), np.hypot(kept_high - kept_mean, mean - low)
    return np.where(both, np.maximum(effect - down, -1.0), -1.0), np.where(both, np.minimum(effect + up, 1.0), 1.0)


def _coin_limits(outcome: Float64, chosen: Bool, level: float) -> tuple[Float64, Float64, Float64]:
    """Mean, lower and upper Clopper-Pearson limit of the outcome in the chosen rows of each column (N, K).

    A sum of numbers in [0, 1] stands for the number of heads.
    """
    tail, number = (1 - level) / 2, np.maximum(chosen.sum(0), 1)
    heads = np.minimum((np.clip(outcome, 0.0, 1.0)[:, None] * chosen).sum(0), number)
    low = np.where(heads > 0, betaincinv(np.maximum(heads, TINY), number - heads + 1, tail), 0.0)
    high = np.where(heads < number, betaincinv(heads + 1, np.maximum(number - heads, TINY), 1 - tail), 1.0)
    return heads / number, low, high
