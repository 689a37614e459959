"""Every estimator with the world's own probabilities as the label model: is the model deaf, or the estimator weak?"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

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
from oscar_causal.score.bench.ladder.interface import Explained, Method, Part, answers_of
from oscar_causal.score.bench.true_model import TrueModel

DELTA = 0.05
"""The smallest fall of P(label) that counts: the default of `intervention`, and of the truth."""
DRAWS = 3


def true_model(part: Part) -> TrueModel:
    """The world's own probabilities as the label model."""
    assert part.world is not None  # noqa: S101 - these rows are of worlds alone
    vocabulary = build_vocabulary(part.train)
    return TrueModel(part.world, vocabulary, marginal(part.train, vocabulary), part.test)


def with_true_probabilities(config: DiscoveryConfig) -> Method:
    """An estimator of `oscar discover` with a perfect label model."""

    def explain(part: Part) -> Explained:
        model = Counting(true_model(part))
        boundaries = [item for some in discover(model, part.test, config) for item in some]
        return Explained(answers_of(boundaries), model.passes / len(part.test))

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


METHODS: dict[str, Method] = {
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
