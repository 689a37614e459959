"""How fast label log odds fall as events fade into their replacements: one pass forward and back for all events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol, TypeGuard

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from oscar_causal.density.interface import Contexts
from oscar_causal.density.shortlist import Past
from oscar_causal.density.transformer import Blend, Network, Tokens

PASSES = 3
"""Forward passes that one pass forward and back costs."""


class Sloped(Protocol):
    """A label density that can be differentiated. Optional: discovery uses it to choose finalists, not to judge."""

    def label_slopes(self, sequence: Contexts, labels: Tensor, law: Tensor, shares: Sequence[float]) -> Tensor:
        """Slopes of the log odds of each label at each position: (S, L, Y'); see `network_slopes`."""


def has_slopes(model: object) -> TypeGuard[Sloped]:
    """Can the model be differentiated?

    Also through a wrapper that hands attributes on: from Python 3.12 on, `isinstance` of a protocol does not see those.

    >>> has_slopes(object())
    False
    """
    return callable(getattr(model, "label_slopes", None))


def network_slopes(
    network: Network, tokens: Tokens, labels: Tensor, law: Tensor, shares: Sequence[float]
) -> Tensor:  # (S, L, Y')
    """How much the log odds of each label fall per share of an event that is exchanged for a draw from `law` (L, V).

    `tokens` is one sequence (1, L + 1) with its start token. A slope is taken where every event has faded by a share:
    at 0 the sequence as it is, further on where causes that hide each other no longer do (their mean is an
    integrated gradient from the sequence to its replacements).
    """
    network_law = law.to(labels.device)
    tables = (network.embedding.events.weight.detach(), network.bag.events.weight.detach())
    events, bag = (replacement_means(network_law, table) for table in tables)
    count, length = len(labels), tokens.event_ids.shape[1]
    wide = {name: getattr(tokens, name) for name in ("event_ids", "gaps", "elapsed", "channels")}
    rows = replace(tokens, **{name: part.expand(count, *part.shape[1:]) for name, part in wide.items()})
    slopes = []
    for share in shares:
        with torch.enable_grad(), sdpa_kernel(SDPBackend.MATH):  # the other kernels' way back is not reproducible
            faded = torch.full((count, length), float(share), dtype=events.dtype, device=labels.device)
            faded[:, 0] = 0.0
            faded.requires_grad_()
            _, hidden_y = network(rows, Blend(faded, events, bag))
            past = Past(rows.event_ids, rows.gaps, rows.elapsed, 1 - faded)
            logits = network.label_logits(hidden_y[:, -1], past, labels).float()  # row j answers for label j
            slopes.append(torch.autograd.grad(logits.diagonal().sum(), faded)[0])
    return -torch.stack(slopes)[:, :, 1:].transpose(1, 2).detach()


def replacement_means(law: Tensor, table: Tensor) -> Tensor:
    """Mean vector of the replacements at every token: (L + 1, K); the start token is never replaced."""
    means = law.to(table.dtype) @ table[: law.shape[1]]
    return torch.cat([means.new_zeros(1, means.shape[1]), means])
