"""From a dataset to what a network eats: ids of a vocabulary, cut into batches of similar length, padded or packed.

Every batch is a pure function of (lengths, budget, seed, epoch), so a run can stop and go on anywhere, and shards of
one batch are strided slices of it. Position 0 of every sequence is the start token; event k stands at position k + 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from oscar_causal.data.sequences import Dataset, Float64, Int32, Int64, Ragged, ragged_offsets, ragged_positions
from oscar_causal.data.vocabulary import PAD_ID, START_ID, Vocabulary

Float32 = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Encoded:
    """Sequences in model ids, laid end to end, cut to the last `max_length` events."""

    events: Ragged
    times: Float64
    channels: Float32  # (total, C), NaN = missing
    labels: Ragged
    labelled: npt.NDArray[np.bool_]
    outcome_times: Float64
    """(n,) time of the first label; NaN = unknown."""
    cut: npt.NDArray[np.bool_]
    """Which sequences lost their oldest events to `max_length`."""

    def __len__(self) -> int:
        return len(self.events)


@dataclass(frozen=True)
class Padded:
    """A rectangle: real tokens first, padding behind (a causal network never looks at it)."""

    event_ids: Int64  # (B, L)
    gaps: Float32  # (B, L) seconds since the event before
    elapsed: Float32  # (B, L) seconds since the start
    channels: Float32  # (B, L, C)
    lengths: Int64  # (B,) tokens, the start token included


@dataclass(frozen=True)
class Packed:
    """Sequences end to end in one row of a fixed number of tokens; what is left over is one last run of padding."""

    event_ids: Int64  # (T,)
    gaps: Float32  # (T,)
    elapsed: Float32  # (T,)
    channels: Float32  # (T, C)
    positions: Int64  # (T,) within the sequence
    bounds: Int32  # (S + 1,) sequence s owns bounds[s]:bounds[s + 1]; later bounds cut the padding
    sequences: int


def encode(
    dataset: Dataset, vocabulary: Vocabulary, *, max_length: int, channels: Sequence[str] | None = None
) -> Encoded:
    """Translate names to the vocabulary's ids; labels the vocabulary lacks are left out of `labels`.

    `channels` (default: the dataset's) are the ones wanted, in this order; one the dataset lacks is missing everywhere.
    """
    table = vocabulary.event_table(dataset.event_names)
    lengths = dataset.lengths
    kept = np.minimum(lengths, max_length)
    starts = dataset.events.offsets[1:] - kept
    rows = np.repeat(starts - ragged_offsets(kept)[:-1], kept) + np.arange(int(kept.sum()))
    wanted = dataset.channels if channels is None else tuple(channels)
    stacked = np.full((len(rows), len(wanted)), np.nan, np.float32)
    for column, name in enumerate(wanted):
        if name in dataset.channels:
            stacked[:, column] = dataset.channel(name)[rows]
    return Encoded(
        Ragged(ragged_offsets(kept), table[dataset.events.ids[rows]]),
        dataset.times[rows],
        stacked,
        _known_labels(dataset, vocabulary),
        dataset.labelled,
        _outcome_times(dataset),
        lengths > max_length,
    )


def _outcome_times(dataset: Dataset) -> Float64:
    times = np.full(len(dataset), np.inf)
    known = dataset.label_times()
    if known is not None:
        np.fmin.at(times, dataset.labels.rows(), known)
    return np.where(np.isfinite(times), times, np.nan)


def _known_labels(dataset: Dataset, vocabulary: Vocabulary) -> Ragged:
    ids = (
        vocabulary.label_table(dataset.label_names)[dataset.labels.ids]
        if len(dataset.labels.ids)
        else dataset.labels.ids
    )
    known = ids >= 0
    counts = np.bincount(dataset.labels.rows()[known], minlength=len(dataset))
    return Ragged(ragged_offsets(counts), ids[known].astype(np.int32))


def plan_batches(
    lengths: Int64, tokens: int, *, seed: int, epoch: int, padded: bool, most_sequences: int | None = None
) -> list[Int64]:
    """Cut a shuffled epoch into batches of at most `tokens` tokens (a longer sequence is a batch of its own).

    `padded`: sequences of similar length share a batch, found by sorting within pools of 64 batches, and a batch costs
    rows x longest; otherwise it costs the sum of its lengths. Batches come in random order.
    """
    rng = np.random.default_rng([seed, epoch, 0xBA7C4])
    order = rng.permutation(len(lengths))
    if not padded:
        return fill_batches(lengths, order, tokens, padded=False, most=most_sequences)
    pool = max(1, 64 * tokens // max(1, int(lengths.mean()))) if len(lengths) else 1
    batches: list[Int64] = []
    for begin in range(0, len(order), pool):
        part = order[begin : begin + pool]
        batches += fill_batches(
            lengths, part[np.argsort(lengths[part], kind="stable")], tokens, padded=True, most=most_sequences
        )
    return [batches[i] for i in rng.permutation(len(batches))]


def fill_batches(lengths: Int64, order: Int64, tokens: int, *, padded: bool, most: int | None = None) -> list[Int64]:
    """Cut `order` into batches of at most `tokens` tokens and `most` sequences, counted as in `plan_batches`."""
    most = most or len(order)
    batches, begin, total, longest = [], 0, 0, 0
    for at, index in enumerate(order):
        length = int(lengths[index])
        cost = max(longest, length) * (at - begin + 1) if padded else total + length
        if at > begin and (cost > tokens or at - begin >= most):
            batches.append(order[begin:at])
            begin, total, longest = at, 0, 0
        total, longest = total + length, max(longest, length)
    return [*batches, order[begin:]] if len(order) > begin else batches


def pad(encoded: Encoded, indices: Int64, *, length: int | None = None) -> Padded:
    """The chosen sequences as one rectangle, `length` tokens wide (default: the longest plus its start token)."""
    counts = encoded.events.lengths[indices]
    width = length or int(counts.max()) + 1
    rows = np.repeat(np.arange(len(indices)), counts)
    columns = np.arange(len(rows)) - np.repeat(ragged_offsets(counts)[:-1], counts) + 1
    source = ragged_positions(encoded.events.offsets, indices)
    shape = (len(indices), width)
    event_ids = np.full(shape, PAD_ID, np.int64)
    elapsed = np.zeros(shape, np.float64)
    channels = np.full((*shape, encoded.channels.shape[1]), np.nan, np.float32)
    event_ids[:, 0] = START_ID
    event_ids[rows, columns] = encoded.events.ids[source]
    elapsed[rows, columns] = encoded.times[source]
    channels[rows, columns] = encoded.channels[source]
    gaps = np.zeros(shape, np.float64)
    gaps[:, 1:] = np.maximum(np.diff(elapsed, axis=1), 0.0)
    gaps[:, 1] = 0.0  # the first event is the origin
    return Padded(event_ids, gaps.astype(np.float32), elapsed.astype(np.float32), channels, counts + 1)


def pack(encoded: Encoded, indices: Int64, *, tokens: int, most_sequences: int) -> Packed:
    """The chosen sequences end to end in exactly `tokens` tokens, with `most_sequences + 1` bounds.

    `most_sequences` must leave room for the padding: at least (tokens - used) / longest more than the sequences.
    """
    counts = encoded.events.lengths[indices] + 1
    used = int(counts.sum())
    extra = np.arange(most_sequences + 1 - len(indices))  # the padding is cut in runs no longer than a sequence
    bounds = np.empty(most_sequences + 1, np.int32)
    bounds[: len(indices)] = ragged_offsets(counts)[:-1]
    bounds[len(indices) :] = np.minimum(used + extra * int(counts.max()), tokens)
    bounds[-1] = tokens
    starts = bounds[: len(indices)]
    real = np.ones(used, bool)
    real[starts] = False
    source = ragged_positions(encoded.events.offsets, indices)
    event_ids = np.full(tokens, PAD_ID, np.int64)
    event_ids[starts] = START_ID
    event_ids[:used][real] = encoded.events.ids[source]
    elapsed, gaps = np.zeros(tokens), np.zeros(tokens)
    elapsed[:used][real] = encoded.times[source]
    gaps[1:] = np.maximum(np.diff(elapsed), 0.0)
    gaps[starts] = 0.0
    gaps[np.minimum(starts + 1, tokens - 1)] = 0.0
    channels = np.full((tokens, encoded.channels.shape[1]), np.nan, np.float32)
    channels[:used][real] = encoded.channels[source]
    ends = np.concatenate([starts, [used]])
    positions = np.arange(tokens) - np.repeat(ends, np.diff(np.concatenate([ends, [tokens]])))
    return Packed(
        event_ids, gaps.astype(np.float32), elapsed.astype(np.float32), channels, positions, bounds, len(indices)
    )
