"""Contexts that keep a type against contexts that replace it: difference of means, its error and interval, by type."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oscar_causal.discovery.contexts import Bool, Float64, Int64
from oscar_causal.discovery.significance import bounded_intervals

TINY = 1e-12


@dataclass(frozen=True)
class Differences:
    """One label, K types: all figures (K,)."""

    effects: Float64
    """Mean outcome kept minus replaced; 0 where one of the two never happened."""
    errors: Float64
    """Standard errors; NaN with fewer than two contexts on a side."""
    kept: Int64
    replaced: Int64
    low: Float64
    high: Float64

    def error(self, k: int) -> float | None:
        """The standard error, None where there is none."""
        error = float(self.errors[k])
        return None if np.isnan(error) else error


def differences(outcome: Float64, masks: Bool, level: float) -> Differences:
    """Figures of every column of `masks` (N, K), True = replaced, for an outcome (N,).

    >>> found = differences(np.array([0.9, 0.9, 0.1, 0.3]), np.array([[False], [False], [True], [True]]), 0.95)
    >>> round(float(found.effects[0]), 3), round(float(found.errors[0]), 3), int(found.kept[0])
    (0.7, 0.1, 2)
    """
    counts = np.stack([(~masks).sum(0), masks.sum(0)])  # (2, K)
    both, enough = (counts > 0).all(0), (counts > 1).all(0)
    means, variances = zip(*(_moments(outcome, chosen) for chosen in (~masks, masks)), strict=True)
    noise = variances[0] / np.maximum(counts[0], 1) + variances[1] / np.maximum(counts[1], 1)
    return Differences(
        np.where(both, means[0] - means[1], 0.0),
        np.where(enough, np.sqrt(noise), np.nan),
        counts[0],
        counts[1],
        *bounded_intervals(outcome, masks, level),
    )


def _moments(outcome: Float64, chosen: Bool) -> tuple[Float64, Float64]:
    """Mean and variance of the outcome in the chosen rows of each column (N, K): (K,), (K,)."""
    number = chosen.sum(0)
    mean = (outcome[:, None] * chosen).sum(0) / np.maximum(number, 1)
    variance = (((outcome[:, None] - mean) * chosen) ** 2).sum(0) / np.maximum(number - 1, 1)
    return mean, variance


def odds_fall(probability: Float64 | float, fall: Float64 | float) -> Float64:
    """By which share of themselves the odds of a label fall when its probability falls by `fall`; 0 = not at all.

    >>> odds_fall(np.array([0.01, 0.99, 0.5, 0.2]), np.array([0.003, 0.01, -0.1, 0.2])).round(2).tolist()
    [0.3, 0.51, 0.0, 1.0]
    """
    before = np.clip(probability, TINY, 1 - 1e-6)  # single precision cannot tell more
    left = np.clip(before - fall, 0.0, before)
    share: Float64 = 1 - left * (1 - before) / (before * (1 - left))
    return share
