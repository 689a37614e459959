"""Contexts built where the model lives: uniforms, draws and the order inside timestamps, on any device.

Bit by bit what numpy makes of the same stream (`contexts.Stream`), so the device a context is built on changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from oscar_causal.discovery.contexts import Stream

_GOLDEN, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def uniforms_on(stream: Stream, rows: int, columns: int, device: torch.device | str, *, first_row: int = 0) -> Tensor:
    """`stream.uniforms(rows, columns, first_row=first_row)` on a device: (rows, columns), float64.

    >>> from oscar_causal.discovery.contexts import Stream
    >>> stream = Stream(0, "car 1", "masks")
    >>> bool((uniforms_on(stream, 4, 3, "cpu").numpy() == stream.uniforms(4, 3)).all())
    True
    """
    first, second = stream.key
    row = torch.arange(first_row, first_row + rows, device=device)[:, None]
    column = torch.arange(columns, device=device)
    mixed = _mix(_mix(row * _signed(_GOLDEN) + _signed(first)) ^ (column * _signed(_GOLDEN) + _signed(second)))
    return _shifted(mixed, 11).double() * 2.0**-53


def draw_on(law: Tensor, uniforms: Tensor) -> Tensor:
    """Inverse-distribution draws: law (L, V), uniforms (N, L) -> event ids (N, L)."""
    cumulated = law.cumsum(-1)
    wanted = uniforms.T.contiguous() * cumulated[:, -1:]  # (L, N)
    return torch.searchsorted(cumulated, wanted, right=True).clamp(max=law.shape[1] - 1).T


def shuffle_ties(contexts: Tensor, groups: Tensor, uniforms: Tensor) -> Tensor:
    """Reorder events inside each timestamp at random: contexts and uniforms (N, L), groups (L,) timestamp numbers."""
    order = uniforms.argsort(dim=1, stable=True)
    order = order.gather(1, groups[order].argsort(dim=1, stable=True))
    return contexts.gather(1, order)


def _mix(x: Tensor) -> Tensor:
    """The finaliser of SplitMix64; whole numbers of 64 bits wrap in torch as they do in numpy."""
    x = (x ^ _shifted(x, 30)) * _signed(_FIRST)
    x = (x ^ _shifted(x, 27)) * _signed(_SECOND)
    return x ^ _shifted(x, 31)


def _shifted(x: Tensor, bits: int) -> Tensor:
    """A shift to the right that fills with zeros, whatever the sign."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def _signed(value: int) -> int:
    """The same 64 bits read as a signed number."""
    return value - (1 << 64) if value >= 1 << 63 else value
