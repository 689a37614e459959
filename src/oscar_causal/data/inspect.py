"""What is in a dataset: counts, lengths, long tails, ties, problems; one streamed pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from oscar_causal.data.event_types import EventTypes, Int64, UInt64
from oscar_causal.data.importers.names import check_notes
from oscar_causal.data.problems import Facts, find_problems
from oscar_causal.data.schema import channels_of
from oscar_causal.data.stream import read_info, stream_tables, stream_why
from oscar_causal.data.subjects import subject_hashes
from oscar_causal.data.validate import list_offsets, one_array

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
RARE_EVENTS = 10
"""An event type seen fewer times than this counts as the tail."""
SHOWN_MOST = 10


@dataclass
class Survey:
    """Sums over the tables of a dataset."""

    types: EventTypes = field(default_factory=EventTypes)
    labels: dict[str, int] = field(default_factory=dict)
    lengths: list[Int64] = field(default_factory=list)
    subjects: list[UInt64] = field(default_factory=list)
    sequences: int = 0
    events: int = 0
    labelled: int = 0
    tied_events: int = 0
    tied_sequences: int = 0
    missing: dict[str, int] = field(default_factory=dict)
    static: dict[str, int] = field(default_factory=dict)
    starts: list[Any] = field(default_factory=list)
    started: int = 0
    timed_labels: int = 0
    late_events: int = 0
    """Events at or after the earliest known label time of their sequence."""

    def add(self, table: pa.Table) -> None:
        """Count the sequences of one table."""
        events, labels = one_array(table["events"]), one_array(table["labels"])
        offsets = list_offsets(events)
        rows = np.repeat(np.arange(len(table)), np.diff(offsets))
        times = one_array(table["times"]).flatten().to_numpy(zero_copy_only=False)
        self.types.add(events, self.sequences)
        _count(self.labels, labels.flatten())
        self.lengths.append(np.diff(offsets))
        self.subjects.append(np.unique(subject_hashes(one_array(table["subject_id"]))))
        self.labelled += len(table) - labels.null_count
        self._add_ties(times, rows)
        self._add_optional(table, rows, times)
        self.sequences += len(table)
        self.events += len(rows)

    def _add_ties(self, times: npt.NDArray[np.float64], rows: Int64) -> None:
        same = (np.diff(times) == 0) & (np.diff(rows) == 0)
        tied = np.zeros(len(times), bool)
        tied[1:] |= same
        tied[:-1] |= same
        self.tied_events += int(tied.sum())
        self.tied_sequences += len(np.unique(rows[tied]))

    def _add_optional(self, table: pa.Table, rows: Int64, times: npt.NDArray[np.float64]) -> None:
        for name in channels_of(table.schema):
            values = one_array(table[name]).flatten().to_numpy(zero_copy_only=False)
            self.missing[name] = self.missing.get(name, 0) + int(np.isnan(values).sum())
        start = one_array(table["start"]).drop_null()
        self.started += len(start)
        if len(start):
            bounds = pc.min_max(start)
            self.starts += [bounds["min"].as_py(), bounds["max"].as_py()]
        if "static" in table.column_names:
            pairs = one_array(table["static"]).cast(pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())])))
            _count(self.static, pairs.flatten().field("key"))
        if "label_times" in table.column_names:
            self._add_late(one_array(table["label_times"]), rows, times)

    def _add_late(self, label_times: pa.ListArray, rows: Int64, times: npt.NDArray[np.float64]) -> None:
        values = label_times.flatten().to_numpy(zero_copy_only=False)
        self.timed_labels += int(np.isfinite(values).sum())
        earliest = np.full(len(label_times), np.inf)
        np.fmin.at(earliest, np.repeat(np.arange(len(label_times)), np.diff(list_offsets(label_times))), values)
        self.late_events += int(np.sum(times >= earliest[rows]))


def inspect_dataset(path: Path | str, *, on_progress: Callable[[int, int], None] | None = None) -> dict[str, Any]:
    """Everything `oscar inspect --json` prints; shares are fractions of 1.

    >>> from tempfile import TemporaryDirectory
    >>> from oscar_causal import write_dataset
    >>> with TemporaryDirectory() as place:
    ...     drives = {"sequence_id": ["d1", "d2"], "events": [["A", "B"], ["A"]], "times": [[0.0, 9.0], [0.0]]}
    ...     write_dataset(f"{place}/fleet", [pa.table(drives)])
    ...     inspect_dataset(f"{place}/fleet")["lengths"]["longest"]
    2
    """
    info = read_info(path)
    check_notes(path)
    survey = Survey()
    for table in stream_tables(path):
        survey.add(table)
        if on_progress is not None:
            on_progress(survey.sequences, int(info["sequences"]))
    return {
        "path": str(path),
        "digest": info.get("digest"),
        **_counts(survey),
        "lengths": _lengths(np.concatenate(survey.lengths)),
        "tail": _tail(survey.types),
        "ties": {
            "events_share": survey.tied_events / survey.events,
            "sequences_share": survey.tied_sequences / survey.sequences,
        },
        "channels": {name: {"missing_share": count / survey.events} for name, count in survey.missing.items()},
        "static": {name: {"known_share": count / survey.sequences} for name, count in sorted(survey.static.items())},
        "start": _starts(survey),
        "label_times": {"known": survey.timed_labels, "events_at_or_after": survey.late_events},
        "truth": {"rules": (Path(path) / "rules.json").exists(), "why_rows": sum(map(len, stream_why(path)))},
        "problems": [problem.to_json() for problem in find_problems(_facts(survey))],
    }


def _counts(survey: Survey) -> dict[str, Any]:
    return {
        "sequences": survey.sequences,
        "subjects": len(np.unique(np.concatenate(survey.subjects))),
        "events": survey.events,
        "event_types": len(survey.types.ids),
        "labels": dict(sorted(survey.labels.items(), key=lambda item: (-item[1], item[0]))),
        "labelled": survey.labelled,
        "unlabelled": survey.sequences - survey.labelled,
    }


def _lengths(lengths: Int64) -> dict[str, Any]:
    quantiles = np.quantile(lengths, QUANTILES)
    return {
        "mean": float(lengths.mean()),
        "sd": float(lengths.std()),
        "shortest": int(lengths.min()),
        "longest": int(lengths.max()),
        "quantiles": {f"{q:g}": float(value) for q, value in zip(QUANTILES, quantiles, strict=True)},
    }


def _tail(types: EventTypes) -> dict[str, Any]:
    names = np.array(list(types.ids), dtype=object)
    order = np.lexsort((names, -types.occurrences))
    counts = types.occurrences[order]
    half = int(np.searchsorted(np.cumsum(counts), counts.sum() / 2)) + 1
    return {
        f"types_seen_under_{RARE_EVENTS}_share": float(np.mean(counts < RARE_EVENTS)),
        "types_that_make_half_of_the_events": half,
        "most_frequent": {str(names[i]): int(types.occurrences[i]) for i in order[:SHOWN_MOST]},
    }


def _starts(survey: Survey) -> dict[str, Any]:
    bounds = (min(survey.starts).isoformat(), max(survey.starts).isoformat()) if survey.starts else (None, None)
    return {"known": survey.started, "first": bounds[0], "last": bounds[1]}


def _facts(survey: Survey) -> Facts:
    names = list(survey.types.ids)
    return Facts(
        sequences=survey.sequences,
        labelled=survey.labelled,
        labels=survey.labels,
        event_names=survey.types.ids,
        everywhere=[names[i] for i in np.flatnonzero(survey.types.sequences == survey.sequences).tolist()],
        single=int(np.sum(np.concatenate(survey.lengths) == 1)),
        tied_share=survey.tied_events / survey.events,
        late_events=survey.late_events,
        inseparable=survey.types.inseparable(RARE_EVENTS),
    )


def _count(counts: dict[str, int], names: Any) -> None:
    for item in names.value_counts().to_pylist():
        counts[item["values"]] = counts.get(item["values"], 0) + item["counts"]
