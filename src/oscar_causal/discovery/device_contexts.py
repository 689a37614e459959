"""Contexts built where the model lives: uniforms, draws and the order inside timestamps, on any device.

Bit by bit what numpy makes of the same stream (`contexts.Stream`), so the device a context is built on changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from oscar_causal.density.hopper import has_triton
from oscar_causal.density.transfer import send

if TYPE_CHECKING:
    from oscar_causal.discovery.contexts import Stream

RUN = 128
"""Types whose probabilities are added up in a row."""
_GOLDEN, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def stacked_uniforms(parts: Sequence[tuple[Stream, int, int]], columns: int, device: torch.device | str) -> Tensor:
    """Some rows of several streams (stream, first row, rows) one below the other, made at once: (all rows, columns).

    >>> from oscar_causal.discovery.contexts import Stream
    >>> stream = Stream(0, "car 1", "masks")
    >>> bool((stacked_uniforms([(stream, 0, 4)], 3, "cpu").numpy() == stream.uniforms(4, 3)).all())
    True
    """
    counts = [rows for _, _, rows in parts]
    keys = np.array([stream.key for stream, _, _ in parts], np.uint64).reshape(-1, 2).view(np.int64)
    numbers = [np.arange(first_row, first_row + rows) for _, first_row, rows in parts]
    table = np.column_stack([np.concatenate(numbers), np.repeat(keys, counts, axis=0)])  # (all rows, 3)
    row, first, second = send(table, torch.device(device)).T[..., None]  # (all rows, 1) each
    column = torch.arange(columns, device=device)
    mixed = _mix(_mix(row * _signed(_GOLDEN) + first) ^ (column * _signed(_GOLDEN) + second))
    return _shifted(mixed, 11).double() * 2.0**-53


def draw_on(law: Tensor, uniforms: Tensor) -> Tensor:
    """Inverse-distribution draws: law (L, V), uniforms (N, L) -> event ids (N, L)."""
    return draw_from(running_sums(law), uniforms, law.shape[1])


def running_sums(law: Tensor) -> Tensor:
    """Of a law (L, V), in float64: (L, V and some more, which add nothing).

    Runs of `RUN` types first, then what comes before each run: a device works on many runs at once.
    """
    if has_kernels(law):
        from oscar_causal.discovery import law_kernels

        return law_kernels.running_sums(law, RUN)
    length, events = law.shape
    sums = law.new_empty((length, -(-events // RUN), RUN), dtype=torch.float64)
    sums.flatten(1)[:, :events], sums.flatten(1)[:, events:] = law, 0.0
    torch.cumsum(sums, -1, out=sums)
    sums[:, 1:] += sums[:, :-1, -1:].cumsum(1)
    return sums.flatten(1)


def has_kernels(law: Tensor) -> bool:
    """Are there kernels of our own for a law of this kind?"""
    return law.is_cuda and law.stride(1) == 1 and has_triton()


def draw_from(cumulated: Tensor, uniforms: Tensor, events: int) -> Tensor:
    """The same from the running sums of a law over so many events: draws take no time then, summing does."""
    wanted = uniforms.T.contiguous() * cumulated[:, -1:]  # (L, N)
    return torch.searchsorted(cumulated, wanted, right=True).clamp(max=events - 1).T


def shuffle_ties(contexts: Tensor, groups: Tensor, uniforms: Tensor) -> Tensor:
    """Reorder events inside each timestamp at random: contexts, uniforms (N, L), groups (L,) or (N, L) timestamps."""
    order = uniforms.argsort(dim=1, stable=True)
    order = order.gather(1, groups.expand(contexts.shape).gather(1, order).argsort(dim=1, stable=True))
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
