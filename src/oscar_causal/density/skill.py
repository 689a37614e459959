"""Does a label model know more than the label's base rate? Log loss and average precision with 95 % intervals.

Both intervals are closed forms over subjects (sequences of one subject count as one draw). Log loss: the mean gain
against the base rate, plus or minus 1.96 standard errors. Average precision: the delta method (infinitesimal
jackknife), on the scale of log odds as Boyd, Eng and Page (2013) recommend. A calibration fitted on the same sequences
(slope and shift) passes off noise as a gain of |z| / 2 standard errors, so that it hardly ever reaches 1.96.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]

Z = 1.959964
"""Standard errors on either side of a 95 % interval."""
LEAST = 1e-12
"""Probabilities are kept this far from 0 and 1, so that a log loss is finite."""


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % interval."""

    value: float
    low: float
    high: float


def log_losses(probs: Float64, truth: Bool) -> Float64:
    """-ln P(what was observed), in nats, elementwise."""
    inside = np.clip(probs, LEAST, 1 - LEAST)
    losses: Float64 = -np.log(np.where(truth, inside, 1 - inside))
    return losses


def mean_interval(values: Float64, subjects: Int64) -> Interval:
    """Mean over S sequences, its standard error from the sums of each subject; `subjects` holds codes from 0.

    >>> round(mean_interval(np.array([1.0, 3.0]), np.array([0, 1])).high, 6)
    3.959964
    """
    mean = float(values.mean())
    sums = np.bincount(subjects, values - mean)
    count = np.count_nonzero(np.bincount(subjects))
    if count < 2:
        return Interval(mean, -np.inf, np.inf)
    reach = Z * float(np.sqrt(count / (count - 1) * (sums**2).sum())) / len(values)
    return Interval(mean, mean - reach, mean + reach)


def precision_interval(scores: Float64, truth: Bool, subjects: Int64) -> Interval:
    """Average precision of one label over S sequences, at least one of them positive.

    AP = mean over positives i of A_i / B_i, with A_i positives and B_i sequences scored at least as high. Its
    derivative by the weight of sequence j is [y_j (A_j / B_j - AP) + sum over positives i scored no higher than j of
    (y_j - A_i / B_i) / B_i] / positives.
    """
    order = np.argsort(-scores, kind="stable")
    hits, ranked = truth[order].astype(float), scores[order]
    last = np.searchsorted(-ranked, -ranked, side="right") - 1  # of those with the same score
    first = np.searchsorted(-ranked, -ranked, side="left")
    above = last + 1.0  # B
    share = np.cumsum(hits)[last] / above  # A / B
    positives = hits.sum()
    value = float((hits * share).sum() / positives)
    below = [np.cumsum(part[::-1])[::-1][first] for part in (hits / above, hits * share / above)]
    slopes = np.empty(len(scores))
    slopes[order] = (hits * (share - value) + hits * below[0] - below[1]) / positives
    error = float(np.sqrt((np.bincount(subjects, slopes) ** 2).sum()))
    inside = min(max(value, LEAST), 1 - LEAST)
    reach = Z * error / (inside * (1 - inside))
    centre = np.log(inside / (1 - inside))
    low, high = (float(1 / (1 + np.exp(-np.clip(end, -60, 60)))) for end in (centre - reach, centre + reach))
    return Interval(value, min(low, value), max(high, value))


def random_precision(positives: int, sequences: int) -> float:
    """Expected average precision of a random order: the rate, and a little more where sequences are few.

    >>> random_precision(1, 2)  # first: 1, second: 1/2
    0.75
    """
    if sequences < 2:
        return float(positives)
    top = float((1 / np.arange(1, sequences + 1)).sum()) / sequences
    return top + (1 - top) * (positives - 1) / (sequences - 1)
