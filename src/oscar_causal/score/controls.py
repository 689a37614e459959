"""What scores are worth: the same numbers for guesses of the same size that know nothing of the label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from oscar_causal.data.metrics import divide
from oscar_causal.data.sequences import Dataset, Int64
from oscar_causal.score.matching import Pair, PairScores, Truth, summarise


@dataclass(frozen=True)
class Present:
    """The distinct events of some sequences, in each the most frequent of the dataset first (ties by name)."""

    row: dict[str, int]
    """Sequence id -> its row here."""
    offsets: Int64
    keys: Int64
    """Row * V + rank of the event, ascending: row i owns `keys[offsets[i]:offsets[i + 1]]`."""
    rank: dict[str, int]
    """Event -> 0 for the most frequent."""


def present_events(dataset: Dataset, pairs: Sequence[Pair]) -> Present:
    """The distinct events of the pairs' sequences."""
    ids = list(dict.fromkeys(sequence_id for sequence_id, _ in pairs))
    events = dataset.events.take(dataset.index_of(ids))
    frequency = np.bincount(dataset.events.ids, minlength=len(dataset.event_names))
    rank = np.empty(len(frequency), np.int64)
    rank[np.argsort(-frequency, kind="stable")] = np.arange(len(frequency))
    keys = np.sort(events.rows() * len(rank) + rank[events.ids])
    keys = keys[np.append(True, np.diff(keys) > 0)] if len(keys) else keys  # np.unique is many times slower
    offsets = np.searchsorted(keys, np.arange(len(ids) + 1) * len(rank))
    return Present(
        {name: row for row, name in enumerate(ids)},
        offsets,
        keys,
        dict(zip(dataset.event_names, rank.tolist(), strict=True)),
    )


def controls(scores: PairScores, truth: Truth, present: Present) -> dict[str, Any]:
    """`random`: as many events as were found, drawn from those present (in expectation, exactly, no draw is made).
    `frequent`: as many, those present that are most frequent in the dataset.
    """
    guesses = control_counts(scores, truth, present)
    return {name: summarise(counts) for name, counts in guesses.items()}


def control_counts(scores: PairScores, truth: Truth, present: Present) -> dict[str, PairScores]:
    """Counts of both guesses.

    Of f events drawn without replacement from K present, t of them true, f t / K are hits in expectation. Precision,
    recall and F1 are linear in the hits, so every average of `random` is its exact expectation, but for `f1_of_means`,
    which is made of the averages.
    """
    rows = np.array([present.row[sequence_id] for sequence_id, _ in scores.pairs], np.int64)
    distinct = (present.offsets[rows + 1] - present.offsets[rows]).astype(float)
    size = np.minimum(scores.found, distinct)
    owner = np.repeat(np.arange(len(scores)), [len(truth[pair]) for pair in scores.pairs])
    ranks = np.array([present.rank.get(event, -1) for pair in scores.pairs for event in truth[pair]], np.int64)
    keys = rows[owner] * len(present.rank) + ranks
    place = np.minimum(np.searchsorted(present.keys, keys), len(present.keys) - 1)
    there = (ranks >= 0) & (present.keys[place] == keys)
    first = there & (place - present.offsets[rows[owner]] < size[owner])  # among the `size` most frequent
    true_there, true_first = (np.bincount(owner, mark, len(scores)).astype(float) for mark in (there, first))
    return {
        "random": PairScores(scores.pairs, size, scores.true, size * divide(true_there, distinct)),
        "frequent": PairScores(scores.pairs, size, scores.true, true_first),
    }
