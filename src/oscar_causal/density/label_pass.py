"""One density and nothing else: the passes that discovery asks for, without the work whose result nobody reads.

Of Tf_y the last label block has queries and a feed-forward layer only at the tokens that are asked, and h^x is left out
where the label blocks do not look at it. Blocks may live in a lower precision than the tables (`compiled.Body`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, cast

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from oscar_causal.data.vocabulary import START_ID
from oscar_causal.density.interface import Contexts
from oscar_causal.density.transfer import send
from oscar_causal.density.transformer import Attention, Blend, Block, Network, Tokens, rotary_table, rotate


class Blocks(Protocol):
    """What a network consists of below its heads."""

    @property
    def embedding(self) -> nn.Module:
        """Events with their times and channels."""

    @property
    def bag(self) -> nn.Module:
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
    state = (found.start if crossed else found.state) + body.bag(tokens, blend).to(found.start.dtype)
    for block in body.label_blocks[:-1] if at is not None else body.label_blocks:
        state = block(state, found.rotation, tokens, memory=memory)
    if at is not None:
        last = cast("Block | None", body.label_blocks[-1] if len(body.label_blocks) else None)
        state = _block_at(last, state, found.rotation, at, memory)
    return cast(Tensor, body.norm_y(state))


@dataclass(frozen=True)
class _Backbone:
    """What the backbone makes of tokens."""

    start: Tensor
    """(B, L, D) the embedded tokens."""
    rotation: Tensor
    """(L, 1, D / H / 2, 2)"""
    state: Tensor
    """(B, L, D) after the last block."""


def _backbone(network: Network, tokens: Tokens, body: Blocks, blend: Blend | None) -> _Backbone:
    start = body.embedding(tokens, blend).to(body.norm_y.weight.dtype)
    rotation = rotary_table(tokens.positions, network.config.width // network.config.heads)
    state = start
    for block in body.blocks:
        state = block(state, rotation, tokens)
    return _Backbone(start, rotation, state)


def context_tokens(contexts: Contexts, device: torch.device) -> Tokens:
    """Contexts with their start token: event ids (N, L + 1); times and channels in one row that all contexts share."""
    ids = send(contexts.event_ids, device)
    count, length = ids.shape
    elapsed = F.pad(contexts.times.double(), (1, 0))  # (L + 1,)
    gaps = F.pad(elapsed.diff()[1:], (min(2, length + 1), 0))
    channels = F.pad(contexts.channels, (0, 0, 1, 0), value=torch.nan)
    beside = torch.cat([gaps.float()[:, None], elapsed.float()[:, None], channels], dim=1)
    beside = send(beside, device)[None]  # in one copy
    start = torch.full((count, 1), START_ID, dtype=torch.int64, device=device)
    return Tokens(
        torch.cat([start, ids], dim=1),
        beside[..., 0],
        beside[..., 1],
        beside[..., 2:],
        torch.arange(length + 1, device=device),
    )


def _block_at(block: Block | None, state: Tensor, rotation: Tensor, at: Tensor, memory: Tensor) -> Tensor:
    """What the block makes of the tokens `at` (B, P): (B, P, D)."""
    chosen = state[torch.arange(len(at), device=at.device)[:, None], at]  # (B, P, D)
    if block is None:
        return chosen
    queries, known = block.norm_attention(chosen), block.remembered(state, rotation)
    chosen = chosen + _attend_at(block.attention, queries, known, rotation, at)
    if block.cross is not None and block.norm_cross is not None:
        known = block.cross.remembered(memory, rotation)
        chosen = chosen + _attend_at(block.cross, block.norm_cross(chosen), known, rotation, at)
    return block.fed_forward(chosen)


def _attend_at(
    attention: Attention, queries: Tensor, known: tuple[Tensor, Tensor], rotation: Tensor, at: Tensor
) -> Tensor:
    """Attention of the queries (B, P, D) at the tokens `at` to the keys and values of all tokens up to theirs."""
    query = rotate(attention.query(queries).unflatten(-1, (attention.heads, -1)), rotation[at])  # (B, P, H, D/H)
    query, key, value = (x.transpose(1, 2) for x in (query, *known))
    later = torch.arange(key.shape[2], device=at.device) > at[..., None]  # (B, P, L)
    scores = (query @ key.mT).float() * query.shape[-1] ** -0.5  # by hand: fused kernels differ from run to run here
    weights = scores.masked_fill(later[:, None], -torch.inf).softmax(-1).to(value.dtype)
    return cast(Tensor, attention.out((weights @ value).transpose(1, 2).flatten(-2)))
