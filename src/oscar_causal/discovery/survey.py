"""Before a run: how long its sequences are, what the model will not understand of them, how much memory it takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from oscar_causal.data.stream import stream_columns
from oscar_causal.data.validate import list_offsets
from oscar_causal.data.vocabulary import UNKNOWN_ID, Vocabulary
from oscar_causal.density.folds import ModelSet
from oscar_causal.density.memory import Estimate, Work, cap_bytes, plan
from oscar_causal.density.slopes import PASSES
from oscar_causal.discovery.prefix import least_positions
from oscar_causal.discovery.settings import DiscoveryConfig

Indices = npt.NDArray[np.int64]
NAMED = 5
"""So many unknown names are told, no more."""


@dataclass(frozen=True)
class Survey:
    """Counts over the sequences of a run."""

    sequences: int
    longest: int
    """Events of the longest one, as far as the model reads it."""
    shorter_than_c: int
    """Sequences with fewer events than the estimator needs before a label is predicted."""
    cut: int
    """Sequences longer than the model takes: their oldest events are cut off."""
    cut_events: int
    """Events cut off there."""
    no_position_passes: int
    """Sequences long enough for `prefix` in which no position can exceed its threshold, whatever the model says."""
    unknown_events: int
    """Events that the model reads as unknown."""
    unknown_labels: int
    """Recorded (sequence, label) pairs that cannot be explained because the model does not know the label."""
    unknown_names: Mapping[str, list[str]]
    """The most frequent of both, under `events` and `labels`."""

    def counts(self, explained: int) -> dict[str, int]:
        """For `run.json`; `explained` sequences had at least one label to explain."""
        own = {
            name: value for name, value in vars(self).items() if name not in ("sequences", "longest", "unknown_names")
        }
        return {
            "sequences": self.sequences,
            "explained": explained,
            "without_labels": self.sequences - explained,
            **own,
        }


def survey(dataset: Path, chosen: Indices, models: ModelSet, config: DiscoveryConfig) -> Survey:
    """One pass over the events and labels of the chosen sequences, row group by row group."""
    least = config.prefix.context + 1 if config.estimator == "prefix" else models.min_context
    wanted = np.zeros(int(chosen.max(initial=-1)) + 1, bool)
    wanted[chosen] = True
    begin, lengths = 0, [np.zeros(0, np.int64)]
    unknown: dict[str, Counter[str]] = {"events": Counter(), "labels": Counter()}
    for table in stream_columns(dataset, ("events", "labels")):
        rows = np.zeros(len(table), bool)
        here = wanted[begin : begin + len(table)]
        rows[: len(here)] = here
        begin += len(table)
        part = table.filter(pa.array(rows))
        lengths.append(pc.list_value_length(part["events"]).to_numpy().astype(np.int64))
        unknown["events"] += _unknown_events(part["events"], models.vocabulary, models.max_length)
        if "labels" in part.column_names:
            unknown["labels"] += _unknown_labels(part["labels"], models.vocabulary)
    every = np.concatenate(lengths)
    return Survey(
        sequences=len(chosen),
        longest=int(np.minimum(every, models.max_length).max(initial=0)),
        shorter_than_c=int((every < least).sum()),
        cut=int((every > models.max_length).sum()),
        cut_events=int(np.maximum(every - models.max_length, 0).sum()),
        no_position_passes=_no_position_passes(np.minimum(every, models.max_length), config),
        unknown_events=unknown["events"].total(),
        unknown_labels=unknown["labels"].total(),
        unknown_names={kind: _most_frequent(found) for kind, found in unknown.items()},
    )


def _no_position_passes(lengths: Indices, config: DiscoveryConfig) -> int:
    if config.estimator != "prefix":
        return 0
    positions = lengths - config.prefix.context
    return int(((positions > 0) & (positions < least_positions(config.prefix.threshold))).sum())


def _unknown_events(column: pa.ChunkedArray, vocabulary: Vocabulary, max_length: int) -> Counter[str]:
    """Events that the vocabulary lacks, and how often, among the last `max_length` of each sequence."""
    events = column.combine_chunks()
    if not len(events):
        return Counter()
    offsets = list_offsets(events)
    encoded = events.flatten().dictionary_encode()
    names = encoded.dictionary.to_pylist()
    unknown = vocabulary.event_table(names) == UNKNOWN_ID
    lengths = np.diff(offsets)
    from_end = np.repeat(offsets[1:] - offsets[0], lengths) - np.arange(int(lengths.sum()))
    read = encoded.indices.to_numpy(zero_copy_only=False)[from_end <= max_length]
    counts = np.bincount(read, minlength=len(names)) * unknown
    return Counter({names[k]: int(counts[k]) for k in np.flatnonzero(counts).tolist()})


def _unknown_labels(column: pa.ChunkedArray, vocabulary: Vocabulary) -> Counter[str]:
    values = pc.value_counts(pc.list_flatten(column)).to_pylist()
    return Counter({item["values"]: item["counts"] for item in values if item["values"] not in vocabulary.label_ids})


def _most_frequent(found: Counter[str]) -> list[str]:
    return sorted(found, key=lambda name: (-found[name], name))[:NAMED]


def first_names(names: Sequence[str]) -> str:
    """A few names in one line, and how many more there are.

    >>> first_names(["A", "B"]), first_names([f"E{k}" for k in range(9)])
    ('A, B', 'E0, E1, E2, E3, E4 and 4 more')
    """
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def explained_sequences(verdicts: Path) -> int:
    """Sequences with at least one verdict; a sequence's rows are all in one shard."""
    ids = (pq.read_table(path, columns=["sequence_id"])["sequence_id"] for path in verdicts.glob("part-*.parquet"))
    return sum(len(pc.unique(column)) for column in ids)


def plan_memory(
    models: list[ModelSet], seen: Survey, config: DiscoveryConfig, *, device: str, gib: float | None, processes: int
) -> tuple[Estimate, float]:
    """What one process takes, and its cap in bytes: `gib`, or its part of a share of what is free.

    `gib` is for one process, so that the number of processes does not change the size of a piece.
    """
    cap = cap_bytes(gib, device, sharing=1 if device.startswith("cuda") else processes)
    networks = [model.network for part in models for model in part.models]
    widest = max(networks, key=lambda network: network.config.width).config
    weights = sum(parameter.nbytes for network in networks for parameter in network.parameters())
    along = config.estimator == "prefix"
    work = Work(
        network=widest,
        weights=weights,
        length=seen.longest,
        contexts=config.prefix.contexts if along else config.intervention.contexts,
        sloped=0 if along else min(widest.labels, config.intervention.ranking_budget // PASSES),
        labels_along=widest.labels if along else 0,
    )
    return plan(work, cap=cap, device=device), cap


def memory_words(memory: dict[str, Any]) -> str:
    """The estimate in one line."""
    most = "" if memory["cap_gib"] is None else f", at most {memory['cap_gib']:.2f}"
    return (
        f"memory: about {memory['total_gib']:.2f} GiB a process (weights {memory['weights_gib']:.2f}, "
        f"replacement law {memory['law_gib']:.2f}, contexts {memory['activations_gib']:.2f}){most}; "
        f"{memory['tokens_per_pass']:,} tokens at a time"
    )
