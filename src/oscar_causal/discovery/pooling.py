"""Means over many sequences from the sums of `evidence`, with errors that respect subjects.

Subjects fall into 64 groups; the spread of the group totals around the common mean is the error of the mean, whatever
the dependence inside a subject (linearised ratio estimator, t with groups - 1 degrees of freedom). With few subjects
the groups are the subjects, and few degrees of freedom widen everything: that is how rare labels are judged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.special import stdtr, stdtrit

from oscar_causal.discovery.evidence import FOLDS, GROUPS, ONE, PAIR_SUMS
from oscar_causal.discovery.significance import benjamini_hochberg

Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]
LEAST_GROUPS = 3
"""Fewest groups of subjects a verdict needs."""


@dataclass(frozen=True)
class PairSums:
    """Sums of every (label, event) pair by group: arrays (pairs, GROUPS), in units of 1."""

    labels: list[str]
    events: list[str]
    present: Int64
    tested: Int64
    effect: Float64
    square: Float64
    noise: Float64
    noisy: Int64
    causes: Int64
    inhibitors: Int64

    def without_fold(self, fold: int) -> PairSums:
        """The same sums without the subjects of one fold."""
        kept = np.arange(GROUPS) % FOLDS != fold
        parts = ("present", "tested", "effect", "square", "noise", "noisy", "causes", "inhibitors")
        return replace(self, **{name: getattr(self, name) * kept for name in parts})

    def mean_effect(self) -> GroupedMean:
        """Mean effect over the sequences in which the pair was tested; its error is at least the measurement noise."""
        noise = self.noise.sum(1) / np.maximum(self.noisy.sum(1), 1)
        return grouped_mean(self.effect, self.tested, noise / np.maximum(self.tested.sum(1), 1))


def pair_sums(pairs: pa.Table) -> PairSums:
    """Lay out the `pairs` table of the evidence by pair and group, windows added up; only pairs tested at all."""
    table = pairs.group_by(["label", "event", "group"], use_threads=False).aggregate(
        [(name, "sum") for name in PAIR_SUMS]
    )
    keys = list(zip(table["label"].to_pylist(), table["event"].to_pylist(), strict=True))
    tested = table["tested_sum"].to_numpy()
    wanted = sorted({key for key, count in zip(keys, tested.tolist(), strict=True) if count})
    place = {key: row for row, key in enumerate(wanted)}
    rows = np.array([place.get(key, -1) for key in keys], np.int64)
    group, kept = table["group"].to_numpy().astype(np.int64), rows >= 0

    def laid_out(name: str) -> Int64:
        dense = np.zeros((len(wanted), GROUPS), np.int64)
        np.add.at(dense, (rows[kept], group[kept]), table[f"{name}_sum"].to_numpy()[kept])
        return dense

    return PairSums(
        [label for label, _ in wanted],
        [event for _, event in wanted],
        laid_out("present"),
        laid_out("tested"),
        laid_out("effect") / ONE,
        laid_out("effect_square") / ONE,
        laid_out("noise") / ONE,
        laid_out("noisy"),
        laid_out("causes"),
        laid_out("inhibitors"),
    )


@dataclass(frozen=True)
class GroupedMean:
    """Mean over sequences, its standard error and the groups it rests on: arrays (pairs,)."""

    mean: Float64
    se: Float64
    groups: Int64

    def p_values(self, delta: float) -> Float64:
        """Of the null |mean| <= delta, at its least favourable point; 1 with fewer than two groups."""
        freedom = np.maximum(self.groups - 1, 1)
        size, se = np.abs(self.mean), np.maximum(self.se, 1e-12)
        p = stdtr(freedom, (delta - size) / se) + stdtr(freedom, -(size + delta) / se)
        values: Float64 = np.where(self.groups > 1, np.minimum(p, 1.0), 1.0)
        return values

    def interval(self, level: float) -> tuple[Float64, Float64]:
        """Confidence interval inside -1 .. 1; all of it with fewer than two groups."""
        wide = stdtrit(np.maximum(self.groups - 1, 1), (1 + level) / 2) * self.se
        known = self.groups > 1
        return np.where(known, np.maximum(self.mean - wide, -1), -1.0), np.where(
            known, np.minimum(self.mean + wide, 1), 1.0
        )


def grouped_mean(total: Float64, count: Int64, floor: Float64) -> GroupedMean:
    """Mean of values given by group as total and count (pairs, groups), with a standard error clustered by group.

    `floor` (pairs,) is a variance of the mean that is known to be there (measurement noise): the error is no smaller.

    >>> found = grouped_mean(np.array([[1.0, 3.0, 2.0]]), np.array([[1, 1, 1]]), np.zeros(1))
    >>> float(found.mean[0]), round(float(found.se[0]), 4)
    (2.0, 0.5774)
    """
    number = np.maximum(count.sum(1), 1)
    mean = total.sum(1) / number
    groups = (count > 0).sum(1)
    residual = total - mean[:, None] * count
    variance = (residual**2).sum(1) / number**2 * groups / np.maximum(groups - 1, 1)
    return GroupedMean(mean, np.sqrt(np.maximum(variance, floor)), groups)


def fleet_q_values(mean: GroupedMean, delta: float) -> Float64:
    """q-values of |mean effect| <= delta over all pairs with enough groups; 1 for the others."""
    enough = mean.groups >= LEAST_GROUPS
    q_values = np.ones(len(mean.mean))
    q_values[enough] = benjamini_hochberg(mean.p_values(delta)[enough])
    return q_values


def spread(sums: PairSums) -> tuple[Float64, Float64, Float64]:
    """Does the effect depend on the sequence? Its standard deviation, a lower bound of it, and I squared.

    sd^2 = (variance of the measured effects) - (mean squared standard error), not below 0; I squared is its share of
    the variance. The bound (95 %, one-sided) comes from leaving out one group at a time, so it holds with any number
    of sequences, where a test of "all effects are equal" would always reject.
    """
    whole = _excess(*(part.sum(1) for part in (sums.tested, sums.effect, sums.square, sums.noise, sums.noisy)))
    without = _excess(
        *(part.sum(1)[:, None] - part for part in (sums.tested, sums.effect, sums.square, sums.noise, sums.noisy))
    )  # (pairs, GROUPS)
    used = sums.tested > 0
    groups = used.sum(1)
    centre = np.where(used, without[0], 0).sum(1) / np.maximum(groups, 1)
    deviation = np.where(used, (without[0] - centre[:, None]) ** 2, 0).sum(1)
    error = np.sqrt(deviation * (groups - 1) / np.maximum(groups, 1))
    low = whole[0] - stdtrit(np.maximum(groups - 1, 1), 0.95) * error
    known = groups > 2
    share = np.divide(np.maximum(whole[0], 0), whole[1], out=np.zeros_like(whole[1]), where=whole[1] > 0)
    return (
        np.sqrt(np.maximum(whole[0], 0)),
        np.where(known, np.sqrt(np.maximum(low, 0)), 0.0),
        share.clip(0, 1),
    )


def _excess(count: Any, total: Any, square: Any, noise: Any, noisy: Any) -> tuple[Float64, Float64]:
    """Variance of true effects (may be negative) and variance of measured ones."""
    number = np.maximum(count, 1)
    variance = (square - total**2 / number) / np.maximum(count - 1, 1)
    mean_noise = noise / np.maximum(noisy, 1)
    return variance - mean_noise, variance
