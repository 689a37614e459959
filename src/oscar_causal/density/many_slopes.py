"""Slopes of many sequences at once: every (sequence, label) is a row of a launch whose shape its length decides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from oscar_causal.data.vocabulary import PAD_ID
from oscar_causal.density.compiled import padded_length
from oscar_causal.density.interface import Contexts
from oscar_causal.density.label_pass import context_tokens
from oscar_causal.density.memory import Pieces
from oscar_causal.density.shortlist import Past
from oscar_causal.density.slopes import replacement_means
from oscar_causal.density.transfer import send
from oscar_causal.density.transformer import Blend, Network, Tokens

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
    """One (sequence, label), padded."""

    tokens: Tokens
    means: tuple[Tensor, Tensor]  # (T, D), (T, K)
    label: Tensor
    end: int


def slopes_together(network: Network, questions: Sequence[SlopeQuestion], pieces: Pieces) -> list[Tensor]:
    """`network_slopes` of every question: (S, L, Y') each. Questions with the same shares share launches."""
    answers: dict[int, Tensor] = {}
    kinds: dict[tuple[tuple[float, ...], int], list[int]] = {}
    for k, question in enumerate(questions):
        tokens = padded_length(question.sequence.event_ids.shape[1] + 1)
        kinds.setdefault((tuple(question.shares), tokens), []).append(k)
    for (shares, tokens), mine in kinds.items():
        for k, slopes in _of_one_shape(network, {k: questions[k] for k in mine}, shares, tokens, pieces):
            answers[k] = slopes
    return [answers[k] for k in range(len(questions))]


def _of_one_shape(
    network: Network, questions: dict[int, SlopeQuestion], shares: tuple[float, ...], tokens: int, pieces: Pieces
) -> Iterator[tuple[int, Tensor]]:
    device = network.label_head.weight.device
    rows = [row for question in questions.values() for row in _rows(network, question, tokens)]
    done: list[Tensor] = []  # (S, n, T) each
    begin = 0
    while begin < len(rows):
        size = max(1, min(LAUNCH_TOKENS // tokens, pieces.rows(tokens, device.type)))
        try:
            done.append(_launch(network, rows[begin : begin + size], shares, size))
        except torch.OutOfMemoryError:
            if size == 1:
                raise
            pieces.halve(size)
            continue
        begin += size
    slopes = torch.cat(done, dim=1)
    begin = 0
    for k, question in questions.items():
        count, length = len(question.labels), question.sequence.event_ids.shape[1]
        yield k, slopes[:, begin : begin + count, 1 : length + 1].transpose(1, 2)
        begin += count


def _rows(network: Network, question: SlopeQuestion, size: int) -> Iterator[_Row]:
    device = network.label_head.weight.device
    tokens = context_tokens(question.sequence, device)
    length = tokens.event_ids.shape[1]
    law = send(question.law, device)
    tables = (network.embedding.events.weight.detach(), network.bag.events.weight.detach())
    means = [F.pad(replacement_means(law, table), (0, 0, 0, size - length)) for table in tables]
    padded = Tokens(
        F.pad(tokens.event_ids, (0, size - length)),
        F.pad(tokens.gaps, (0, size - length)),
        F.pad(tokens.elapsed, (0, size - length)),
        F.pad(tokens.channels, (0, 0, 0, size - length)),
        torch.arange(size, device=device),
    )
    for label in send(question.labels, device):
        yield _Row(padded, (means[0], means[1]), label, length - 1)


def _launch(network: Network, rows: list[_Row], shares: tuple[float, ...], size: int) -> Tensor:
    """Slopes of the rows (S, n, T); rows that are missing up to `size` are filled with the first one."""
    full = rows + [rows[0]] * (size - len(rows))
    first = full[0].tokens
    tokens = Tokens(
        torch.cat([row.tokens.event_ids for row in full]),
        torch.cat([row.tokens.gaps for row in full]),
        torch.cat([row.tokens.elapsed for row in full]),
        torch.cat([row.tokens.channels for row in full]),
        first.positions,
    )
    means = [torch.stack([row.means[k] for row in full]) for k in range(2)]  # (size, T, D or K)
    labels = torch.stack([row.label for row in full])
    ends = send([row.end for row in full], labels.device)
    slopes = []
    for share in shares:
        with torch.enable_grad(), sdpa_kernel(SDPBackend.MATH):  # the other kernels' way back is not reproducible
            faded = torch.full(tokens.event_ids.shape, float(share), dtype=means[0].dtype, device=labels.device)
            faded[:, 0] = 0.0
            faded.requires_grad_()
            _, hidden_y = network(tokens, Blend(faded, *means))
            last = hidden_y[torch.arange(size, device=labels.device), ends]  # (size, D)
            logits = (last * network.label_head.weight[labels]).sum(-1)  # the bias has no slope
            if network.shortlist is not None:
                inside = torch.arange(tokens.event_ids.shape[1], device=labels.device) <= ends[:, None]
                ids = torch.where(inside, tokens.event_ids, PAD_ID)
                past = Past(ids, tokens.gaps, tokens.elapsed, 1 - faded)
                logits = logits + network.shortlist(past, labels[:, None])[:, 0]
            slopes.append(-torch.autograd.grad(logits.sum(), faded)[0])
    return torch.stack(slopes)[:, : len(rows)].detach()
