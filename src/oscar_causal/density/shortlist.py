"""Every label listens to a few event types of its own: did they come, how often, which before which, how soon after?

A network over 29,100 event types learns a training set by heart before it has found the few that matter, because rare
events are a fingerprint of every sequence. What is known to find them is counting (`lists`). Each label has a small
network over its own shortlist of such types; its logit is added to what Tf_y says from the whole sequence.

R rows (a sequence up to some token), L tokens, K types a list, Q of them compared by order and time, W windows of time,
U units.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from oscar_causal.data.batches import Encoded
from oscar_causal.data.sequences import Float64
from oscar_causal.data.vocabulary import PAD_ID, SPECIAL_IDS

if TYPE_CHECKING:
    from oscar_causal.density.transformer import Tokens

ORDERED = 12
"""Types at the head of a list whose number, order and distance in time are looked at."""
OFTEN = 3
"""Repetitions that are told apart: twice, three times, four times or more."""
WINDOWS = 6
"""Lengths of time at which "soon after" is asked."""
SHARPNESS = 4
"""How suddenly a window ends: its answer is 1 / (1 + (time / window) ** 4)."""
UNITS = 16
"""Hidden units of a label's own network."""
PAIR_WEIGHTS = (1 + WINDOWS) * (UNITS + 1)
"""Weights of one pair of types: order and windows, each to every unit and to the logit."""


@dataclass(frozen=True)
class Past:
    """What came up to the tokens that are asked: R rows of L events, padded anywhere."""

    event_ids: Tensor
    """(R, L)"""
    gaps: Tensor
    """(R or 1, L) seconds since the event before; events with one timestamp have no order."""
    elapsed: Tensor
    """(R or 1, L) seconds since the start."""
    voice: Tensor | None = None
    """(R, L) 1 for an event that is there, less for one that fades, 0 for none; None = all are there."""


def input_count(size: int) -> int:
    """Inputs of a label's network over a list of `size` types."""
    ordered = min(ORDERED, size)
    return size + OFTEN * ordered + (1 + WINDOWS) * ordered**2


@dataclass(frozen=True)
class Seen:
    """What rows say about the types of lists (Y', K)."""

    singles: Tensor
    """(R, Y', K + OFTEN * Q): there, and how often."""
    voices: Tensor
    """(R, Y', Q)"""
    ends: tuple[tuple[Tensor, Tensor], ...]
    """Moment and time of the first and of the last event of each type, (R, Y', Q) each."""


class Shortlist(nn.Module):
    """The logits that labels read off their own shortlists."""

    types: Tensor
    windows: Tensor

    def __init__(self, events: int, labels: int, size: int) -> None:
        super().__init__()
        size = min(size, events - SPECIAL_IDS)
        self.events, self.ordered = events, min(ORDERED, size)
        # (Y, K); `events` is no event: an empty place
        self.register_buffer("types", torch.full((labels, size), events))
        self.register_buffer("windows", torch.ones(WINDOWS))  # seconds
        # the last column leads straight to the logit
        self.singles = nn.Parameter(torch.empty(labels, size + OFTEN * self.ordered, UNITS + 1))
        self.pairs = nn.Parameter(torch.empty(labels, self.ordered**2, 1 + WINDOWS, UNITS + 1))
        self.bias = nn.Parameter(torch.zeros(labels, UNITS))
        self.outer = nn.Parameter(torch.empty(labels, UNITS))
        for weights, scale in ((self.singles, 0.1), (self.pairs, 0.03), (self.outer, 0.25)):
            nn.init.normal_(weights, std=scale)
        for weights in (self.singles, self.pairs):
            nn.init.zeros_(weights.data[..., -1])

    def forward(self, past: Past, labels: Tensor | None = None) -> Tensor:
        """Logits (R, Y') of some or all labels; `labels` (Y',), or (R, Y') where each row has its own."""
        with torch.autocast(past.event_ids.device.type, enabled=False):
            sums = self._of_all(past) if labels is None else self._of_chosen(past, labels)
            chosen = slice(None) if labels is None else labels
            hidden = F.silu(sums[..., :-1] + self.bias[chosen])
            return (hidden * self.outer[chosen]).sum(-1) + sums[..., -1]

    def _of_all(self, past: Past) -> Tensor:
        """What reaches the units of every label and its logit: (R, Y, U + 1)."""
        seen = self._look(past, self.types)
        sums = torch.bmm(seen.singles.transpose(0, 1), self.singles).transpose(0, 1)
        return self._add_pairs(sums, seen)

    def _of_chosen(self, past: Past, labels: Tensor) -> Tensor:
        """The same of chosen labels (Y',) or (R, Y'): (R, Y', U + 1)."""
        singles, pairs = self.singles[labels], self.pairs[labels]  # ([R,] Y', ..., U + 1)
        if labels.dim() == 1:
            seen = self._look(past, self.types[labels])
            told = torch.einsum("ryi,yiu->ryu", seen.singles, singles)
            return told + torch.einsum("rypw,ypwu->ryu", self._pair_inputs(seen), pairs)
        seen = self._look_in_rows(past, self.types[labels])  # products would not be the same in any company
        told = (seen.singles.unsqueeze(-1) * singles).sum(-2)
        return told + (self._pair_inputs(seen).unsqueeze(-1) * pairs).flatten(2, 3).sum(-2)

    def _look(self, past: Past, types: Tensor) -> Seen:
        wanted, found, width = self._columns(past, types)  # (Y', K), (R, L)
        voice = torch.ones(found.shape, device=found.device) if past.voice is None else past.voice.float()
        empty = voice.new_zeros(len(found), width)
        there = empty.scatter_reduce(1, found, voice, "amax")[:, wanted]  # (R, Y', K)
        head = wanted[:, : self.ordered]
        number = empty.scatter_add(1, found, voice)[:, head]  # (R, Y', Q)
        often = [(number - k).clamp(0, 1) for k in range(1, OFTEN + 1)]
        ends = []
        for which in ("amin", "amax"):
            clocks = _clocks(past, found.shape)
            both = (empty.scatter_reduce(1, found, of, which, include_self=False) for of in clocks)
            ends.append(tuple(of[:, head] for of in both))
        return Seen(torch.cat([there, *often], dim=-1), there[..., : self.ordered], tuple(ends))  # type: ignore[arg-type]

    def _columns(self, past: Past, types: Tensor) -> tuple[Tensor, Tensor, int]:
        """A column for each type, of lists (Y', K) and of events (R, L), and how many: the fewer of V and Y' * K."""
        if types.numel() > self.events:
            return types, past.event_ids, self.events + 1
        slots = torch.zeros(self.events + 1, dtype=torch.int64, device=types.device)
        slots[types.flatten()] = torch.arange(1, types.numel() + 1, device=types.device)  # of a type's many, any one
        return slots[types], slots[past.event_ids], types.numel() + 1

    def _look_in_rows(self, past: Past, types: Tensor) -> Seen:
        """The same where each row has its own lists (R, Y', K): fixed shapes, and nothing waits for the host."""
        hits = past.event_ids[:, None, None] == types.unsqueeze(-1)  # (R, Y', K, L)
        voices = hits.float() if past.voice is None else hits * past.voice[:, None, None].float()
        there, head = voices.amax(-1), slice(self.ordered)
        number = voices[:, :, head].sum(-1)
        often = [(number - k).clamp(0, 1) for k in range(1, OFTEN + 1)]
        moments, elapsed = (of[:, None, None] for of in _clocks(past, past.event_ids.shape))
        first, last = (
            tuple(_end(hits[:, :, head], of, last=last) for of in (moments, elapsed)) for last in (False, True)
        )
        return Seen(torch.cat([there, *often], dim=-1), there[..., head], (first, last))  # type: ignore[arg-type]

    def _add_pairs(self, sums: Tensor, seen: Seen) -> Tensor:
        """The same for all labels, added: at most a few of them have two of their types in a row."""
        several = torch.nonzero((seen.voices > 0).sum(-1) > 1, as_tuple=True)  # (M,) rows, (M,) labels
        ends = tuple((moment[several], time[several]) for moment, time in seen.ends)
        inputs = self._pair_inputs(replace(seen, voices=seen.voices[several], ends=ends))  # (M, Q * Q, 1 + W)
        which, pair = torch.nonzero(inputs[..., 0], as_tuple=True)  # (E,): the others say nothing
        weights = self.pairs.flatten(0, 1)[several[1][which] * self.ordered**2 + pair]  # (E, 1 + W, U + 1)
        if not len(which):
            return sums + 0 * self.pairs.sum()  # a gradient of 0: processes that train together wait for one
        parts = (inputs[which, pair].unsqueeze(-1) * weights).sum(1)
        lengths = torch.bincount(which, minlength=len(inputs))
        told = torch.segment_reduce(parts, "sum", lengths=lengths, initial=0.0)  # in order, unlike index_add
        return sums.index_put(several, told, accumulate=True)

    def _pair_inputs(self, seen: Seen) -> Tensor:
        """Is the second of two types later than the first, and within each window: (..., Q * Q, 1 + W)."""
        distances = _distances(seen.ends)
        other = 1 - torch.eye(self.ordered, device=distances.device)
        both = seen.voices[..., :, None] * seen.voices[..., None, :] * other * distances.isfinite()
        soon = [both / (1 + (distances / window) ** SHARPNESS) for window in self.windows]
        return torch.stack([both, *soon], dim=-1).flatten(-3, -2)


def _clocks(past: Past, shape: torch.Size) -> tuple[Tensor, Tensor]:
    """Moment and time of every event (R, L); events of one timestamp share their moment."""
    return (past.gaps > 0).cumsum(1).float().expand(shape), past.elapsed.float().expand(shape)


def _end(hits: Tensor, clock: Tensor, *, last: bool) -> Tensor:
    """The clock (R, 1, 1, L) at the first or last hit: (R, Y', Q); infinitely late or early without one."""
    none = -torch.inf if last else torch.inf
    found = torch.where(hits, clock, none)
    return found.amax(-1) if last else found.amin(-1)


def _distances(ends: tuple[tuple[Tensor, Tensor], ...]) -> Tensor:
    """Seconds from a type's first or last event to another's that is later, the least of them: (..., Q, Q).

    Infinite where none is later. Means nothing where one of the two is missing.
    """
    least = ends[0][1].new_full((), torch.inf)
    for (moment, time), (later_moment, later_time) in product(ends, ends):
        behind = later_moment[..., None, :] > moment[..., :, None]
        least = torch.where(behind, later_time[..., None, :] - time[..., :, None], torch.inf).minimum(least)
    return least.clamp(min=0.0)


@torch.no_grad()
def shorten(vectors: Tensor, amount: float) -> None:
    """Shorten every row by so much, to nothing if need be: what does not earn its voice loses it (group lasso)."""
    lengths = vectors.norm(dim=1, keepdim=True)
    vectors.mul_((1 - amount / lengths.clamp(min=1e-12)).clamp(min=0.0))


def past_in_run(tokens: Tokens, begins: Tensor, ends: Tensor, longest: int) -> Past:
    """From token `begins` to token `ends` (R,) of tokens that stand end to end (T,), none over `longest` tokens."""
    at = begins[:, None] + torch.arange(longest, device=begins.device)
    inside, at = at <= ends[:, None], at.clamp(max=tokens.event_ids.numel() - 1)
    ids, gaps, elapsed = (part.flatten()[at] for part in (tokens.event_ids, tokens.gaps, tokens.elapsed))
    return Past(torch.where(inside, ids, PAD_ID), gaps, elapsed)


def past_in_rows(tokens: Tokens, at: Tensor, voice: Tensor | None = None) -> Past:
    """Up to the tokens `at` (B, P) of every row of a rectangle (B, L): B * P rows; `voice` (B * P, L) is taken over."""
    inside = torch.arange(tokens.event_ids.shape[1], device=at.device) <= at[..., None]  # (B, P, L)
    ids = torch.where(inside, tokens.event_ids[:, None], PAD_ID).flatten(0, 1)
    gaps, elapsed = (part[:, None].expand(inside.shape).flatten(0, 1) for part in (tokens.gaps, tokens.elapsed))
    return Past(ids, gaps, elapsed, voice)


def time_windows(encoded: Encoded) -> Float64:
    """Lengths of time (W,), evenly spread on a log scale between the usual gap and the usual length of a sequence.

    Medians over gaps and lengths that are not zero; all 1 where every event has the same time.
    """
    begins, ends = encoded.events.offsets[:-1], encoded.events.offsets[1:]
    gaps = np.diff(encoded.times, prepend=0.0)
    gaps[begins] = 0.0
    spans = encoded.times[ends - 1] - encoded.times[begins]
    if not (gaps > 0).any():
        return np.ones(WINDOWS)
    return np.geomspace(np.median(gaps[gaps > 0]), np.median(spans[spans > 0]), WINDOWS + 2)[1:-1]
