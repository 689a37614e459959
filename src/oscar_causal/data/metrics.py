"""Scores of predicted sets against true sets, as pure functions: sum counts over batches and machines, then divide.

`micro` adds the counts of all labels first; `macro` is the plain mean over labels that occur; `weighted` is the mean
weighted by support (number of true members). `f1_of_means` is the harmonic mean of the averaged precision and recall,
`f1` the average of the per-label F1: the two differ, and papers mix them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Float = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Counts:
    """True positives, false positives and false negatives of each label (or of each class of any kind)."""

    hits: Float
    false_alarms: Float
    misses: Float

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.hits + other.hits, self.false_alarms + other.false_alarms, self.misses + other.misses)

    @property
    def support(self) -> Float:
        """Number of true members of each label."""
        return self.hits + self.misses


def count(predicted: Bool, truth: Bool) -> Counts:
    """Counts per column of two boolean matrices (B, Y).

    >>> c = count(np.array([[True], [True]]), np.array([[True], [False]]))
    >>> float(c.hits[0]), float(c.false_alarms[0]), float(c.misses[0])
    (1.0, 1.0, 0.0)
    """
    both = (predicted & truth).sum(0).astype(float)
    return Counts(both, predicted.sum(0) - both, truth.sum(0) - both)


def divide(numerator: Float, denominator: Float) -> Float:
    """Elementwise quotient; 0 where the denominator is 0."""
    quotient: Float = np.divide(numerator, denominator, out=np.zeros_like(numerator, float), where=denominator > 0)
    return quotient


def label_scores(counts: Counts) -> tuple[Float, Float, Float]:
    """Precision, recall and F1 of each label; a label never predicted has precision 0."""
    precision = divide(counts.hits, counts.hits + counts.false_alarms)
    recall = divide(counts.hits, counts.support)
    f1 = divide(2 * counts.hits, 2 * counts.hits + counts.false_alarms + counts.misses)
    return precision, recall, f1


def averages(counts: Counts) -> dict[str, dict[str, float]]:
    """Micro, macro and weighted precision, recall, f1 and f1_of_means over the labels that occur."""
    occurs = counts.support > 0
    scores = label_scores(counts)
    support = counts.support[occurs]
    micro = label_scores(
        Counts(*(np.array([part.sum()]) for part in (counts.hits, counts.false_alarms, counts.misses)))
    )
    equal = np.ones_like(support)
    return {
        "micro": _summary(*(float(part[0]) for part in micro)),
        "macro": _summary(*(_mean(part[occurs], equal) for part in scores)),
        "weighted": _summary(*(_mean(part[occurs], support) for part in scores)),
    }


def harmonic(precision: float, recall: float) -> float:
    """Harmonic mean of precision and recall; 0 when both are 0."""
    return 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0


def _summary(precision: float, recall: float, f1: float) -> dict[str, float]:
    return {"precision": precision, "recall": recall, "f1": f1, "f1_of_means": harmonic(precision, recall)}


def _mean(values: Float, weights: Float) -> float:
    return float((values * weights).sum() / weights.sum()) if weights.sum() > 0 else 0.0


def average_precision(scores: Float, truth: Bool) -> Float:
    """Area under the precision-recall steps of each column of (B, Y); NaN for a column without true members."""
    result = np.full(scores.shape[1], np.nan)
    for column in np.flatnonzero(truth.any(0)):
        order = np.argsort(-scores[:, column], kind="stable")
        hits = truth[order, column]
        ends = np.append(np.diff(scores[order, column]) != 0, True)  # tied scores share one threshold
        found = np.cumsum(hits)[ends]
        precision = found / (np.flatnonzero(ends) + 1)
        result[column] = float((np.diff(found, prepend=0) * precision).sum() / hits.sum())
    return result


def reliability(probs: Float, truth: Bool, *, bins: int = 10) -> tuple[list[dict[str, float]], float]:
    """Table of predicted against observed frequency in equal-width bins, and the expected calibration error.

    `probs` and `truth` of any one shape. ECE = sum over bins of share * |mean predicted - observed|.
    """
    flat, hits = probs.ravel(), truth.ravel()
    index = np.minimum((flat * bins).astype(int), bins - 1)
    number = np.bincount(index, minlength=bins).astype(float)
    predicted = divide(np.bincount(index, flat, bins).astype(float), number)
    observed = divide(np.bincount(index, hits, bins).astype(float), number)
    error = float((number * np.abs(predicted - observed)).sum() / max(1, len(flat)))
    rows = [
        {
            "from": b / bins,
            "to": (b + 1) / bins,
            "count": int(number[b]),
            "predicted": predicted[b],
            "observed": observed[b],
        }
        for b in range(bins)
        if number[b]
    ]
    return rows, error
