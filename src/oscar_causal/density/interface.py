"""What discovery needs of a model, and nothing more. Anything that has these methods can be explained.

Discovery works on one sequence at a time: N contexts are variants of it with other events at the same times.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, TypeGuard, runtime_checkable

import torch
from torch import Tensor

from oscar_causal.data.vocabulary import Vocabulary
from oscar_causal.density.transfer import send


@dataclass(frozen=True)
class Contexts:
    """N variants of one sequence of L events at its observed times; channel values travel with their event."""

    event_ids: Tensor
    """(N, L) model ids, int64, no start token, no padding."""
    times: Tensor
    """(L,) seconds from the start, float64."""
    channels: Tensor
    """Channel values, float32, NaN = missing: (L, C) where all variants share them, else (N, L, C)."""

    @property
    def device(self) -> str:
        """Where the contexts live."""
        return str(self.event_ids.device)

    def rows(self, which: slice | Tensor) -> Contexts:
        """Some of the variants."""
        channels = self.channels[which] if self.channels.dim() == 3 else self.channels
        return replace(self, event_ids=self.event_ids[which], channels=channels)

    def variants(self, event_ids: Tensor) -> Contexts:
        """Variants (N, L) of this one sequence (N = 1); where another event stands, its channel values are missing."""
        if not self.channels.shape[-1]:
            return replace(self, event_ids=event_ids)
        own = torch.arange(event_ids.shape[1], device=event_ids.device)
        kept = event_ids == send(self.event_ids, event_ids.device)
        return replace(self, event_ids=event_ids, channels=carried(self.channels, torch.where(kept, own, -1)))


def carried(channels: Tensor, sources: Tensor) -> Tensor:
    """Channel values (L, C) moved with their events: (N, L, C) from `sources` (N, L), observed positions, -1 = none."""
    moved = send(channels, sources.device)[sources.clamp(min=0)]  # (N, L, C)
    return moved.masked_fill((sources < 0).unsqueeze(-1), torch.nan)


@runtime_checkable
class LabelDensity(Protocol):
    """Tf_y: probabilities of labels given the first events of a sequence."""

    @property
    def vocabulary(self) -> Vocabulary:
        """Names of events and labels."""

    @property
    def max_length(self) -> int:
        """Longest sequence (in events) the model takes."""

    @property
    def min_context(self) -> int:
        """Fewest events after which label probabilities mean something (the paper's c)."""

    def label_probs(self, contexts: Contexts, labels: Tensor, positions: Tensor) -> Tensor:
        """P(label | the first `positions[p]` events) for chosen labels: (N, P, Y'), float32."""


@runtime_checkable
class EventDensity(Protocol):
    """Tf_x: the law of each event given the events before it."""

    def event_probs(self, sequence: Contexts) -> Tensor:
        """P(event i = v | events before i) at every position of a single sequence (N = 1): (L, V), float32.

        Computed in a launch shape fixed by the sequence's own length, so that no other sequence changes a bit of it.
        """


def has_event_probs(model: object) -> TypeGuard[EventDensity]:
    """Does the model have a next-event density? Also through a wrapper (see `slopes.has_slopes`)."""
    return callable(getattr(model, "event_probs", None))
