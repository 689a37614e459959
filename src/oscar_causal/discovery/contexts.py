"""Contexts: variants of one sequence with some of its events replaced. All randomness is a function of
(seed, sequence id, purpose, context, position), so no batch, shard or restart can change it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from oscar_causal.data.keyed import keyed_uniforms
from oscar_causal.data.vocabulary import SPECIAL_IDS, UNKNOWN_ID
from oscar_causal.density.transfer import send
from oscar_causal.discovery.device_contexts import RUN, draw_on, has_kernels

Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Stream:
    """A source of uniforms for one sequence and one purpose."""

    seed: int
    sequence_id: str
    purpose: str

    @property
    def key(self) -> tuple[int, int]:
        """What the stream's numbers are a function of, beside row and column: two numbers of 64 bits."""
        text = f"{self.seed}\0{self.purpose}\0{self.sequence_id}".encode()
        first, second = np.frombuffer(hashlib.blake2b(text, digest_size=16).digest(), np.uint64)
        return int(first), int(second)

    def uniforms(self, rows: int, columns: int, *, first_row: int = 0) -> Float64:
        """Uniforms in [0, 1): entry (n, i) depends on the stream, first_row + n and i alone.

        >>> stream = Stream(0, "car 1", "masks")
        >>> bool((stream.uniforms(4, 3)[2:] == stream.uniforms(2, 3, first_row=2)).all())
        True
        """
        numbers = np.arange(first_row, first_row + rows)[:, None]
        return keyed_uniforms(self.key, numbers, np.arange(columns)[None, :])


def present_types(event_ids: Int64) -> tuple[Int64, Int64]:
    """The distinct event types of a sequence (in order of id) and for each position the index of its type."""
    types, owner = np.unique(event_ids, return_inverse=True)
    return types, owner.reshape(-1)


LEAST = 1e-30
"""Mass that every type has: it decides only where there is no other."""


def without_types(law: Tensor, types: Int64) -> Tensor:
    """The law of each position conditioned on "none of these types": (L, V), rows summing to one.

    Where the given law leaves nothing else, every other event type is equally likely. Where all event types of the
    vocabulary are to be avoided, `unknown` is drawn: the one id that stands for none of them.
    """
    possible = np.ones(law.shape[1], np.float32)
    possible[:SPECIAL_IDS] = 0.0
    possible[types] = 0.0
    if not possible.any():
        possible[UNKNOWN_ID] = 1.0
    allowed = send(possible, law.device)  # made here: asking the device would make it wait
    if has_kernels(law):
        from oscar_causal.discovery.law_kernels import conditioned

        return conditioned(law, allowed, LEAST, RUN)
    left = torch.addcmul(LEAST * allowed, law, allowed)  # (L, V): large, so it is gone through as seldom as possible
    left /= left.sum(-1, keepdim=True, dtype=torch.float64).to(left.dtype)
    return left


def draw(law: Tensor, uniforms: Float64) -> Int64:
    """Inverse-distribution draws: law (L, V), uniforms (N, L) -> event ids (N, L)."""
    return draw_on(law, send(uniforms, law.device)).cpu().numpy()


def replace_types(event_ids: Int64, owner: Int64, masks: Bool, draws: Int64) -> Int64:
    """Contexts (N, L): where `masks` (N, types) marks the type of a position, the draw stands there instead."""
    return np.where(masks[:, owner], draws, event_ids[None, :])


def tie_groups(times: Float64) -> Int64:
    """Number of the timestamp of each position; positions with one number are tied."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.diff(times) > 0)])


def truncate_law(law: Tensor, *, top_k: int | None, top_p: float | None, temperature: float) -> Tensor:
    """Sharpen or flatten a law over real events and keep the most likely ones: (L, V), float64, rows summing to one.

    Nucleus truncation keeps the events up to the one that crosses `top_p`, that one left out, but always the first.
    Where the law leaves no real event any mass, all of them are equally likely.
    """
    logp = law.double().clamp(min=1e-300).log() / temperature
    logp[:, :SPECIAL_IDS] = -torch.inf  # before normalising: a law certain of a special id must not become 0 / 0
    probs = torch.softmax(logp, dim=-1)
    ordered, index = probs.sort(dim=-1, descending=True, stable=True)
    keep = torch.ones_like(ordered, dtype=torch.bool)
    if top_k is not None:
        keep[:, top_k:] = False
    if top_p is not None:
        keep &= ordered.cumsum(-1) <= top_p + 1e-12  # rounding of the sum must not drop the last type
    keep[:, 0] = True
    kept = torch.zeros_like(probs).scatter_(-1, index, ordered * keep)
    return kept / kept.sum(-1, keepdim=True)
