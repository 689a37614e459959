"""Events taken out instead of replaced, for models without a next-event density.

Contexts are shorter than the sequence then, and a gap in time closes. Valid for label models that have met sequences
with such holes: sets or bags of events, models trained with events dropped at random, functions that do not look at
times. A model trained on whole sequences alone answers about sequences unlike any it has seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from oscar_causal.data.vocabulary import UNKNOWN_ID, Vocabulary
from oscar_causal.density.interface import Contexts, LabelDensity


@dataclass(frozen=True, eq=False)
class Deleting:
    """A label density that leaves out events marked as deleted, and a law that marks whatever is replaced.

    The mark is one more event id behind the model's own. Implements both protocols of `density.interface`.
    """

    labels: LabelDensity

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The model's own and the mark."""
        own = self.labels.vocabulary
        return Vocabulary((*own.events, "<deleted>"), own.labels)

    @property
    def mark(self) -> int:
        """The id of a deleted event."""
        return self.labels.vocabulary.size

    @property
    def max_length(self) -> int:
        """Longest sequence (in events) the model takes."""
        return self.labels.max_length

    @property
    def min_context(self) -> int:
        """Fewest events after which label probabilities mean something."""
        return self.labels.min_context

    def event_probs(self, sequence: Contexts) -> Tensor:
        """Whatever is replaced becomes the mark: (L, V + 1)."""
        law = torch.zeros(sequence.event_ids.shape[1], self.mark + 1, device=sequence.event_ids.device)
        law[:, self.mark] = 1.0
        return law

    def label_probs(self, contexts: Contexts, labels: Tensor, positions: Tensor) -> Tensor:
        """P(label | what is left of the first `positions[p]` events): (N, P, Y').

        Contexts that miss the same positions share a pass; each other pattern has times of its own and is asked alone.
        """
        kept = contexts.event_ids != self.mark  # (N, L)
        patterns, owner = torch.unique(kept, dim=0, return_inverse=True)
        answers: list[Tensor | None] = [None] * len(kept)
        for k, pattern in enumerate(patterns):
            rows = (owner == k).nonzero()[:, 0]
            left = _left(contexts, rows, pattern.to(contexts.event_ids.device))
            counts = torch.cat([torch.zeros(1, dtype=torch.int64), pattern.cpu().cumsum(0)])[positions.cpu()]
            probs = self.labels.label_probs(left, labels, counts if pattern.any() else torch.ones_like(counts))
            for row, answer in zip(rows.tolist(), probs, strict=True):
                answers[row] = answer
        return torch.stack([answer for answer in answers if answer is not None])


def _left(contexts: Contexts, rows: Tensor, pattern: Tensor) -> Contexts:
    """The rows without their deleted positions; where nothing is left, one unknown event at the last time."""
    if not pattern.any():
        ids = torch.full((len(rows), 1), UNKNOWN_ID, dtype=torch.int64, device=contexts.event_ids.device)
        return Contexts(ids, contexts.times[-1:], contexts.rows(rows).channels[..., -1:, :])
    where = pattern.to(contexts.times.device)
    channels = contexts.rows(rows).channels[..., where, :]
    return Contexts(contexts.event_ids[rows][:, pattern], contexts.times[where], channels)
