"""A backbone block on a Hopper GPU: eight kernels, four of them products, where nobody asks for a way back."""

from __future__ import annotations

import importlib.util
from functools import cache
from typing import cast

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from oscar_causal.density.transformer import Blend, Block, EventBag, NetworkConfig, Tokens, turning_pairs

HOPPER = (9, 0)
"""Compute capability that the kernels were made for and measured on; other GPUs run compiled blocks."""
HEAD_SIZES = (16, 32, 64, 128)
"""Of these an eighth is a power of two, as tiles want it."""
ALIGNED = 8
"""Numbers of half precision that make 16 bytes: widths are multiples of it, or rows cannot be copied as tiles."""


class HopperBlock(nn.Module):
    """Does what its `Block` does; the state it is given is written over."""

    def __init__(self, block: Block) -> None:
        super().__init__()
        self.block = block
        attention = block.attention
        width, size = attention.query.out_features, attention.query.out_features // attention.heads
        key, value = attention.key_value.weight.chunk(2)
        order = turning_order(size).to(value.device)
        ordered = [part.view(-1, size, width)[:, order].flatten(0, 1) for part in (attention.query.weight, key)]
        self.query_key_value = nn.Parameter(torch.cat([*ordered, value]))  # (3 D, D)
        self.up = nn.Parameter(block.up.weight * block.norm_forward.weight)  # (2 hidden, D)

    def forward(self, state: Tensor, rotation: Tensor, tokens: Tokens, memory: Tensor | None = None) -> Tensor:
        if torch.is_grad_enabled():
            return cast(Tensor, self.block(state, rotation, tokens, memory))
        from oscar_causal.density.kernels import gated_product, inverse_norms, normed, turn

        block, heads, table = self.block, self.block.attention.heads, rotation[:, 0]  # (L, 2, D / H)
        flat = state.view(-1, state.shape[-1])  # (T, D)
        norm = block.norm_attention
        told = normed(flat, norm.weight, eps_of(norm)) @ self.query_key_value.T  # (T, 3 D)
        turn(told, table, 2 * heads, turning_pairs(table.shape[-1]))
        query, key, value = told.view(*state.shape[:2], 3, heads, -1).permute(2, 0, 3, 1, 4)  # (B, H, L, D / H) each
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True).transpose(1, 2)
        flat.addmm_(mixed.reshape(flat.shape), block.attention.out.weight.T)
        inner = gated_product(flat, inverse_norms(flat, eps_of(block.norm_forward)), self.up)  # (T, hidden)
        return flat.addmm_(inner, block.down.weight.T).view(state.shape)


class HopperBag(nn.Module):
    """Adds what its `EventBag` adds in two kernels: running sums, and their product with the state added."""

    def __init__(self, bag: EventBag) -> None:
        super().__init__()
        self.bag = bag

    def added(self, state: Tensor, tokens: Tokens, blend: Blend | None = None) -> Tensor:
        """The state (B, L, D) with the bag."""
        if torch.is_grad_enabled() or blend is not None:
            return self.bag.added(state, tokens, blend)
        from oscar_causal.density.kernels import added_product, running_sums

        sums = running_sums(tokens.event_ids, self.bag.events.weight)  # (B, L, K)
        flat = added_product(state.flatten(0, 1), sums.flatten(0, 1), self.bag.out.weight)
        return flat.view(state.shape)


def turning_order(size: int) -> Tensor:
    """Features of a head with those that turn first, then their partners; scores do not depend on the order.

    >>> turning_order(16).tolist()
    [0, 1, 8, 9, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15]
    """
    first, second = torch.arange(size).view(2, -1)
    pairs = turning_pairs(size)
    return torch.cat([first[:pairs], second[:pairs], first[pairs:], second[pairs:]])


def eps_of(norm: nn.RMSNorm) -> float:
    """What a norm adds below the root."""
    return float(torch.finfo(norm.weight.dtype).eps if norm.eps is None else norm.eps)


def suits(config: NetworkConfig, dtype: torch.dtype, device: torch.device) -> bool:
    """Are there kernels for a network of this shape and precision on this device?"""
    half = dtype in (torch.bfloat16, torch.float16)
    widths = (config.width, config.hidden, 2 * config.bag_size)  # of the bag in single precision
    shaped = not any(width % ALIGNED for width in widths) and config.width // config.heads in HEAD_SIZES
    return half and shaped and device.type == "cuda" and has_triton() and _capability(device) == HOPPER


def _capability(device: torch.device) -> tuple[int, int]:
    return torch.cuda.get_device_capability(device)


@cache
def has_triton() -> bool:
    """Is there a compiler for kernels? It comes with torch where that has CUDA, but not on every system."""
    return importlib.util.find_spec("triton") is not None
