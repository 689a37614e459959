"""A trained pair of densities, ready to answer: the network with its vocabulary, limits and calibration."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from oscar_causal.data.batches import Encoded, Padded, encode, pad
from oscar_causal.data.sequences import Dataset, Int64
from oscar_causal.data.vocabulary import Vocabulary
from oscar_causal.density.compiled import CompiledNetwork, Question
from oscar_causal.density.interface import Contexts
from oscar_causal.density.label_pass import context_tokens, label_states
from oscar_causal.density.labels import Calibration
from oscar_causal.density.many_slopes import SlopeQuestion, slopes_together
from oscar_causal.density.memory import TOKENS_PER_PASS, Pieces
from oscar_causal.density.shortlist import past_in_rows
from oscar_causal.density.slopes import network_slopes
from oscar_causal.density.transfer import send, send_together
from oscar_causal.density.transformer import Network, Tokens
from oscar_causal.errors import UsageError

__all__ = ["TOKENS_PER_PASS", "OscarModel", "length_batches", "pieces_of", "sequence_contexts", "to_tokens"]

MOST_LOGITS = 1 << 22
"""Next-event logits of contexts that exist at the same time."""
MOST_OBSERVED = 1 << 25
"""Next-event probabilities of one sequence that exist at the same time: 512 events over 65,000 types."""


@dataclass(frozen=True)
class OscarModel:
    """Implements both protocols of `density.interface`."""

    network: Network
    vocabulary: Vocabulary
    channels: tuple[str, ...]
    max_length: int
    min_context: int
    calibration: Calibration | None = None
    info: dict[str, Any] = field(default_factory=dict)
    pieces: Pieces = field(default_factory=Pieces, compare=False)
    fast: CompiledNetwork | None = field(default=None, compare=False)
    """Answers in launches of fixed shapes, for many sequences at once (GPU); None = each question by itself."""

    @property
    def device(self) -> torch.device:
        """Where the weights live."""
        return self.network.label_head.weight.device

    def compiled(self, dtype: torch.dtype = torch.bfloat16) -> OscarModel:
        """The same model for many sequences at once: label blocks in `dtype`; on CUDA fused and recorded."""
        fused = self.device.type == "cuda"
        return replace(self, fast=CompiledNetwork(self.network, dtype, fused=fused, pieces=self.pieces))

    def event_probs(self, sequence: Contexts) -> Tensor:
        """P(event i = v | events before i) at every position: (L, V)."""
        return self.event_probs_together([sequence])[0]

    @torch.inference_mode()
    def event_probs_together(self, sequences: Sequence[Contexts]) -> list[Tensor]:
        """`event_probs` of several sequences: (L, V) each."""
        states = [hidden_x[0, :-1] for hidden_x in self._event_states(sequences)]
        return [self.network.event_law(state) for state in states]

    @torch.inference_mode()
    def observed_probs(self, sequence: Contexts) -> Tensor:
        """P(the event that stands at position i | events before i), `event_probs` read at the events: (L,)."""
        (states,) = self._event_states([sequence])
        size = max(1, MOST_OBSERVED // self.network.config.events)  # positions whose laws exist together
        ids = send(sequence.event_ids[0], self.device)
        parts = zip(torch.split(states[0, :-1], size), torch.split(ids, size), strict=True)
        return torch.cat([self.network.event_law(part).gather(1, events[:, None])[:, 0] for part, events in parts])

    def _event_states(self, contexts: Sequence[Contexts]) -> list[Tensor]:
        if self.fast is not None:
            return self.fast.event_states(contexts)
        return [self.network(self._tokens(part))[0] for part in contexts]

    @torch.inference_mode()
    def event_logp(self, contexts: Contexts) -> Tensor:
        """log P of the event that stands at each position given those before, in one pass: (N, L), in nats."""
        count, length = contexts.event_ids.shape
        return torch.cat(
            self._in_pieces(count, length, lambda rows: self.event_logp_together([contexts.rows(rows)])[0])
        )

    @torch.inference_mode()
    def label_probs_together(self, questions: Sequence[Question]) -> list[Tensor]:
        """`label_probs` of several sequences: (N, P, Y') each."""
        if self.fast is None:
            return [self.label_probs(q.contexts, q.labels, q.positions) for q in questions]
        labels = send_together([question.labels for question in questions], self.device)
        logits = self.fast.label_logits(questions)
        return [torch.sigmoid(self.calibrate(part, mine)) for part, mine in zip(logits, labels, strict=True)]

    @torch.inference_mode()
    def label_probs(self, contexts: Contexts, labels: Tensor, positions: Tensor) -> Tensor:
        """P(label | the first `positions[p]` events): (N, P, Y')."""
        if self.fast is not None:
            return self.label_probs_together([Question(contexts, labels, positions)])[0]
        labels, positions = send(labels, self.device), send(positions, self.device)
        count, length = contexts.event_ids.shape
        pieces = self._in_pieces(count, length, lambda rows: self._piece_probs(contexts.rows(rows), labels, positions))
        return torch.cat(pieces)

    def _in_pieces(self, count: int, length: int, answer: Callable[[slice], Tensor]) -> list[Tensor]:
        """Answers for `count` rows of `length` events, so many at a time; out of memory, pieces of half the size."""
        parts: list[Tensor] = []
        done = 0
        while done < count:
            rows = min(self.pieces.rows(length + 1, self.device.type), count - done)
            try:
                parts.append(answer(slice(done, done + rows)))
            except torch.OutOfMemoryError:
                if rows == 1:
                    raise
                self.pieces.halve(rows)
                continue
            done += rows
        return parts

    def _piece_probs(self, piece: Contexts, labels: Tensor, positions: Tensor) -> Tensor:
        tokens = self._tokens(piece)
        one = positions.expand(len(piece.event_ids), 1) if len(positions) == 1 else None  # (rows, 1)
        hidden_y = label_states(self.network, tokens, one)
        if one is None:
            hidden_y = hidden_y[:, positions]
        past = past_in_rows(tokens, positions.expand(len(piece.event_ids), -1))
        logits = self.network.label_logits(hidden_y, past, labels).float()  # (rows, P, Y')
        return torch.sigmoid(self.calibrate(logits, labels))

    @torch.inference_mode()
    def event_logp_together(self, contexts: Sequence[Contexts]) -> list[Tensor]:
        """`event_logp` of contexts of several sequences: (N, L) each."""
        return [self._logp(part, states) for part, states in zip(contexts, self._event_states(contexts), strict=True)]

    def _logp(self, piece: Contexts, hidden_x: Tensor) -> Tensor:
        ids = piece.event_ids.to(self.device).unsqueeze(-1)  # (rows, L, 1)
        size = max(1, MOST_LOGITS // (ids.shape[1] * self.network.config.events))  # rows whose (L, V) exist together
        parts = [
            torch.log_softmax(self.network.padded_event_logits(states[:, :-1]), dim=-1).gather(-1, events)[..., 0]
            for states, events in zip(torch.split(hidden_x, size), torch.split(ids, size), strict=True)
        ]
        return torch.cat(parts)

    def label_slopes(self, sequence: Contexts, labels: Tensor, law: Tensor, shares: Sequence[float]) -> Tensor:
        """How fast the log odds of each label fall as each event fades into its `law` (L, V): (S, L, Y')."""
        if self.fast is not None:
            return self.label_slopes_together([SlopeQuestion(sequence, labels, law, shares)])[0]
        labels, tokens = send(labels, self.device), self._tokens(sequence)
        pieces = self._in_pieces(
            len(labels),
            sequence.event_ids.shape[1],
            lambda rows: network_slopes(self.network, tokens, labels[rows], law, shares),
        )
        return torch.cat(pieces, dim=-1)

    def label_slopes_together(self, questions: Sequence[SlopeQuestion]) -> list[Tensor]:
        """`label_slopes` of several sequences: (S, L, Y') each."""
        if self.fast is None:
            return [self.label_slopes(q.sequence, q.labels, q.law, q.shares) for q in questions]
        return slopes_together(self.fast, questions)

    @torch.inference_mode()
    def last_label_logits(self, encoded: Encoded, indices: Int64) -> Tensor:
        """Uncalibrated logits of all labels after the last event of whole sequences: (B, Y), in float32."""
        return self.label_logits_at(encoded, indices, encoded.events.lengths[indices][:, None])[:, 0]

    @torch.inference_mode()
    def label_logits_at(self, encoded: Encoded, indices: Int64, positions: Int64) -> Tensor:
        """Uncalibrated logits of all labels after the first `positions[b, p]` events of whole sequences: (B, P, Y)."""
        batch = pad(encoded, indices)
        tokens, at = to_tokens(batch, self.device), send(positions, self.device)
        _, hidden_y = self.network(tokens)
        rows = torch.arange(len(indices), device=self.device)[:, None]
        return self.network.label_logits(hidden_y[rows, at], past_in_rows(tokens, at)).float()

    def encode(self, dataset: Dataset) -> Encoded:
        """A dataset in this model's ids and channels; further channels of the dataset are left out."""
        missing = [name for name in self.channels if name not in dataset.channels]
        if missing:
            raise UsageError(f"dataset: the model was trained with channel {missing[0]!r}, the dataset has none of it")
        return encode(replace(dataset, channels=self.channels), self.vocabulary, max_length=self.max_length)

    def calibrate(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Calibrated logits (..., Y') of these labels."""
        if self.calibration is None:
            return logits
        slope, shift = self._calibration
        return logits * slope[labels] + shift[labels]

    @cached_property
    def _calibration(self) -> tuple[Tensor, Tensor]:
        assert self.calibration is not None  # noqa: S101
        slope, shift = torch.tensor(self.calibration.slope), torch.tensor(self.calibration.shift)
        return slope.to(self.device), shift.to(self.device)

    def _tokens(self, contexts: Contexts) -> Tokens:
        return context_tokens(contexts, self.device)


def to_tokens(batch: Padded, device: torch.device) -> Tokens:
    """A padded batch on the device."""
    return Tokens(
        torch.as_tensor(batch.event_ids, device=device),
        torch.as_tensor(batch.gaps, device=device),
        torch.as_tensor(batch.elapsed, device=device),
        torch.as_tensor(batch.channels, device=device),
        torch.arange(batch.event_ids.shape[1], device=device),
    )


def sequence_contexts(encoded: Encoded, index: int) -> Contexts:
    """One sequence as observed (N = 1)."""
    begin, end = encoded.events.offsets[index], encoded.events.offsets[index + 1]
    return Contexts(
        torch.as_tensor(encoded.events.ids[begin:end].astype("int64")).unsqueeze(0),
        torch.as_tensor(encoded.times[begin:end]),
        torch.as_tensor(encoded.channels[begin:end]),
    )


@runtime_checkable
class Pieced(Protocol):
    """A model that answers in pieces."""

    pieces: Pieces


def pieces_of(model: Any) -> list[Pieces]:
    """What decides the pieces of a model's forward passes, or of each of its parts; none for models of other makes."""
    return [part.pieces for part in getattr(model, "models", (model,)) if isinstance(part, Pieced)]


def length_batches(lengths: Int64, tokens: int) -> Iterator[Int64]:
    """Indices in order of length, cut so that a padded rectangle holds at most `tokens` tokens."""
    order = np.argsort(lengths, kind="stable")
    begin = 0
    while begin < len(order):
        end = begin + 1
        while end < len(order) and (end - begin + 1) * (int(lengths[order[end]]) + 1) <= tokens:
            end += 1
        yield order[begin:end]
        begin = end
