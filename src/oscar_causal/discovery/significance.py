"""Tests that keep their promise for any model: the analyst drew the masks, so their law is known exactly.

Sharp null of (event type t, label j): replacing t changes P(Y_j) in no context of the design. Under it P(Y_j) does not
depend on t's own mask column, whatever the other columns do; drawing that column afresh from its known law gives the
exact distribution of any statistic. What else is chosen by looking at P(Y_j) and the *other* columns is harmless.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

Float64 = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]

MAX_CONDITIONING = 8
"""At most this many other events are held fixed while one is tested."""
STRONG = 2.2
"""An event is held fixed when its standardised association with the outcome exceeds this."""
SIDES = ((1, 0.75), (-1, 0.25))
"""Sides of a test (1: keeping the event raises P, -1: it lowers P) and their shares of the error: mostly causes are
asked for."""
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
    rows = np.ones(len(outcome), bool)
    found: list[int] = []
    while len(found) < min(MAX_CONDITIONING, masks.shape[1]) and rows.sum() >= 6:
        score = np.abs(standardised(outcome, masks, rates, rows))
        score[found] = 0.0
        best = int(np.argmax(score))
        if score[best] < STRONG:
            break
        found.append(best)
        rows &= masks[:, best] == 0
    return found


def column_test(
    outcome: Float64, masks: Float64, rates: Float64, uniforms: Float64, *, delta: float = 0.0
) -> ColumnTest:
    """Re-randomisation test of every column of `masks` (N, K) with law Bernoulli(rates[k]), outcome (N,).

    The statistic is the largest of several standardised sums: over all rows; over rows that keep the leading other
    columns (for causes that are needed together); over those that replace one other column and keep the other leading
    ones (for causes that stand in for each other). `uniforms` (R, N) are the redraws; p = (1 + number as large) /
    (R + 1) >= 1 / (R + 1). With `delta` > 0 the null is an effect of at most delta either way, the same in all
    contexts: delta is taken off the kept rows, and each side is tested on its own with its share of the error
    (`SIDES`).
    """
    sides = ((0, 1.0),) if delta == 0 else SIDES
    results = np.ones((3, masks.shape[1]))
    redraws = {rate: rate - (rate > uniforms.T) for rate in set(rates.tolist())}  # (N, R) each; most columns share one
    for t in range(masks.shape[1]):
        redrawn = redraws[float(rates[t])]
        found = []
        for side, share in sides:
            shifted = outcome - side * delta * (1 - masks[:, t])
            p, score, rows = _one_column(shifted, masks, rates, redrawn, t, side)
            found.append((min(1.0, p / share), score, rows))
        p, score, rows = min(found, key=lambda item: (item[0], -item[1]))
        results[:, t] = p, score, _gap(outcome[rows], masks[rows, t])
    return ColumnTest(*results)


def _one_column(
    outcome: Float64, masks: Float64, rates: Float64, redraws: Float64, t: int, side: int
) -> tuple[float, float, Bool]:
    """p-value, statistic and rows of column t; side 1: keeping raises, -1: keeping lowers, 0: either.

    `redraws` (N, R): the rate minus the column drawn afresh. Rows are chosen by the outcome and the other columns
    alone: that makes the p-value exact.
    """
    rate, rest = float(rates[t]), np.delete(np.arange(masks.shape[1]), t)
    others = [int(rest[k]) for k in leading_columns(outcome, masks[:, rest], rates[rest])]
    parts = _row_sets(masks, t, others)  # (N, S)
    residual = _centred(outcome, parts)
    spread = _spread(residual) * np.sqrt(rate * (1 - rate))
    observed = _turned((rate - masks[:, t]) @ residual / spread, side)  # (S,)
    redrawn = _turned((residual / spread).T @ redraws, side).max(0)  # (R,)
    at = int(np.argmax(observed))
    reached = int((redrawn >= observed[at] - 1e-9).sum())
    return (1 + reached) / (redraws.shape[1] + 1), float(observed[at]), parts[:, at] > 0


def _turned(standard: Float64, side: int) -> Float64:
    return side * standard if side else np.abs(standard)


def _gap(outcome: Float64, mask: Float64) -> float:
    """Mean outcome where kept minus where replaced; 0 when one of the two never happened."""
    replaced = mask > 0
    if replaced.all() or not replaced.any():
        return 0.0
    return float(outcome[~replaced].mean() - outcome[replaced].mean())


def _row_sets(masks: Float64, t: int, others: list[int]) -> Float64:
    """All rows; those that keep `others`; for each further column those that replace it and keep the other `others`."""
    replaced = masks > 0
    broken = replaced[:, others].sum(1)  # how many of the others a row replaces
    sets = [np.ones(len(masks), bool), broken == 0]
    for k in range(masks.shape[1]):
        if k != t:
            sets.append(replaced[:, k] & (broken == (k in others)))
    return np.stack(sets, axis=1).astype(float)


def _centred(outcome: Float64, rows: Float64) -> Float64:
    """Outcome minus its mean within each set of rows, zero outside: (N, S)."""
    means = (outcome @ rows) / np.maximum(rows.sum(0), 1.0)
    centred: Float64 = rows * (outcome[:, None] - means)
    return centred


def _spread(residual: Float64) -> Float64:
    """Root of the sum of squares over rows; infinite where the rows agree, so that a standardised sum is zero."""
    size = np.sqrt((residual**2).sum(0))
    spread: Float64 = np.where(size > FLAT, size, np.inf)
    return spread


def standardised(outcome: Float64, masks: Float64, rates: Float64, rows: Bool) -> Float64:
    """Association of each column with the outcome over the chosen rows, in units of its own re-randomisation sd."""
    residual = np.where(rows, outcome - outcome[rows].mean(), 0.0)
    spread = _spread(residual) * np.sqrt(rates * (1 - rates))
    standard: Float64 = (rates - masks).T @ residual / spread
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
    replaced = mask > 0
    if replaced.all() or not replaced.any():
        return -1.0, 1.0
    kept_mean, kept_low, kept_high = _coin_limits(outcome[~replaced], level)
    mean, low, high = _coin_limits(outcome[replaced], level)
    effect = kept_mean - mean
    down, up = np.hypot(kept_mean - kept_low, high - mean), np.hypot(kept_high - kept_mean, mean - low)
    return float(max(effect - down, -1.0)), float(min(effect + up, 1.0))


def _coin_limits(values: Float64, level: float) -> tuple[float, float, float]:
    """Mean, lower and upper Clopper-Pearson limit; a sum of numbers in [0, 1] stands for the number of heads."""
    tail, number, heads = (1 - level) / 2, len(values), float(np.clip(values, 0.0, 1.0).sum())
    low = float(betaincinv(heads, number - heads + 1, tail)) if heads > 0 else 0.0
    high = float(betaincinv(heads + 1, number - heads, 1 - tail)) if heads < number else 1.0
    return heads / number, low, high
