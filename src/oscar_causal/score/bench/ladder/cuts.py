"""Where to cut scores into causes and others: chosen by F1 on sequences whose reasons are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from oscar_causal.data.metrics import harmonic
from oscar_causal.score.bench.ladder.interface import Answer, Answers, Truth

SHARES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
TOPS = (1, 2, 3, 5)
QUANTILES = 24
NOTHING = Answer()


@dataclass(frozen=True)
class Cut:
    """Causes: types with a score above 0 that is at least `least`, at least this `share` of the pair's largest, and
    among the `top` largest (equal ones together).

    >>> sorted(Cut(share=0.5).causes({"A": 4.0, "B": 2.0, "C": 1.0, "D": -8.0}))
    ['A', 'B']
    """

    least: float = 0.0
    share: float = 0.0
    top: int | None = None

    def causes(self, scores: dict[str, float]) -> frozenset[str]:
        """The types that pass."""
        ranked = sorted(scores.values(), reverse=True)
        largest = ranked[0] if ranked else 0.0
        last = ranked[self.top - 1] if self.top is not None and len(ranked) >= self.top else -np.inf
        limit = max(self.least, self.share * largest, last)
        return frozenset(event for event, score in scores.items() if score > 0 and score >= limit)

    def __call__(self, answers: Answers) -> dict[tuple[str, str], Answer]:
        """The same answers with other causes."""
        return {pair: replace(answer, causes=self.causes(dict(answer.scores))) for pair, answer in answers.items()}


def grid(answers: Answers) -> Iterator[Cut]:
    """Shares, numbers of causes, and quantiles of the positive scores, denser towards the largest."""
    yield from (Cut(share=share) for share in SHARES)
    yield from (Cut(top=top) for top in TOPS)
    scores = np.array([score for answer in answers.values() for score in answer.scores.values() if score > 0])
    if len(scores):
        least = np.unique(np.quantile(scores, 1 - np.geomspace(1e-3, 1, QUANTILES)))
        yield from (Cut(least=float(number)) for number in least)


def f1(answers: Answers, truth: Truth, unit: Callable[[str], str]) -> float:
    """F1 of the mean precision and the mean recall over all pairs with a cause; nothing named is 0 and 0."""
    rows = []
    for pair, reasons in truth.items():
        causes = set(map(unit, reasons.causes))
        named = set(map(unit, answers.get(pair, NOTHING).causes)) - (set(map(unit, reasons.unknown)) - causes)
        if causes:
            common = len(named & causes)
            rows.append((common / len(named) if named else 0.0, common / len(causes)))
    return harmonic(*map(float, np.mean(rows, axis=0))) if rows else 0.0
