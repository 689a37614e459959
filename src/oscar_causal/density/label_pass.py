"""One density and nothing else: the passes that discovery asks for, without the work whose result nobody reads.

Of Tf_y the last label block has queries and a feed-forward layer only at the tokens that are asked, and h^x is left out
where the label blocks do not look at it. Blocks may live in a lower precision than the tables (`compiled.Body`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, cast

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from oscar_causal.data.vocabulary import START_ID
from oscar_causal.density.interface import Contexts
from oscar_causal.density.transfer import send, send_together
from oscar_causal.density.transformer import Blend, Block, Network, Tokens, rotary_table, tokens_at


class Bag(Protocol):
    """What adds the running sum of event vectors to a state."""

    def added(self, state: Tensor, tokens: Tokens, blend: Blend | None = None) -> Tensor:
        """The state with it."""


class Blocks(Protocol):
    """What a network consists of below its heads."""

    @property
    def embedding(self) -> nn.Module:
        """Events with their times and channels."""

    @property
    def bag(self) -> Bag:
        """Running sum of event vectors."""

    @property
    def blocks(self) -> nn.ModuleList:
        """Backbone."""

    @property
    def norm_x(self) -> nn.RMSNorm:
        """Norm of the backbone's last state."""

    @property
    def label_blocks(self) -> nn.ModuleList:
        """Blocks of Tf_y."""

    @property
    def norm_y(self) -> nn.RMSNorm:
        """Norm of their last state."""


def event_states(network: Network, tokens: Tokens, body: Blocks | None = None) -> Tensor:
    """h^x at all tokens (B, L, D): `network(tokens)[0]`. `body`: blocks that stand in for the network's own."""
    body = body or cast(Blocks, network)
    return cast(Tensor, body.norm_x(_backbone(network, tokens, body, None).state))


def label_states(
    network: Network,
    tokens: Tokens,
    at: Tensor | None = None,
    body: Blocks | None = None,
    blend: Blend | None = None,
) -> Tensor:
    """h^y at the tokens `at` (B, P) of every row: (B, P, D), or at all tokens: (B, L, D).

    Equal to `network(tokens, blend)[1]` there, up to rounding. `body`: blocks that stand in for the network's own.
    """
    body = body or cast(Blocks, network)
    found = _backbone(network, tokens, body, blend)
    crossed = network.config.label_form == "cross"
    memory = body.norm_x(found.state) if crossed else found.state
    state = body.bag.added(found.start if crossed else found.state, tokens, blend)
    for block in body.label_blocks[:-1] if at is not None else body.label_blocks:
        state = block(state, found.rotation, tokens, memory=memory)
    if at is not None:
        last = cast("list[Block]", body.label_blocks[-1:])
        state = last[0].at(state, found.rotation, at, memory) if len(last) else tokens_at(state, at)
    return cast(Tensor, body.norm_y(state))


@dataclass(frozen=True)
class _Backbone:
    """What the backbone makes of tokens."""

    start: Tensor
    """(B, L, D) the embedded tokens."""
    rotation: Tensor
    """(L, 1, 2, D / H)"""
    state: Tensor
    """(B, L, D) after the last block."""


def _backbone(network: Network, tokens: Tokens, body: Blocks, blend: Blend | None) -> _Backbone:
    start = body.embedding(tokens, blend).to(body.norm_y.weight.dtype)
    rotation = rotary_table(tokens.positions, network.config.width // network.config.heads)
    state = start.clone() if network.config.label_form == "cross" else start  # blocks may write over what they get
    for block in body.blocks:
        state = block(state, rotation, tokens)
    return _Backbone(start, rotation, state)


@dataclass(frozen=True)
class Sent:
    """Contexts of one sequence with their start token, where the network lives."""

    event_ids: Tensor
    """(N, L + 1)"""
    beside: Tensor
    """(L + 1, 2 + C) seconds since the event before and since the start, channels: the same for all contexts."""
    channels: Tensor | None = None
    """(N, L + 1, C) channels where each context has its own."""


def sent_together(parts: Sequence[Contexts], device: torch.device) -> list[Sent]:
    """Contexts of several sequences; what lies on the host goes over in one copy."""
    beside = send_together([_beside(part) for part in parts], device)
    here = [k for k, part in enumerate(parts) if part.event_ids.device.type == "cpu"]
    gone = dict(zip(here, send_together([parts[k].event_ids.flatten() for k in here], device), strict=True))
    ids = [gone[k].view(part.event_ids.shape) if k in gone else part.event_ids for k, part in enumerate(parts)]
    started = (F.pad(each, (1, 0), value=START_ID) for each in ids)
    return [Sent(*each) for each in zip(started, beside, (_own_channels(part, device) for part in parts), strict=True)]


def _own_channels(contexts: Contexts, device: torch.device) -> Tensor | None:
    if contexts.channels.dim() == 2:
        return None
    return F.pad(send(contexts.channels, device), (0, 0, 1, 0), value=torch.nan)


def _beside(contexts: Contexts) -> npt.NDArray[np.float32]:
    times = contexts.times.cpu().numpy()
    beside = np.zeros((len(times) + 1, 2 + contexts.channels.shape[-1]), np.float32)
    beside[2:, 0] = np.diff(times.astype(np.float64))
    beside[1:, 1] = times
    beside[:, 2:] = np.nan
    if contexts.channels.dim() == 2:
        beside[1:, 2:] = contexts.channels.cpu().numpy()
    return beside


def context_tokens(contexts: Contexts, device: torch.device) -> Tokens:
    """Contexts with their start token: event ids (N, L + 1); times in one row that all contexts share."""
    (sent,) = sent_together([contexts], device)
    tokens = tokens_of(sent.event_ids, sent.beside[None])
    return tokens if sent.channels is None else replace(tokens, channels=sent.channels)


def tokens_of(event_ids: Tensor, beside: Tensor) -> Tokens:
    """Network input: event ids (B, L), and beside them times and channels (B or 1, L, 2 + C)."""
    positions = torch.arange(event_ids.shape[1], device=event_ids.device)
    return Tokens(event_ids, beside[..., 0], beside[..., 1], beside[..., 2:], positions)
