"""`discover` for the service: the same answer as the library, in slices between which others get their turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from oscar_causal.density.folds import MeanModel, ModelSet
from oscar_causal.density.interface import Contexts
from oscar_causal.density.model import OscarModel
from oscar_causal.density.slopes import PASSES
from oscar_causal.discovery.boundary import Boundary
from oscar_causal.discovery.intervention import InterventionConfig
from oscar_causal.discovery.oneshot import DiscoveryConfig, discover
from oscar_causal.serve.payloads import Settings
from oscar_causal.serve.prepared import Prepared, judge

OnPass = Callable[[int], None]
"""Called before each pass with the number of contexts it is worth; may raise to end the work."""


@dataclass(frozen=True)
class SlicedModel:
    """A model that speaks up before each of its forward passes; in all else it is the model.

    Contexts are cut where the model itself would cut them, so every launch has the same shape and gives the same bits.
    """

    model: OscarModel | MeanModel
    on_pass: OnPass

    @property
    def models(self) -> tuple[OscarModel, ...]:
        """The model, or the parts it is the mean of."""
        return self.model.models if isinstance(self.model, MeanModel) else (self.model,)

    def label_probs(self, contexts: Contexts, labels: Tensor, positions: Tensor) -> Tensor:
        """P(label | the first `positions[p]` events): (N, P, Y')."""
        parts: list[Tensor] = []
        done, count, length = 0, len(contexts.event_ids), contexts.event_ids.shape[1] + 1
        while done < count:
            rows = min(count - done, *(part.pieces.rows(length, part.device.type) for part in self.models))
            self.on_pass(rows)
            piece = contexts.rows(slice(done, done + rows))
            parts.append(self.model.label_probs(piece, labels, positions))
            done += rows
        return torch.cat(parts)

    def label_slopes(self, sequence: Contexts, labels: Tensor, law: Tensor, shares: Sequence[float]) -> Tensor:
        """Slopes of the log odds: (S, L, Y'); one share at a time, each worth `PASSES` for every label."""
        parts: list[Tensor] = []
        for share in shares:
            self.on_pass(PASSES * len(labels))
            parts.append(self.model.label_slopes(sequence, labels, law, (share,)))
        return torch.cat(parts)

    def event_probs(self, sequence: Contexts) -> Tensor:
        """P(event i = v | events before i): (L, V)."""
        self.on_pass(0)
        return self.model.event_probs(sequence)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)


def discovery_config(settings: Settings, prepared: Prepared) -> DiscoveryConfig:
    """A client's settings in the library's words."""
    labels: Any = settings.labels
    if labels is None:
        labels = "observed" if prepared.sequence.labels else "predicted"
    return DiscoveryConfig(
        intervention=InterventionConfig(
            contexts=settings.contexts,
            alpha=settings.alpha,
            delta=settings.delta,
            tested_only=settings.tested_only,
        ),
        labels=labels if isinstance(labels, str) else tuple(labels),
        seed=settings.seed,
    )


def explain(models: ModelSet, prepared: Prepared, config: DiscoveryConfig, on_pass: OnPass) -> list[Boundary]:
    """The boundaries of one sequence, with the marks of `quality.json` and of the training."""
    model = SlicedModel(judge(models, prepared.route), on_pass)
    [found] = discover(model, prepared.data, config)
    return [replace(item, trusted=models.trusted(item.label), seen_in_training=prepared.seen) for item in found]
