"""Attribution by gradients: input x gradient, integrated gradients.

Gradients are of the label's log odds after the last event, with respect to the vectors of the events (those of the
backbone, those of the running sum that Tf_y reads, and the voices of events in shortlists).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from oscar_causal.data.batches import pad
from oscar_causal.density.model import OscarModel, to_tokens
from oscar_causal.density.shortlist import Past
from oscar_causal.density.slopes import PASSES
from oscar_causal.density.transformer import Blend, Tokens
from oscar_causal.discovery.contexts import Float64
from oscar_causal.score.bench.ratings import Case, Ratings

Vectors = tuple[Tensor, ...]
"""Event vectors of the backbone (1, L + 1, D), of the running sum (1, L + 1, K) and, where labels have shortlists, the
voices of events in them (1, L + 1, 1); start token first."""
Ask = Callable[..., Tensor]
"""Event vectors (B, L + 1, ...) -> log odds of the labels, (B, Y')."""


@dataclass(frozen=True)
class InputTimesGradient:
    """Each event's vector times the slope of the log odds along it."""

    def rate(self, case: Case) -> Ratings:
        """See `Method`."""

        def attribute(ask: Ask, vectors: Vectors, means: Vectors, label: int) -> Vectors:
            slopes = torch.autograd.grad(ask(*vectors)[0, label], vectors)
            return tuple(part * slope for part, slope in zip(vectors, slopes, strict=True))

        return Ratings(_by_gradient(case, attribute), PASSES * len(case.labels))


@dataclass(frozen=True)
class IntegratedGradients:
    """Slopes along the straight line from the mean of an event's replacements to the event (Sundararajan 2017), by
    Gauss-Legendre quadrature."""

    steps: int = 16

    def rate(self, case: Case) -> Ratings:
        """See `Method`."""
        nodes, weights = np.polynomial.legendre.leggauss(self.steps)

        def attribute(ask: Ask, vectors: Vectors, means: Vectors, label: int) -> Vectors:
            device = vectors[0].device
            shares = torch.as_tensor((nodes + 1) / 2, dtype=torch.float32, device=device)[:, None, None]  # (S, 1, 1)
            each = torch.as_tensor(weights / 2, dtype=torch.float32, device=device)[:, None, None]
            lines = [part.detach() - mean for part, mean in zip(vectors, means, strict=True)]
            points = [(mean + shares * line).requires_grad_() for mean, line in zip(means, lines, strict=True)]
            slopes = torch.autograd.grad(ask(*points)[:, label].sum(), points)  # no step looks at another
            return tuple((each * slope).sum(0, keepdim=True) * line for slope, line in zip(slopes, lines, strict=True))

        return Ratings(_by_gradient(case, attribute), PASSES * self.steps * len(case.labels))


def _by_gradient(case: Case, attribute: Callable[[Ask, Vectors, Vectors, int], Vectors]) -> Float64:
    """Attributions of the vectors, added up over features and over the positions of a type: (K, Y')."""
    total = np.zeros((len(case.subject.types), len(case.labels)))
    for model in case.networks:
        tokens = to_tokens(pad(case.encoded, np.array([0])), model.device)
        ask = _log_odds(model, tokens, torch.as_tensor(case.labels, device=model.device))
        vectors, means = event_vectors(model, tokens, case.subject.law)
        with sdpa_kernel(SDPBackend.MATH):  # the other kernels' way back is not reproducible
            parts = [attribute(ask, vectors, means, j) for j in range(len(case.labels))]
        found = torch.stack([sum(part.sum(-1)[0, 1:] for part in three) for three in parts], dim=1)  # type: ignore[misc]
        total += case.by_type(found.detach().double().cpu().numpy())  # (L, Y')
    return total / len(case.networks)


def event_vectors(model: OscarModel, tokens: Tokens, law: Tensor) -> tuple[Vectors, Vectors]:
    """The vectors of the events as they stand, and the means of their replacements (the start token keeps its own)."""
    tables = [table.weight.detach() for table in (model.network.embedding.events, model.network.bag.events)]
    standing = [table[tokens.event_ids].requires_grad_() for table in tables]  # (1, L + 1, D)
    law = law.to(model.device)
    means = [
        torch.cat([own[:, :1].detach(), (law.to(table.dtype) @ table[: law.shape[1]])[None]], dim=1)
        for own, table in zip(standing, tables, strict=True)
    ]
    if model.network.shortlist is not None:
        standing.append(torch.ones(*tokens.event_ids.shape, 1, device=model.device).requires_grad_())
        means.append(torch.zeros(*tokens.event_ids.shape, 1, device=model.device))
    return tuple(standing), tuple(means)


def _log_odds(model: OscarModel, tokens: Tokens, labels: Tensor) -> Ask:
    """Event vectors (B, L + 1, ...) -> log odds of the labels after the last event, (B, Y')."""

    def ask(events: Tensor, bag: Tensor, voice: Tensor | None = None) -> Tensor:
        count = len(events)
        wide = {name: getattr(tokens, name) for name in ("event_ids", "gaps", "elapsed", "channels")}
        rows = replace(tokens, **{name: part.expand(count, *part.shape[1:]) for name, part in wide.items()})
        given = torch.ones(events.shape[:2], dtype=events.dtype, device=events.device)
        _, hidden = model.network(rows, Blend(given, events, bag, channels=False))
        past = Past(rows.event_ids, rows.gaps, rows.elapsed, None if voice is None else voice.squeeze(-1))
        return model.network.label_logits(hidden[:, -1], past, labels).float()

    return ask
