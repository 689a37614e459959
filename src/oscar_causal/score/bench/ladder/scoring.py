"""One way to score any method on any ground.

The denominator is every pair (sequence, label that came) with a cause, explained or not: nothing named is precision 0
and recall 0. Of what nothing is said is neither right nor wrong. Pairs without a cause count apart, as false alarms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from oscar_causal.data.metrics import harmonic
from oscar_causal.score.bench.ladder.interface import Answer, Answers, Reasons, Truth, same

Float = npt.NDArray[np.float64]
RESAMPLES = 1000
NOTHING = Answer()


def units(events: Iterable[str], unit: Callable[[str], str]) -> frozenset[str]:
    """What is scored instead of these types."""
    return frozenset(map(unit, events))


def named(events: Iterable[str], reasons: Reasons, unit: Callable[[str], str]) -> frozenset[str]:
    """What an answer names, without what is unknown."""
    return units(events, unit) - (units(reasons.unknown, unit) - units(reasons.causes, unit))


@dataclass(frozen=True)
class Scores:
    """Found, true and common events of every pair that has a cause, and what was found where there is none."""

    sequences: tuple[str, ...]
    """Of each pair: resampling never cuts a sequence."""
    found: Float
    true: Float
    common: Float
    alarms: Float
    """Of each pair without a cause: 1 where one was named."""

    @property
    def precision(self) -> Float:
        """Of each pair; 0 where nothing was named."""
        return np.asarray(self.common / np.maximum(self.found, 1.0))

    @property
    def recall(self) -> Float:
        """Of each pair."""
        return np.asarray(self.common / self.true)

    def f1(self) -> float:
        """F1 of the mean precision and the mean recall."""
        return harmonic(float(self.precision.mean()), float(self.recall.mean())) if len(self.true) else 0.0

    def figures(self) -> dict[str, Any]:
        """Means over pairs, F1 of the means with its 95 % interval over resampled sequences, micro F1, false alarms."""
        low, high = interval(_resampled([self])[0]) if len(self.true) else (0.0, 0.0)
        return {
            "pairs": len(self.true),
            "precision": float(self.precision.mean()) if len(self.true) else 0.0,
            "recall": float(self.recall.mean()) if len(self.true) else 0.0,
            "f1": self.f1(),
            "f1_low": low,
            "f1_high": high,
            "micro_f1": 2 * float(self.common.sum()) / max(float(self.found.sum() + self.true.sum()), 1.0),
            "empty_pairs": len(self.alarms),
            "false_alarms": float(self.alarms.mean()) if len(self.alarms) else None,
        }

    def minus(self, other: Scores) -> dict[str, float]:
        """F1 less the other's on the same pairs, with its 95 % interval: the same sequences are drawn for both."""
        ours, theirs = _resampled([self, other])
        low, high = interval(ours - theirs)
        return {"difference": self.f1() - other.f1(), "low": low, "high": high}


def interval(drawn: Float) -> tuple[float, float]:
    """The middle 95 %."""
    return float(np.quantile(drawn, 0.025)), float(np.quantile(drawn, 0.975))


def _resampled(scores: Sequence[Scores], seed: int = 0) -> list[Float]:
    """F1 of each with whole sequences drawn with replacement, the same ones for all."""
    names, row = np.unique(np.array(scores[0].sequences), return_inverse=True)
    drawn = np.random.default_rng(seed).multinomial(len(names), np.full(len(names), 1 / len(names)), size=RESAMPLES)
    found = []
    for part in scores:
        sums = np.stack([np.bincount(row, of) for of in (part.precision, part.recall, np.ones(len(row)))], axis=1)
        p, r, n = (drawn @ sums).T
        found.append(np.where(p + r > 0, 2 * p * r / np.maximum((p + r) * n, 1e-300), 0.0))
    return found


def score(answers: Answers, truth: Truth, unit: Callable[[str], str] = same) -> Scores:
    """Score what a method says.

    >>> truth = {("s", "a"): Reasons(frozenset("AB"), frozenset("N")), ("s", "b"): Reasons(frozenset())}
    >>> scores = score({("s", "a"): Answer(frozenset("AXN")), ("s", "b"): Answer(frozenset("A"))}, truth)
    >>> scores.precision.tolist(), scores.recall.tolist(), scores.alarms.tolist()
    ([0.5], [0.5], [1.0])
    """
    rows, alarms = [], []
    for pair, reasons in truth.items():
        said, true = named(answers.get(pair, NOTHING).causes, reasons, unit), units(reasons.causes, unit)
        if true:
            rows.append((pair[0], len(said), len(true), len(said & true)))
        else:
            alarms.append(float(bool(said)))
    found, expected, common = (np.array([row[k] for row in rows], float) for k in (1, 2, 3))
    return Scores(tuple(row[0] for row in rows), found, expected, common, np.array(alarms))
