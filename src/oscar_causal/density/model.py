"""A trained pair of densities, ready to answer: the network with its vocabulary, limits and calibration."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from oscar_causal.data.batches import Encoded, Padded, encode, pad
from oscar_causal.data.sequences import Dataset, Int64
from oscar_causal.data.vocabulary import START_ID, Vocabulary
from oscar_causal.density.interface import Contexts
from oscar_causal.density.labels import Calibration
from oscar_causal.density.memory import TOKENS_PER_PASS, Pieces
from oscar_causal.density.slopes import network_slopes
from oscar_causal.density.transformer import Network, Tokens
from oscar_causal.errors import UsageError

__all__ = ["TOKENS_PER_PASS", "OscarModel", "length_batches", "pieces_of", "sequence_contexts", "to_tokens"]


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

    @property
    def device(self) -> torch.device:
        """Where the weights live."""
        return self.network.label_head.weight.device

    @torch.inference_mode()
    def event_probs(self, sequence: Contexts) -> Tensor:
        """P(event i = v | events before i) at every position: (L, V)."""
        hidden_x, _ = self.network(self._tokens(sequence))
        return torch.softmax(self.network.event_logits(hidden_x[0, :-1]).float(), dim=-1)

    @torch.inference_mode()
    def event_logp(self, contexts: Contexts) -> Tensor:
        """log P of the event that stands at each position given those before, in one pass: (N, L), in nats."""
        count, length = contexts.event_ids.shape
        return torch.cat(self._in_pieces(count, length, lambda rows: self._piece_logp(contexts.rows(rows))))

    @torch.inference_mode()
    def label_probs(self, contexts: Contexts, labels: Tensor, positions: Tensor) -> Tensor:
        """P(label | the first `positions[p]` events): (N, P, Y')."""
        labels, positions = labels.to(self.device), positions.to(self.device)
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
        _, hidden_y = self.network(self._tokens(piece))
        logits = self.network.label_logits(hidden_y[:, positions], labels).float()  # (rows, P, Y')
        return torch.sigmoid(self._calibrate(logits, labels))

    def _piece_logp(self, piece: Contexts) -> Tensor:
        hidden_x, _ = self.network(self._tokens(piece))
        ids = piece.event_ids.to(self.device).unsqueeze(-1)  # (rows, L, 1)
        rows = [  # one (L, V) at a time
            torch.log_softmax(self.network.event_logits(state[:-1]).float(), dim=-1).gather(-1, event)[:, 0]
            for state, event in zip(hidden_x, ids, strict=True)
        ]
        return torch.stack(rows)

    def label_slopes(self, sequence: Contexts, labels: Tensor, law: Tensor, shares: Sequence[float]) -> Tensor:
        """How fast the log odds of each label fall as each event fades into its `law` (L, V): (S, L, Y')."""
        labels, tokens = labels.to(self.device), self._tokens(sequence)
        pieces = self._in_pieces(
            len(labels),
            sequence.event_ids.shape[1],
            lambda rows: network_slopes(self.network, tokens, labels[rows], law, shares),
        )
        return torch.cat(pieces, dim=-1)

    @torch.inference_mode()
    def last_label_logits(self, encoded: Encoded, indices: Int64) -> Tensor:
        """Uncalibrated logits of all labels after the last event of whole sequences: (B, Y), in float32."""
        return self.label_logits_at(encoded, indices, encoded.events.lengths[indices][:, None])[:, 0]

    @torch.inference_mode()
    def label_logits_at(self, encoded: Encoded, indices: Int64, positions: Int64) -> Tensor:
        """Uncalibrated logits of all labels after the first `positions[b, p]` events of whole sequences: (B, P, Y)."""
        batch = pad(encoded, indices)
        _, hidden_y = self.network(to_tokens(batch, self.device))
        rows = torch.arange(len(indices), device=self.device)[:, None]
        return self.network.label_logits(hidden_y[rows, torch.as_tensor(positions, device=self.device)]).float()

    def encode(self, dataset: Dataset) -> Encoded:
        """A dataset in this model's ids and channels; further channels of the dataset are left out."""
        missing = [name for name in self.channels if name not in dataset.channels]
        if missing:
            raise UsageError(f"dataset: the model was trained with channel {missing[0]!r}, the dataset has none of it")
        return encode(replace(dataset, channels=self.channels), self.vocabulary, max_length=self.max_length)

    def _calibrate(self, logits: Tensor, labels: Tensor) -> Tensor:
        if self.calibration is None:
            return logits
        slope = torch.tensor(self.calibration.slope, device=logits.device)[labels]
        shift = torch.tensor(self.calibration.shift, device=logits.device)[labels]
        return logits * slope + shift

    def _tokens(self, contexts: Contexts) -> Tokens:
        ids, device = contexts.event_ids.to(self.device), self.device
        count, length = ids.shape
        elapsed = torch.zeros(length + 1, dtype=torch.float64, device=device)
        elapsed[1:] = contexts.times.to(device)
        gaps = torch.zeros_like(elapsed)
        gaps[2:] = elapsed[2:] - elapsed[1:-1]
        missing = torch.full((1, contexts.channels.shape[1]), torch.nan, device=device)
        channels = torch.cat([missing, contexts.channels.to(device)])
        start = torch.full((count, 1), START_ID, dtype=torch.int64, device=device)
        return Tokens(
            torch.cat([start, ids], dim=1),
            gaps.float().expand(count, -1),
            elapsed.float().expand(count, -1),
            channels.expand(count, -1, -1),
            torch.arange(length + 1, device=device),
        )


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


def pieces_of(model: Any) -> list[Pieces]:
    """What decides the pieces of a model's forward passes, or of each of its parts; none for models of other makes."""
    return [part.pieces for part in getattr(model, "models", (model,)) if isinstance(part, OscarModel)]


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
