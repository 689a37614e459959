"""Two cheap screens for the assumption page: labels that co-occur beyond the model, events that tell only in pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import norm

from oscar_causal.data.sequences import Dataset

Float64 = npt.NDArray[np.float64]

MIN_EXPECTED = 5.0
"""A pair of labels is compared when their chance co-occurrences vary by at least this much."""
MIN_SIZE = 0.05
"""Residual correlations and pair effects below this are not mentioned, however significant."""
PAIR_EVENTS = 40
"""Number of frequent event types whose pairs are screened."""
PAIR_SEQUENCES = 20_000
"""At most this many labelled sequences (the first ones) are screened."""
PAIR_POSITIVES = 20
"""Labels with fewer positive sequences are not screened."""
LEVEL = 0.01
"""Error level of either screen, Bonferroni over all pairs."""


@dataclass(frozen=True)
class ResidualPairs:
    """Residual correlation of every pair of labels and its z-score, and the pairs that stand out, largest z first."""

    size: Float64
    z: Float64
    pairs: list[tuple[int, int]]
    tested: int


def residual_pairs(probs: Float64, truth: npt.NDArray[np.bool_]) -> ResidualPairs:
    """Pairs of labels whose residuals y - P(y) go together.

    Were P right and the labels independent given the events, the sum of r_i r_j over sequences would have mean 0 and
    variance sum of p_i (1 - p_i) p_j (1 - p_j). A miscalibrated model stands out too: read it with the calibration.
    """
    residuals, variances = truth - probs, probs * (1 - probs)  # (S, Y)
    spread = variances.T @ variances  # (Y, Y)
    together = residuals.T @ residuals
    z = together / np.sqrt(np.maximum(spread, 1e-12))
    scale = np.sqrt(np.maximum((residuals**2).sum(0), 1e-12))
    size = together / np.outer(scale, scale)
    upper = np.triu(spread >= MIN_EXPECTED, 1)
    tested = int(upper.sum())
    found = np.argwhere(upper & (np.abs(z) > _cut(tested)) & (np.abs(size) > MIN_SIZE))
    pairs = [(int(i), int(j)) for i, j in found]
    return ResidualPairs(size, z, sorted(pairs, key=lambda pair: -abs(float(z[pair]))), tested)


def xor_like(dataset: Dataset) -> tuple[list[dict[str, Any]], int]:
    """(label, event, event) where presence of both tells about the label and presence of either alone does not.

    Looks at the `PAIR_EVENTS` event types that are present in a share of sequences nearest to one half. The pair's
    figure is the correlation of the label with the product of the centred presences; "alone tells nothing" means a
    marginal correlation that is not significant at `LEVEL`, uncorrected.
    """
    rows = np.flatnonzero(dataset.labelled)[:PAIR_SEQUENCES]
    part = dataset.take(rows)
    events, present = _balanced_events(part)
    labels = np.flatnonzero(np.bincount(part.labels.ids, minlength=len(dataset.label_names)) >= PAIR_POSITIVES)
    tested = len(labels) * len(events) * (len(events) - 1) // 2
    if not tested:
        return [], 0
    truth = part.labels.indicator(len(dataset.label_names))[:, labels].astype(float)
    squares = (present**2).T @ (present**2)  # (K, K)
    found = []
    for column, label in enumerate(labels):
        target = truth[:, column] - truth[:, column].mean()
        for i, j, size, z in _pairs_alone_silent(present, target, squares, tested):
            names = [dataset.event_names[events[i]], dataset.event_names[events[j]]]
            found.append({"label": dataset.label_names[label], "events": names, "correlation": size, "z": z})
    return sorted(found, key=lambda item: -abs(item["z"])), tested


def _pairs_alone_silent(
    present: Float64, target: Float64, squares: Float64, tested: int
) -> list[tuple[int, int, float, float]]:
    """Pairs (i, j, correlation, z) of centred columns (S, K) with a joint but no marginal association."""
    variance = target.var()
    if variance == 0:
        return []
    alone = (target @ present) / np.sqrt(variance * np.maximum((present**2).sum(0), 1e-12))  # (K,)
    z = (present * target[:, None]).T @ present / np.sqrt(variance * np.maximum(squares, 1e-12))
    silent = np.abs(alone) < norm.isf(LEVEL / 2)
    size = z / np.sqrt(len(target))
    keep = np.triu(np.outer(silent, silent), 1) & (np.abs(z) > _cut(tested)) & (np.abs(size) > MIN_SIZE)
    return [(int(i), int(j), float(size[i, j]), float(z[i, j])) for i, j in np.argwhere(keep)]


def _balanced_events(part: Dataset) -> tuple[npt.NDArray[np.int64], Float64]:
    """The event types present in a share of sequences nearest to one half (5 % to 95 %), and their centred presence."""
    pairs = np.unique(part.events.rows() * len(part.event_names) + part.events.ids)
    rows, ids = np.divmod(pairs, max(1, len(part.event_names)))
    share = np.bincount(ids, minlength=len(part.event_names)) / max(1, len(part))
    order = np.argsort(np.abs(share - 0.5), kind="stable")
    events = order[(share[order] >= 0.05) & (share[order] <= 0.95)][:PAIR_EVENTS]
    place = np.full(len(part.event_names), -1)
    place[events] = np.arange(len(events))
    present = np.zeros((len(part), len(events)))
    kept = place[ids] >= 0
    present[rows[kept], place[ids[kept]]] = 1.0
    return events, present - present.mean(0) if len(part) else present


def _cut(tests: int) -> float:
    """Two-sided normal threshold at `LEVEL` over so many tests."""
    return float(norm.isf(LEVEL / 2 / max(tests, 1)))
