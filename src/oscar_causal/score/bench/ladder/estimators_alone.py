"""Estimators that the ladder sets beside the product's: one score for each event type, a cause from a threshold on.

Each is an own estimator of `discover`: (model, sequence, labels, stream) -> evidence. All replace event types by draws
of the model's next-event density, as `intervention` does; types that the model does not know are left alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from oscar_causal.data.vocabulary import UNKNOWN_ID
from oscar_causal.density.interface import Contexts
from oscar_causal.discovery.boundary import EventEvidence
from oscar_causal.discovery.contexts import Bool, Float64, Int64, Stream
from oscar_causal.discovery.finalists import FADED, WORTH, rank_by_slopes
from oscar_causal.discovery.prefix import PrefixConfig
from oscar_causal.discovery.subject import Subject, prepare, respond
from oscar_causal.score.bench.ladder.kernel_shap import coalitions, kernel_values
from oscar_causal.score.bench.perturbations import prefix_moves, shapley_values

DELTA = 0.05
"""The smallest fall of P(label) that counts: the default of `intervention`, and of the truth."""
DRAWS = 3
HALF = 0.5
"""Default threshold of methods that rank and name none: half of the strongest score."""
PERMUTATIONS = 8
"""Orders in which Shapley sampling adds the types."""
SAMPLES = 2048
"""Coalitions of the kernel scheme, beside two for each type: the default of SHAP."""

Evidence = list[list[EventEvidence]]


def leave_one_out(model: Any, sequence: Contexts, labels: Int64, stream: Stream) -> Evidence:
    """Mean fall of P(label) when one event type is replaced, over three draws; a cause from delta on."""
    subject = _subject(model, sequence, stream)
    count = len(subject.types)
    masks = np.concatenate([np.zeros((1, count), bool), np.tile(np.eye(count, dtype=bool), (DRAWS, 1))])
    outcomes = respond(model, subject, masks, labels, "leave-one-out")
    fall = outcomes[0] - outcomes[1:].reshape(DRAWS, count, -1).mean(0)
    return _evidence(model, subject, fall, fall >= DELTA)


def slopes_alone(model: Any, sequence: Contexts, labels: Int64, stream: Stream) -> Evidence:
    """Slopes of the log odds where events have faded by 0.05 and 0.4; a cause from 0.4 of the strongest on."""
    subject = _subject(model, sequence, stream)
    pull = _pull(model, subject, labels, FADED)
    return _evidence(model, subject, pull, _from_share(pull, WORTH, np.abs(pull)))


def input_x_gradient(model: Any, sequence: Contexts, labels: Int64, stream: Stream) -> Evidence:
    """Gradient of the log odds at the sequence itself times (event vector - mean of its replacements), summed over the
    occurrences of a type; a cause from half of the strongest on.
    """
    subject = _subject(model, sequence, stream)
    pull = _pull(model, subject, labels, (0.0,))
    return _evidence(model, subject, pull, _from_share(pull, HALF, pull))


def shapley_sampling(model: Any, sequence: Contexts, labels: Int64, stream: Stream) -> Evidence:
    """Shapley values of "type kept" for P(label) by random orders; a cause from half of the strongest on."""
    subject = _subject(model, sequence, stream)
    values = shapley_values(model, subject, labels, PERMUTATIONS)
    return _evidence(model, subject, values, _from_share(values, HALF, values))


def kernel_shap(model: Any, sequence: Contexts, labels: Int64, stream: Stream) -> Evidence:
    """The same by TimeSHAP's scheme: a weighted regression of P(label) on which types were kept, over coalitions."""
    subject = _subject(model, sequence, stream)
    count = len(subject.types)
    kept, weights = coalitions(count, 2 * count + SAMPLES, Stream(stream.seed, stream.sequence_id, "coalitions"))
    ends = np.array([[False] * count, [True] * count])  # nothing replaced, everything replaced
    outcomes = respond(model, subject, np.concatenate([ends, ~kept]), labels, "kernel")
    values = kernel_values(kept, weights, outcomes[2:], outcomes[1], outcomes[0])
    return _evidence(model, subject, values, _from_share(values, HALF, values))


@dataclass(frozen=True)
class PrefixMoves:
    """`prefix` as a score, for choosing k: by how many standard deviations a type's best position exceeds the mean."""

    config: PrefixConfig

    def __call__(self, model: Any, sequence: Contexts, labels: Int64, stream: Stream) -> Evidence:
        """A cause from the k of the settings on."""
        subject = _subject(model, sequence, stream)
        if len(subject.event_ids) <= self.config.context + 1:
            return [[] for _ in labels]
        scores, _ = prefix_moves(model, subject, labels, self.config)
        return _evidence(model, subject, scores, scores > self.config.threshold)


def _subject(model: Any, sequence: Contexts, stream: Stream) -> Subject:
    excluded = frozenset({UNKNOWN_ID})
    return prepare(model, sequence, sequence_id=stream.sequence_id, seed=stream.seed, shuffle=True, excluded=excluded)


def _pull(model: Any, subject: Subject, labels: Int64, faded: tuple[float, ...]) -> Float64:
    pull = rank_by_slopes(model, subject, labels, faded).pull
    assert pull is not None  # noqa: S101 - slopes made it
    return np.where(subject.testable[:, None], pull, 0.0)


def _from_share(scores: Float64, share: float, sizes: Float64) -> Bool:
    """Positive scores from this share of the largest size on, for each label."""
    found: Bool = (scores > 0) & (scores >= share * sizes.max(0, initial=1e-12))
    return found


def _evidence(model: Any, subject: Subject, scores: Float64, causes: Bool) -> Evidence:
    return [
        [
            EventEvidence(
                model.vocabulary.name(int(subject.types[k])),
                subject.places[k],
                "cause" if causes[k, j] else "no effect",
                float(scores[k, j]),
            )
            for k in np.flatnonzero(subject.testable).tolist()
        ]
        for j in range(scores.shape[1])
    ]
