"""What is true of a test part, and one way to score any method against it.

The denominator is every pair (sequence, label that came) with a cause, explained or not: nothing returned is precision
0 and recall 0. Neutral events are neither right nor wrong. Pairs whose truth holds no cause count apart, as false
alarms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from oscar_causal.data.metrics import harmonic
from oscar_causal.data.sequences import Dataset, Float64
from oscar_causal.score.matching import Pair

RESAMPLES = 1000
Found = Mapping[Pair, frozenset[str]]
"""Pair -> events that a method calls causes."""


@dataclass(frozen=True)
class PairTruth:
    """The events that brought one label about, and those about which nothing is said."""

    causes: frozenset[str]
    neutral: frozenset[str]


def read_truth(data: Dataset) -> dict[Pair, PairTruth]:
    """Reasons of every label that came, also where there are none."""
    causes: dict[Pair, set[str]] = {
        (data.sequence_ids[i].as_py(), label): set() for i in range(len(data)) for label in data.labels_of(i)
    }
    neutral: dict[Pair, set[str]] = {pair: set() for pair in causes}
    for row in pq.read_table(_why(data)).to_pylist():
        pair = (row["sequence_id"], row["label"])
        if pair in causes and row["role"] in ("cause", "neutral"):
            (causes if row["role"] == "cause" else neutral)[pair].add(row["event"])
    return {pair: PairTruth(frozenset(found), frozenset(neutral[pair])) for pair, found in causes.items()}


def _why(data: Dataset) -> Path:
    assert data.path is not None  # noqa: S101 - worlds are read from folders
    return data.path / "why"


@dataclass(frozen=True)
class Scores:
    """Precision and recall of every pair that has a cause, and what was found where there is none."""

    sequences: tuple[str, ...]
    """Of each pair: resampling never cuts a sequence."""
    precision: Float64
    recall: Float64
    alarms: Float64
    """Of each pair without a cause: 1 where one was found."""

    def figures(self) -> dict[str, float | int | None]:
        """Means over pairs, F1 of the means with its 95 % interval over resampled sequences, false alarms."""
        low, high = self.interval()
        return {
            "pairs": len(self.precision),
            "precision": float(self.precision.mean()),
            "recall": float(self.recall.mean()),
            "f1": self.f1(),
            "f1_low": low,
            "f1_high": high,
            "empty_pairs": len(self.alarms),
            "false_alarms": float(self.alarms.mean()) if len(self.alarms) else None,
        }

    def f1(self) -> float:
        """F1 of the mean precision and the mean recall."""
        return harmonic(float(self.precision.mean()), float(self.recall.mean()))

    def interval(self, seed: int = 0) -> tuple[float, float]:
        """95 % interval of F1: whole sequences drawn with replacement."""
        names, row = np.unique(np.array(self.sequences), return_inverse=True)
        sums = np.stack([np.bincount(row, part) for part in (self.precision, self.recall, np.ones(len(row)))], axis=1)
        rng = np.random.default_rng(seed)
        drawn = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), size=RESAMPLES) @ sums
        p, r = drawn[:, 0] / drawn[:, 2], drawn[:, 1] / drawn[:, 2]
        f1 = np.where(p + r > 0, 2 * p * r / np.maximum(p + r, 1e-300), 0.0)
        return float(np.quantile(f1, 0.025)), float(np.quantile(f1, 0.975))


def score(found: Found, truth: Mapping[Pair, PairTruth]) -> Scores:
    """Score what a method found.

    >>> nothing = frozenset()
    >>> truth = {("s", "a"): PairTruth(frozenset("AB"), frozenset("N")), ("s", "b"): PairTruth(nothing, nothing)}
    >>> scores = score({("s", "a"): frozenset("AXN"), ("s", "b"): frozenset("A")}, truth)
    >>> scores.precision.tolist(), scores.recall.tolist(), scores.alarms.tolist()
    ([0.5], [0.5], [1.0])
    """
    rows, alarms = [], []
    for pair, true in truth.items():
        named = found.get(pair, frozenset()) - true.neutral
        if not true.causes:
            alarms.append(float(bool(named)))
            continue
        common = len(named & true.causes)
        rows.append((pair[0], common / len(named) if named else 0.0, common / len(true.causes)))
    sequences, precision, recall = zip(*rows, strict=True)
    return Scores(tuple(sequences), np.array(precision), np.array(recall), np.array(alarms))
