"""The network on a GPU: launches of a few fixed shapes, fused and recorded once, filled with rows of many sequences.

A launch is a rectangle of so many rows by a multiple of `BUCKET` tokens. Its shape follows from the length of a
sequence alone, and no row looks at another, so which sequences share a launch changes no bit of any answer (the
benchmark of speed measures that on the device at hand). Tf_y runs with a copy of its blocks in bfloat16; tables, heads
and Tf_x, from whose law replacements are drawn, stay in single precision.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any, Literal, cast

import numpy as np
import torch
from torch import Tensor, nn

from oscar_causal.density.hopper import HopperBag, HopperBlock, suits
from oscar_causal.density.interface import Contexts
from oscar_causal.density.label_pass import (
    Bag,
    Blocks,
    Sent,
    context_tokens,
    event_states,
    label_states,
    sent_together,
    tokens_of,
)
from oscar_causal.density.lanes import LANES, Lane, side_by_side
from oscar_causal.density.memory import Pieces
from oscar_causal.density.shortlist import past_in_rows
from oscar_causal.density.transfer import send
from oscar_causal.density.transformer import Blend, Block, Network, Tokens

BUCKET = 8
"""Lengths of launches, in tokens, are multiples of this: 2.5 % of padding at 150 events."""
LAUNCH_TOKENS = {"end": 132 << 7, "along": 1 << 14, "events": 44 << 7}
"""Tokens of a launch: enough to fill a large GPU, few enough that the last launch of a batch wastes little. `end`: the
132 units of an H100 or H200 then finish their tiles (256 x 128) of a product 768 wide all at the same time; `events`:
likewise, in single precision (128 x 128)."""
CHUNK = 16
"""Rows of one sequence that stay together where the label head multiplies states along them: the shape of that product
is of its own sequence's making."""

ASKED = 4
"""Labels of one question whose shortlists are read inside the launch; those of longer questions are read beside it."""

VARIANTS = 32
"""Most variants of a block that are compiled (inner widths, one row or many, with and without a way back)."""

Kind = Literal["end", "along", "events"]
"""h^y at one token of every row; h^y at all tokens; h^x at all tokens."""


@dataclass(frozen=True)
class Rows:
    """Contexts that go through a launch."""

    contexts: Sent
    asked: Tensor | None = None
    """(1 + ASKED,) the token that is asked (end), and the labels whose shortlists are read there."""


Asked = tuple[Rows, Callable[[Tensor], Tensor]]
"""Rows, and what is made of their states."""


@dataclass(frozen=True)
class Question:
    """P(label | the first `positions[p]` events) of N contexts of one sequence is asked for these labels."""

    contexts: Contexts
    labels: Tensor
    positions: Tensor

    @property
    def kind(self) -> Kind:
        """The launch that answers it."""
        return "end" if len(self.positions) == 1 else "along"

    @property
    def inside(self) -> bool:
        """Are the shortlists of its labels read in the launch?"""
        return self.kind == "end" and len(self.labels) <= ASKED


class Body(nn.Module):
    """The blocks of a network in another precision, its tables as they are; `fused`: compiled, once for all lengths."""

    def __init__(self, network: Network, dtype: torch.dtype, *, fused: bool) -> None:
        super().__init__()
        self.blocks = copy.deepcopy(network.blocks).to(dtype)
        self.norm_x = copy.deepcopy(network.norm_x).to(dtype)
        self.label_blocks = copy.deepcopy(network.label_blocks).to(dtype)
        self.norm_y = copy.deepcopy(network.norm_y).to(dtype)
        for norm in (module for module in self.modules() if isinstance(module, nn.RMSNorm)):
            norm.eps = torch.finfo(torch.float32).eps  # not that of a coarser type
        if fused:
            torch._dynamo.config.recompile_limit = max(VARIANTS, torch._dynamo.config.recompile_limit)
        every: list[Any] = [*self.blocks, *self.label_blocks] if fused else []
        for block in every:
            block.opened = torch.compile(block.opened, dynamic=True)  # the last product stays outside: it adds in place
            block.at = torch.compile(block.at, dynamic=True)
        self.bag: Bag = network.bag  # as it is: compiled, it adds up in the order in which its parts happen to finish
        if suits(network.config, dtype, network.label_head.weight.device):
            self.blocks = nn.ModuleList(HopperBlock(cast(Block, block)) for block in self.blocks)
            self.bag = HopperBag(network.bag)

        def embedded(tokens: Tokens, blend: Blend | None = None) -> Tensor:
            return cast(Tensor, network.embedding(tokens, blend).to(dtype))  # rounded here: one pass less

        self.embedding: Any = torch.compile(embedded, dynamic=True) if fused else network.embedding
        self.listed: Any = torch.compile(network.shortlist, dynamic=True) if fused else network.shortlist


class CompiledNetwork:
    """A network behind launches of fixed shapes."""

    def __init__(self, network: Network, dtype: torch.dtype, *, fused: bool = False, pieces: Pieces | None = None):
        self.network, self.pieces = network, pieces or Pieces()
        self.body = Body(network, dtype, fused=fused).eval().requires_grad_(False)
        single = dtype == torch.float32
        self.fine = self.body if single else Body(network, torch.float32, fused=fused).eval().requires_grad_(False)
        self.device = network.label_head.weight.device
        self.lanes = [Lane(self.device) for _ in range(LANES)]
        self._turns = cycle(range(LANES))
        self._launches: dict[tuple[Kind, int, int], list[Launch]] = {}
        """One on each lane."""
        self.sloping: dict[tuple[int, int], Any] = {}
        """Launches of `many_slopes` by tokens and rows."""

    @torch.inference_mode()
    def label_logits(self, questions: Sequence[Question]) -> list[Tensor]:
        """Uncalibrated logits (N, P, Y') of every question, in float32."""
        answers: dict[int, Tensor] = {}
        kinds: tuple[Kind, ...] = ("end", "along")
        for kind in kinds:
            mine = [k for k, question in enumerate(questions) if question.kind == kind]
            asked = self._rows_of(kind, [questions[k] for k in mine])
            finish = [self._label_head(questions[k]) for k in mine]
            answers.update(zip(mine, self._answer(kind, asked, finish), strict=True))
        return [
            answers[k] if question.inside else answers[k] + self._short_logits(question)
            for k, question in enumerate(questions)
        ]

    @torch.inference_mode()
    def event_states(self, contexts: Sequence[Contexts]) -> list[Tensor]:
        """h^x at the start token and every event (N, L + 1, D) of every batch of contexts."""
        lengths = [part.event_ids.shape[1] for part in contexts]
        finish = [lambda states, length=length: states[:, : length + 1].clone() for length in lengths]
        return self._answer("events", [Rows(part) for part in sent_together(contexts, self.device)], finish)

    def _rows_of(self, kind: Kind, questions: Sequence[Question]) -> list[Rows]:
        sent = sent_together([question.contexts for question in questions], self.device)
        if kind == "along":
            return [Rows(part) for part in sent]
        asked = np.zeros((len(questions), 1 + ASKED), np.int64)
        for row, question in zip(asked, questions, strict=True):
            row[0] = question.positions[0]
            if question.inside:
                row[1 : 1 + len(question.labels)] = question.labels
        return [Rows(*pair) for pair in zip(sent, send(asked, self.device), strict=True)]

    def _short_logits(self, question: Question) -> Tensor | float:
        """What the labels' own shortlists add: (N, P, Y')."""
        if self.network.shortlist is None:
            return 0.0
        tokens = context_tokens(question.contexts, self.device)
        at = send(question.positions, self.device).expand(len(tokens.event_ids), -1)  # (N, P)
        logits = self.network.shortlist(past_in_rows(tokens, at), send(question.labels, self.device))
        return cast(Tensor, logits.view(*at.shape, -1))

    def _label_head(self, question: Question) -> Callable[[Tensor], Tensor]:
        if question.inside:
            return lambda states: states[..., -ASKED:][..., : len(question.labels)].clone()  # (n, 1, Y')
        labels, positions = send(question.labels, self.device), send(question.positions, self.device)
        if question.kind == "end":
            return lambda states: states[..., labels]
        return lambda states: self.network.state_logits(states[:, positions].float(), labels)  # (n, P, Y')

    def _answer(self, kind: Kind, asked: Sequence[Rows], finish: Sequence[Callable[[Tensor], Tensor]]) -> list[Tensor]:
        """What `finish` makes of the states of each batch of contexts: one launch shape after the other."""
        sizes = [padded_length(rows.contexts.event_ids.shape[1]) for rows in asked]
        parts: dict[int, list[Tensor]] = {}
        with side_by_side(self.lanes):
            for tokens in sorted(set(sizes)):
                mine = {k: (asked[k], finish[k]) for k, size in enumerate(sizes) if size == tokens}
                parts.update(self._of_one_shape(kind, tokens, mine))
        return [torch.cat(parts[k]) for k in range(len(asked))]

    def _of_one_shape(self, kind: Kind, tokens: int, asked: dict[int, Asked]) -> dict[int, list[Tensor]]:
        """Parts of every answer; out of memory, launches of half the size."""
        while True:
            rows = self.rows(kind, tokens)
            try:
                return self._launched(kind, tokens, rows, asked)
            except torch.OutOfMemoryError:
                if rows == 1:
                    raise
                self._launches.clear()
                self.pieces.halve(rows)
            except BaseException:
                self._launches.clear()  # what made it fail still lies in one of them
                raise

    def rows(self, kind: Kind, tokens: int) -> int:
        """Rows of a launch of so many tokens each; along sequences a multiple of `CHUNK`, but for very long ones."""
        rows = min(LAUNCH_TOKENS[kind] // tokens, self.pieces.rows(tokens, self.device.type))
        return (rows // CHUNK * CHUNK if kind == "along" else rows) or max(1, rows)

    def _launched(self, kind: Kind, tokens: int, rows: int, asked: dict[int, Asked]) -> dict[int, list[Tensor]]:
        counts = {k: len(mine.contexts.event_ids) for k, (mine, _) in asked.items()}
        chunk = min(CHUNK, rows) if kind == "along" else None
        if (kind, tokens, rows) not in self._launches:
            self._launches[kind, tokens, rows] = [Launch(self, kind, tokens, rows, lane) for lane in self.lanes]
        made: dict[int, list[Tensor]] = {k: [] for k in asked}
        for pieces in full_launches(counts, rows, chunk):
            turn = next(self._turns)
            launch = self._launches[kind, tokens, rows][turn]
            with self.lanes[turn]():
                for piece in pieces:
                    launch.fill(piece, asked[piece.batch][0])
                states = launch.run()  # until the next launch on this lane
                for piece in pieces:
                    made[piece.batch].append(asked[piece.batch][1](states[piece.place]))
        return made


@dataclass(frozen=True)
class Piece:
    """Some rows of a batch of contexts, and where they stand in a launch."""

    batch: int
    rows: slice
    place: slice


def full_launches(counts: dict[int, int], rows: int, chunk: int | None = None) -> Iterator[list[Piece]]:
    """Batches of so many rows in launches of `rows`, each filled to the end; `chunk`: so many rows stay together.

    >>> for pieces in full_launches({0: 3, 1: 2}, 4):
    ...     print([(piece.batch, piece.rows.start, piece.rows.stop) for piece in pieces])
    [(0, 0, 3), (1, 0, 1)]
    [(1, 1, 2)]
    """
    filled, inside = 0, list[Piece]()
    for batch, number in counts.items():
        begin = 0
        while begin < number:
            count = min(chunk or rows - filled, number - begin)
            inside.append(Piece(batch, slice(begin, begin + count), slice(filled, filled + count)))
            filled, begin = filled + count, begin + count
            if filled + (chunk or 1) > rows:
                yield inside
                filled, inside = 0, []
    if inside:
        yield inside


def padded_length(tokens: int) -> int:
    """The next multiple of `BUCKET`.

    >>> padded_length(151), padded_length(160)
    (152, 160)
    """
    return -(-tokens // BUCKET) * BUCKET


class Launch:
    """One shape: its input, where it always lies, and on CUDA the recorded graph that reads it."""

    def __init__(self, owner: CompiledNetwork, kind: Kind, tokens: int, rows: int, lane: Lane) -> None:
        self.owner, self.kind = owner, kind
        with torch.inference_mode(False):  # recorded graphs and later fillings share these
            self.event_ids, self.beside = empty_rows(owner.network, rows, tokens)
            self.asked = torch.zeros(rows, 1 + ASKED, dtype=torch.int64, device=owner.device)
        self.input = tokens_of(self.event_ids, self.beside)
        self._ask = lane.recorded(self._compute)

    def fill(self, piece: Piece, mine: Rows) -> None:
        """Write some rows of one sequence's contexts; what is left of older ones behind them is never looked at."""
        length = len(mine.contexts.beside)
        self.event_ids[piece.place, :length] = mine.contexts.event_ids[piece.rows]
        self.beside[piece.place, :length] = mine.contexts.beside
        if mine.contexts.channels is not None:
            self.beside[piece.place, :length, 2:] = mine.contexts.channels[piece.rows]
        if mine.asked is not None:
            self.asked[piece.place] = mine.asked

    def run(self) -> Tensor:
        """All rows: logits of every label at one token without their shortlists and of the asked ones with them
        (rows, 1, Y + ASKED); or the states (rows, tokens, D).
        """
        return self._ask()

    def _compute(self) -> Tensor:
        network, body = self.owner.network, self.owner.body
        if self.kind == "events":
            return event_states(network, self.input, cast(Blocks, self.owner.fine))
        if self.kind == "along":
            return label_states(network, self.input, body=cast(Blocks, body))
        at, labels = self.asked[:, :1], self.asked[:, 1:]
        logits = network.state_logits(label_states(network, self.input, at, cast(Blocks, body)).float())
        whole = logits.gather(-1, labels.unsqueeze(1))  # (rows, 1, ASKED)
        if network.shortlist is not None:
            whole = whole + body.listed(past_in_rows(self.input, at), labels).unsqueeze(1)
        return torch.cat([logits, whole], dim=-1)


def empty_rows(network: Network, rows: int, tokens: int) -> tuple[Tensor, Tensor]:
    """A rectangle to be filled: event ids (rows, tokens), and what stands beside them (rows, tokens, 2 + C)."""
    device = network.label_head.weight.device
    ids = torch.zeros(rows, tokens, dtype=torch.int64, device=device)
    return ids, torch.zeros(rows, tokens, 2 + network.config.channels, device=device)
