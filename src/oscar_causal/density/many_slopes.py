"""Slopes of many sequences at once: every (sequence, label) is a row of a launch whose shape its length decides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from oscar_causal.density.compiled import CompiledNetwork, empty_rows, padded_length
from oscar_causal.density.interface import Contexts
from oscar_causal.density.label_pass import Blocks, Sent, label_states, sent_together, tokens_of
from oscar_causal.density.shortlist import past_in_rows
from oscar_causal.density.slopes import replacement_means
from oscar_causal.density.transfer import send
from oscar_causal.density.transformer import Blend, Network

LAUNCH_TOKENS = 1 << 12
"""Tokens of a pass forward and back: every block keeps its states and (L, L) attention until the way back."""


@dataclass(frozen=True)
class SlopeQuestion:
    """The arguments of `Sloped.label_slopes`."""

    sequence: Contexts
    labels: Tensor
    law: Tensor
    shares: Sequence[float]


@dataclass(frozen=True)
class _Row:
    """One (sequence, label)."""

    contexts: Sent
    means: tuple[Tensor, Tensor]  # (L + 1, D), (L + 1, K)
    label: Tensor


def slopes_together(owner: CompiledNetwork, questions: Sequence[SlopeQuestion]) -> list[Tensor]:
    """`network_slopes` of every question: (S, L, Y') each. Questions with the same shares share launches."""
    answers: dict[int, Tensor] = {}
    kinds: dict[tuple[tuple[float, ...], int], list[int]] = {}
    for k, question in enumerate(questions):
        tokens = padded_length(question.sequence.event_ids.shape[1] + 1)
        kinds.setdefault((tuple(question.shares), tokens), []).append(k)
    for (shares, tokens), mine in kinds.items():
        for k, slopes in _of_one_shape(owner, {k: questions[k] for k in mine}, shares, tokens):
            answers[k] = slopes
    return [answers[k] for k in range(len(questions))]


def _of_one_shape(
    owner: CompiledNetwork, questions: dict[int, SlopeQuestion], shares: tuple[float, ...], tokens: int
) -> Iterator[tuple[int, Tensor]]:
    sent = sent_together([question.sequence for question in questions.values()], owner.device)
    asked = zip(questions.values(), sent, strict=True)
    rows = [row for question, contexts in asked for row in _rows(owner.network, question, contexts)]
    done: list[Tensor] = []  # (S, n, T) each
    begin = 0
    while begin < len(rows):
        size = max(1, min(LAUNCH_TOKENS // tokens, owner.pieces.rows(tokens, owner.device.type)))
        try:
            done.append(_launch(owner, tokens, size).slopes(rows[begin : begin + size], shares))
        except torch.OutOfMemoryError:
            if size == 1:
                raise
            owner.sloping.clear()
            owner.pieces.halve(size)
            continue
        begin += size
    slopes = torch.cat(done, dim=1)
    begin = 0
    for k, question in questions.items():
        count, length = len(question.labels), question.sequence.event_ids.shape[1]
        yield k, slopes[:, begin : begin + count, 1 : length + 1].transpose(1, 2)
        begin += count


def _rows(network: Network, question: SlopeQuestion, contexts: Sent) -> Iterator[_Row]:
    device = network.label_head.weight.device
    law = send(question.law, device)
    tables = (network.embedding.events.weight.detach(), network.bag.events.weight.detach())
    events, bag = (replacement_means(law, table) for table in tables)
    for label in send(question.labels, device):
        yield _Row(contexts, (events, bag), label)


def _launch(owner: CompiledNetwork, tokens: int, rows: int) -> SlopeLaunch:
    if (tokens, rows) not in owner.sloping:
        owner.sloping[tokens, rows] = SlopeLaunch(owner, tokens, rows)
    launch: SlopeLaunch = owner.sloping[tokens, rows]
    return launch


class SlopeLaunch:
    """One shape: its input, where it always lies, and on CUDA the recorded way forward and back."""

    def __init__(self, owner: CompiledNetwork, tokens: int, rows: int) -> None:
        self.owner = owner
        network, device = owner.network, owner.device
        self.event_ids, self.beside = empty_rows(network, rows, tokens)
        self.input = tokens_of(self.event_ids, self.beside)
        tables = (network.embedding.events.weight, network.bag.events.weight)
        self.means = tuple(torch.zeros(rows, tokens, table.shape[1], device=device) for table in tables)
        self.labels = torch.zeros(rows, dtype=torch.int64, device=device)
        self.ends = torch.zeros(rows, 1, dtype=torch.int64, device=device)
        self.share = torch.zeros((), device=device)
        self._ask = owner.lanes[0].recorded(self._compute)

    def slopes(self, rows: Sequence[_Row], shares: Sequence[float]) -> Tensor:
        """Slopes of the rows at every share: (S, n, T)."""
        for place, row in enumerate(rows):
            self._fill(place, row)
        found = []
        for share in shares:
            self.share.fill_(share)
            found.append(self._ask()[: len(rows)].clone())
        return torch.stack(found)

    def _fill(self, place: int, row: _Row) -> None:
        length = len(row.contexts.beside)
        mine, given = (
            (self.event_ids, self.beside, *self.means),
            (row.contexts.event_ids[0], row.contexts.beside, *row.means),
        )
        for where, values in zip(mine, given, strict=True):
            where[place, :length] = values
        if row.contexts.channels is not None:
            self.beside[place, :length, 2:] = row.contexts.channels[0]
        self.labels[place] = row.label
        self.ends[place] = length - 1

    def _compute(self) -> Tensor:
        network, tokens = self.owner.network, self.input
        with torch.enable_grad(), sdpa_kernel(SDPBackend.MATH):  # the other kernels' way back is not reproducible
            faded = self.share.expand(tokens.event_ids.shape).clone()
            faded[:, 0] = 0.0
            faded.requires_grad_()
            blend = Blend(faded, self.means[0], self.means[1])
            last = label_states(network, tokens, self.ends, cast(Blocks, self.owner.body), blend)[:, 0].float()
            logits = (last * network.label_head.weight[self.labels]).sum(-1)  # the bias has no slope
            if network.shortlist is not None:
                past = past_in_rows(tokens, self.ends, 1 - faded)
                logits = logits + network.shortlist(past, self.labels[:, None])[:, 0]
            return -torch.autograd.grad(logits.sum(), faded)[0]
