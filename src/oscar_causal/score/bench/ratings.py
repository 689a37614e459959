"""Ratings of the event types of one sequence by some attribution method, and where to cut them.

Most attribution methods rank and leave the threshold to the user. Here it is chosen on validation sequences: the cut
with the best F1 of mean precision and recall.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from oscar_causal.data.batches import Encoded
from oscar_causal.data.sequences import Dataset
from oscar_causal.density.folds import MeanModel, ModelSet
from oscar_causal.density.model import OscarModel, sequence_contexts
from oscar_causal.discovery.contexts import Bool, Float64, Int64
from oscar_causal.discovery.subject import Subject, prepare
from oscar_causal.score.discoveries import Accepted
from oscar_causal.score.matching import Pair, Truth, match, summarise
from oscar_causal.score.scoring import Explained

QUANTILES = 60
SHARES = (0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True)
class Case:
    """One sequence to explain: the model that judges it, its replacement law, its labels (ids)."""

    model: OscarModel | MeanModel
    subject: Subject
    labels: Int64
    encoded: Encoded
    """The sequence alone, in the model's ids."""

    @property
    def networks(self) -> tuple[OscarModel, ...]:
        """The models behind the answer: one, or those whose mean it is."""
        return self.model.models if isinstance(self.model, MeanModel) else (self.model,)

    def by_type(self, by_position: Float64) -> Float64:
        """Ratings of positions (L, Y') added up over the occurrences of each type: (K, Y')."""
        total = np.zeros((len(self.subject.types), by_position.shape[1]))
        np.add.at(total, self.subject.owner, by_position)
        return total


@dataclass(frozen=True)
class Ratings:
    """Of each type for each label; larger is more of a cause."""

    scores: Float64
    """(K, Y')"""
    passes: int
    """Forward passes of the label model; a pass forward and back counts as three. The pass of Tf_x that gives the
    replacement law is not counted, here or for any other method."""


class Method(Protocol):
    """An attribution method."""

    def rate(self, case: Case) -> Ratings:
        """Rate every type that is present."""


@dataclass(frozen=True)
class Rated:
    """The ratings of one explained pair."""

    pair: Pair
    events: tuple[str, ...]
    scores: Float64


def rate_all(method: Method, models: ModelSet, data: Dataset, *, seed: int) -> tuple[list[Rated], list[int]]:
    """Ratings of every observed pair the model knows, and the passes spent on each sequence."""
    rated, passes = [], []
    for row in range(len(data)):
        case = case_of(models, data, row, seed=seed)
        if len(case.labels):
            found = method.rate(case)
            rated += _pairs(case, found)
            passes.append(found.passes)
    return rated, passes


def case_of(models: ModelSet, data: Dataset, row: int, *, seed: int) -> Case:
    """One sequence of a dataset with its observed labels."""
    one = data.take(np.array([row]))
    model = models.for_sequence(one.subject_ids[0].as_py())
    encoded = models.models[0].encode(one)
    subject = prepare(
        model, sequence_contexts(encoded, 0), sequence_id=one.sequence_ids[0].as_py(), seed=seed, shuffle=True
    )
    return Case(model, subject, np.sort(encoded.labels[0]).astype(np.int64), encoded)


def _pairs(case: Case, found: Ratings) -> list[Rated]:
    vocabulary = case.model.vocabulary
    events = tuple(vocabulary.name(int(t)) for t in case.subject.types)
    sequence_id = case.subject.sequence_id
    return [
        Rated((sequence_id, vocabulary.labels[int(label)]), events, found.scores[:, j])
        for j, label in enumerate(case.labels)
    ]


@dataclass(frozen=True)
class Cut:
    """Which ratings make a cause: above a number, or above a share of the pair's largest; never one of 0 or less.

    >>> Cut("share", 0.5).accepts(np.array([4.0, 2.0, 1.0, -8.0])).tolist()
    [True, True, False, False]
    """

    kind: Literal["number", "share"]
    at: float

    def accepts(self, scores: Float64) -> Bool:
        """Mark the accepted types."""
        limit = self.at if self.kind == "number" else self.at * scores.max()
        accepted: Bool = (scores >= limit) & (scores > 0)
        return accepted

    def explain(self, rated: Sequence[Rated]) -> Explained:
        """The boundaries that this cut makes of the ratings."""
        accepted = (
            Accepted(item.pair, item.events[k], "cause")
            for item in rated
            for k in np.flatnonzero(self.accepts(item.scores))
        )
        return Explained(tuple(item.pair for item in rated), tuple(accepted))


def best_cut(rated: Sequence[Rated], truth: Truth) -> tuple[Cut, float]:
    """The cut with the best F1 of mean precision and recall over pairs, and that F1; the first among equals."""
    cuts = [Cut("number", at) for at in _numbers(rated)] + [Cut("share", at) for at in SHARES]
    scored = [f1_of(cut.explain(rated), truth) for cut in cuts]
    best = int(np.argmax(scored))
    return cuts[best], scored[best]


def f1_of(explained: Explained, truth: Truth) -> float:
    """F1 of the mean precision and recall over pairs."""
    scored: Any = summarise(match(explained.found("why"), truth))["sample"]
    return float(scored["f1_of_means"])


def _numbers(rated: Sequence[Rated]) -> list[float]:
    """Quantiles of the positive ratings, denser towards the largest: the causes are few."""
    positive = np.concatenate([item.scores[item.scores > 0] for item in rated])
    if not len(positive):
        return []
    shares = 1 - np.geomspace(1e-3, 1, QUANTILES)
    return [float(number) for number in np.unique(np.quantile(positive, shares))]
