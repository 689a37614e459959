"""The rows of the ladder: each explains the test part of a world and says what it cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from oscar_causal.data.sequences import Dataset, read_dataset
from oscar_causal.data.synthetic.worlds import SqlWorld, World
from oscar_causal.data.synthetic.worlds.write import world_of
from oscar_causal.data.vocabulary import Vocabulary, build_vocabulary
from oscar_causal.density.interface import Contexts
from oscar_causal.density.replacement import marginal
from oscar_causal.density.slopes import PASSES
from oscar_causal.discovery.boundary import EventEvidence
from oscar_causal.discovery.contexts import Bool, Float64, Int64, Stream
from oscar_causal.discovery.finalists import WORTH, rank_by_slopes
from oscar_causal.discovery.intervention import InterventionConfig
from oscar_causal.discovery.oneshot import DiscoveryConfig, discover
from oscar_causal.discovery.subject import Subject, prepare, respond
from oscar_causal.score.bench.ladder.truth import Found, PairTruth, read_truth
from oscar_causal.score.bench.true_model import TrueModel
from oscar_causal.score.matching import Pair

DELTA = 0.05
"""The smallest fall of P(label) that counts: the default of `intervention`, and of the truth."""
DRAWS = 3


@dataclass(frozen=True)
class Stand:
    """A world on disk, as a row needs it."""

    folder: Path
    sequences: int
    """Test sequences to explain."""

    @cached_property
    def train(self) -> Dataset:
        """The training part."""
        return read_dataset(self.folder / "train")

    @cached_property
    def test(self) -> Dataset:
        """The sequences to explain."""
        return read_dataset(self.folder / "test").take(np.arange(self.sequences))

    @cached_property
    def truth(self) -> dict[Pair, PairTruth]:
        """Reasons of the sequences to explain."""
        return read_truth(self.test)

    @property
    def world(self) -> World | SqlWorld:
        """The world that made the sequences."""
        made = self.test.info["generator"]
        return world_of(made["kind"], made["seed"])

    def true_model(self) -> TrueModel:
        """The world's own probabilities as the label model."""
        vocabulary = build_vocabulary(self.train)
        return TrueModel(self.world, vocabulary, marginal(self.train, vocabulary), self.test)


@dataclass(frozen=True)
class Answer:
    """What a row found, and the forward passes of the label model it took for a sequence (None: it asks no model)."""

    found: Found
    passes: float | None


Method = Callable[[Stand], Answer]


def with_true_probabilities(config: DiscoveryConfig) -> Method:
    """An estimator of `oscar discover` with a perfect label model."""

    def explain(stand: Stand) -> Answer:
        model = Counting(stand.true_model())
        found: dict[Pair, frozenset[str]] = {}
        for boundaries in discover(model, stand.test, config):
            for item in boundaries:
                found[item.sequence_id, item.label] = frozenset(
                    part.event for part in item.evidence if part.verdict == "cause"
                )
        return Answer(found, model.passes / len(stand.test))

    return explain


class Counting:
    """A model that counts forward passes; a pass forward and back counts as three."""

    def __init__(self, model: TrueModel) -> None:
        self.model, self.passes = model, 0

    vocabulary: Vocabulary = property(lambda self: self.model.vocabulary)  # type: ignore[assignment]
    max_length: int = property(lambda self: self.model.max_length)  # type: ignore[assignment]
    min_context: int = property(lambda self: self.model.min_context)  # type: ignore[assignment]
    channels: tuple[str, ...] = property(lambda self: self.model.channels)  # type: ignore[assignment]

    def label_probs(self, contexts: Contexts, labels: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """See `TrueModel`."""
        self.passes += len(contexts.event_ids)
        return self.model.label_probs(contexts, labels, positions)

    def event_probs(self, sequence: Contexts) -> torch.Tensor:
        """See `TrueModel`."""
        return self.model.event_probs(sequence)

    def label_slopes(self, sequence: Contexts, labels: torch.Tensor, law: torch.Tensor, shares: Any) -> torch.Tensor:
        """See `TrueModel`."""
        self.passes += PASSES * len(labels) * len(shares)
        return self.model.label_slopes(sequence, labels, law, shares)


def leave_one_out(model: Any, sequence: Contexts, labels: Int64, stream: Stream) -> list[list[EventEvidence]]:
    """Mean fall of P(label) when one event type is replaced, over three draws; a cause from delta on."""
    subject = _subject(model, sequence, stream)
    count = len(subject.types)
    masks = np.concatenate([np.zeros((1, count), bool), np.tile(np.eye(count, dtype=bool), (DRAWS, 1))])
    outcomes = respond(model, subject, masks, labels, "leave-one-out")
    fall = outcomes[0] - outcomes[1:].reshape(DRAWS, count, -1).mean(0)
    return _evidence(model, subject, fall, fall >= DELTA)


def slopes_alone(model: Any, sequence: Contexts, labels: Int64, stream: Stream) -> list[list[EventEvidence]]:
    """Slopes of the log odds where events have faded by 0.05 and 0.4; a cause from 0.4 of the strongest on."""
    subject = _subject(model, sequence, stream)
    pull = rank_by_slopes(model, subject, labels, (0.05, 0.4)).pull
    assert pull is not None  # noqa: S101
    strongest = np.abs(pull).max(0, initial=1e-12)
    return _evidence(model, subject, pull, (pull >= WORTH * strongest) & (pull > 0))


def _subject(model: Any, sequence: Contexts, stream: Stream) -> Subject:
    return prepare(model, sequence, sequence_id=stream.sequence_id, seed=stream.seed, shuffle=True)


def _evidence(model: Any, subject: Subject, effects: Float64, causes: Bool) -> list[list[EventEvidence]]:
    names = [model.vocabulary.name(int(t)) for t in subject.types]
    places = [tuple(int(i) for i in np.flatnonzero(subject.owner == k)) for k in range(len(names))]
    return [
        [
            EventEvidence(name, place, "cause" if causes[k, j] else "no effect", float(effects[k, j]))
            for k, (name, place) in enumerate(zip(names, places, strict=True))
        ]
        for j in range(effects.shape[1])
    ]


def perfect_boundary(stand: Stand) -> Answer:
    """Each label's true causes, read by presence: what no global boundary can beat."""
    world, found = stand.world, {}
    names = {m.label: {world.event_names[m.types[t]] for t in m.causes} for m in world.mechanisms}
    for i in range(len(stand.test)):
        present = set(stand.test.events_of(i))
        for label in stand.test.labels_of(i):
            found[stand.test.sequence_ids[i].as_py(), label] = frozenset(names[label] & present)
    return Answer(found, None)


METHODS: dict[str, Method] = {
    "perfect boundary by presence": perfect_boundary,
    "true P: slopes alone": with_true_probabilities(DiscoveryConfig(estimator=slopes_alone)),
    "true P: leave-one-out": with_true_probabilities(DiscoveryConfig(estimator=leave_one_out)),
    "true P: prefix": with_true_probabilities(DiscoveryConfig(estimator="prefix")),
    "true P: tested only": with_true_probabilities(DiscoveryConfig(intervention=InterventionConfig(tested_only=True))),
    "true P: intervention": with_true_probabilities(DiscoveryConfig()),
    "true P: intervention N=256": with_true_probabilities(
        DiscoveryConfig(intervention=InterventionConfig(contexts=256))
    ),
}
"""Row -> method, from the simplest on."""
