"""Every label listens to a few event types of its own: did they come, again, and which before which?

A network over 29,100 event types learns a training set by heart before it has found the few that matter, because rare
events are a fingerprint of every sequence. What is known to find them is counting: the types that come with a label far
more (or less) often than chance would have it. Each label has a small network over its own shortlist of such types; its
logit is added to what Tf_y says from the whole sequence.

R rows (a sequence up to some token), L tokens, K types a list, Q of them compared by order, I inputs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from oscar_causal.data.batches import Encoded
from oscar_causal.data.sequences import Int64, Ragged
from oscar_causal.data.vocabulary import PAD_ID, SPECIAL_IDS

ORDERED = 12
"""Types at the head of a list whose order is looked at."""
UNITS = 16
"""Hidden units of a label's own network."""
BLOCK = 1 << 16
"""Sequences that are counted at a time."""
LEAST_EXPECTED = 0.05
"""Fewer chance meetings of a type and a label count as this many."""


@dataclass(frozen=True)
class Past:
    """What came up to the tokens that are asked: R rows of L events, padded anywhere."""

    event_ids: Tensor
    """(R, L)"""
    voice: Tensor | None = None
    """(R, L) 1 for an event that is there, less for one that fades, 0 for none; None = all are there."""


class Shortlist(nn.Module):
    """The logits that labels read off their own shortlists."""

    types: Tensor

    def __init__(self, events: int, labels: int, size: int) -> None:
        super().__init__()
        size = min(size, events - SPECIAL_IDS)
        self.events, self.ordered = events, min(ORDERED, size)
        inputs = 2 * size + self.ordered**2
        self.register_buffer("types", torch.arange(SPECIAL_IDS, SPECIAL_IDS + size).repeat(labels, 1))  # (Y, K)
        self.inner = nn.Parameter(0.1 * torch.randn(labels, inputs, UNITS))
        self.inner_bias = nn.Parameter(torch.zeros(labels, UNITS))
        self.outer = nn.Parameter(0.25 * torch.randn(labels, UNITS))
        self.direct = nn.Parameter(torch.zeros(labels, inputs))

    def forward(self, past: Past, labels: Tensor | None = None) -> Tensor:
        """Logits (R, Y') of some or all labels."""
        chosen = slice(None) if labels is None else labels
        with torch.autocast(past.event_ids.device.type, enabled=False):
            features = self.features(past, self.types[chosen])  # (R, Y', I)
            hidden = torch.bmm(features.transpose(0, 1), self.inner[chosen]).transpose(0, 1) + self.inner_bias[chosen]
            return (F.silu(hidden) * self.outer[chosen]).sum(-1) + (features * self.direct[chosen]).sum(-1)

    def features(self, past: Past, types: Tensor) -> Tensor:
        """What each row says about lists of types (Y', K): there, how often more, which before which: (R, Y', I)."""
        slots = torch.zeros(self.events, dtype=torch.int64, device=types.device)
        slots[types.flatten()] = torch.arange(1, types.numel() + 1, device=types.device)  # of a type's many, any one
        wanted, found = slots[types], slots[past.event_ids]  # (Y', K), (R, L)
        voice = torch.ones(found.shape, device=found.device) if past.voice is None else past.voice.float()
        place = torch.arange(1.0, found.shape[1] + 1, device=found.device).expand(found.shape)
        empty = place.new_zeros(len(found), types.numel() + 1)
        there = empty.scatter_reduce(1, found, voice, "amax")[:, wanted]  # (R, Y', K)
        again = torch.log1p(F.relu(empty.scatter_add(1, found, voice)[:, wanted] - 1))
        head = wanted[:, : self.ordered]
        first = (empty + found.shape[1] + 1).scatter_reduce(1, found, place, "amin")[:, head]
        last = empty.scatter_reduce(1, found, place, "amax")[:, head]
        both = there[..., : self.ordered, None] * there[..., None, : self.ordered]
        order = (first[..., :, None] < last[..., None, :]) * both  # (R, Y', Q, Q)
        return torch.cat([there, again, order.flatten(-2)], dim=-1)


def past_in_run(event_ids: Tensor, begins: Tensor, ends: Tensor, longest: int) -> Past:
    """From token `begins` to token `ends` (R,) of runs that stand end to end (T,), none over `longest` tokens.

    >>> past_in_run(torch.tensor([7, 8, 9]), torch.tensor([0, 1]), torch.tensor([1, 1]), 3).event_ids.tolist()
    [[7, 8, 0], [8, 0, 0]]
    """
    at = begins[:, None] + torch.arange(longest, device=event_ids.device)
    return Past(torch.where(at <= ends[:, None], event_ids[at.clamp(max=len(event_ids) - 1)], PAD_ID))


def past_in_rows(event_ids: Tensor, at: Tensor) -> Past:
    """Up to the tokens `at` (B, P) of every row (B, L): B * P rows.

    >>> past_in_rows(torch.tensor([[7, 8, 9]]), torch.tensor([[0, 2]])).event_ids.tolist()
    [[7, 0, 0], [7, 8, 9]]
    """
    inside = torch.arange(event_ids.shape[1], device=event_ids.device) <= at[..., None]  # (B, P, L)
    return Past(torch.where(inside, event_ids[:, None], PAD_ID).flatten(0, 1))


def shortlists(encoded: Encoded, events: int, labels: int, size: int) -> Int64:
    """The `size` types (Y, K) that stray furthest from chance in meeting each label, strongest first.

    Counted once a sequence; straying is (meetings - expected) / sqrt(variance of the expected), of either sign.
    """
    labelled = np.flatnonzero(encoded.labelled)
    total = max(1, len(labelled))
    seen, positives = np.zeros(events), np.zeros(labels)
    meetings = sp.csc_matrix((events, labels))
    for begin in range(0, len(labelled), BLOCK):
        rows = labelled[begin : begin + BLOCK]
        present, targets = _presence(encoded.events, rows, events), _presence(encoded.labels, rows, labels)
        seen += np.asarray(present.sum(0), np.float64).ravel()
        positives += np.asarray(targets.sum(0), np.float64).ravel()
        meetings = meetings + (present.T @ targets).tocsc()
    lists = np.empty((labels, min(size, events - SPECIAL_IDS)), np.int64)
    for label in range(labels):
        expected = seen * positives[label] / total
        met = meetings[:, [label]].toarray().ravel()
        spread = np.sqrt(np.maximum(expected * (1 - seen / total), LEAST_EXPECTED))
        straying = np.abs(met - expected) / spread
        straying[:SPECIAL_IDS] = -1.0
        lists[label] = np.argsort(-straying, kind="stable")[: lists.shape[1]]
    return lists


def _presence(lists: Ragged, rows: Int64, columns: int) -> sp.csr_matrix:
    """(sequences, columns): 1 where an id occurs in a sequence."""
    chosen = lists.take(rows)
    shape = (len(rows), columns)
    counts = sp.csr_matrix((np.ones(len(chosen.ids)), chosen.ids, chosen.offsets), shape=shape)
    counts.sum_duplicates()
    counts.data[:] = 1.0
    return counts
