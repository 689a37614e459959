"""Sequences in memory: names at the border, int32 ids inside, everything laid end to end.

Sequence i owns rows `offsets[i]:offsets[i + 1]` of every per-event array. Event ids index `event_names` (sorted by
name), label ids index `label_names`. Times, channels, static covariates and label times are read when asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from oscar_causal.data.notebook import SHOWN_ROWS, html_table, short_list
from oscar_causal.data.schema import REQUIRED, as_typed, channels_of, conform
from oscar_causal.data.stream import channels_in, checked, open_parquet, read_info, row_groups, sequence_files
from oscar_causal.data.validate import check_sequences, check_values, list_offsets, one_array
from oscar_causal.errors import DataError, FolderError

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Ragged:
    """Lists of ids laid end to end: list i is `ids[offsets[i]:offsets[i + 1]]`."""

    offsets: Int64
    ids: Int32

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> Int32:
        return self.ids[self.offsets[index] : self.offsets[index + 1]]

    @property
    def lengths(self) -> Int64:
        """Number of ids of each list."""
        return np.diff(self.offsets)

    def rows(self) -> Int64:
        """For each id the index of the list that owns it."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def take(self, indices: Int64) -> Ragged:
        """The chosen lists, in the given order."""
        return Ragged(ragged_offsets(self.lengths[indices]), self.ids[ragged_positions(self.offsets, indices)])

    def indicator(self, width: int) -> npt.NDArray[np.bool_]:
        """A boolean matrix (lists, width): which ids each list holds."""
        dense = np.zeros((len(self), width), bool)
        dense[self.rows(), self.ids] = True
        return dense


def ragged_offsets(lengths: npt.NDArray[Any]) -> Int64:
    """Offsets of lists with these lengths."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


def ragged_positions(offsets: Int64, indices: Int64) -> Int64:
    """Row numbers of the chosen lists, end to end."""
    lengths = np.diff(offsets)[indices]
    starts = np.repeat(offsets[:-1][indices] - ragged_offsets(lengths)[:-1], lengths)
    return starts + np.arange(int(lengths.sum()))


@dataclass(frozen=True)
class Dataset:
    """Sequences with outcomes. Made by `read_dataset`, `from_table` or `from_records`; never changed afterwards.

    >>> cars = from_records([{"sequence_id": "car 1", "events": ["A", "B"], "times": [0, 7], "labels": ["fault"]}])
    >>> len(cars), cars.events_of(0), cars.labels_of(0), cars.times.tolist()
    (1, ['A', 'B'], ['fault'], [0.0, 7.0])
    """

    sequence_ids: pa.Array
    subject_ids: pa.Array
    start: pa.Array
    event_names: tuple[str, ...]
    label_names: tuple[str, ...]
    events: Ragged
    labels: Ragged
    labelled: npt.NDArray[np.bool_]
    channels: tuple[str, ...]
    info: Mapping[str, Any]
    path: Path | None = None
    _column: Callable[[str], pa.Array] = field(default=lambda name: _no_column(name), repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.events)

    def _repr_html_(self) -> str:
        """What a notebook shows: counts and the first sequences."""
        counts = f"{len(self):,} sequences, {len(self.events.ids):,} events of {len(self.event_names):,} types"
        rows = [
            [self.sequence_ids[i], short_list(self.events_of(i)), short_list(self.labels_of(i))]
            for i in range(min(len(self), SHOWN_ROWS))
        ]
        note = f"… and {len(self) - SHOWN_ROWS:,} more sequences" if len(self) > SHOWN_ROWS else ""
        return html_table(f"{counts}, {len(self.label_names):,} labels", ["sequence", "events", "labels"], rows, note)

    @property
    def lengths(self) -> Int64:
        """Number of events of each sequence."""
        return self.events.lengths

    @cached_property
    def times(self) -> Float64:
        """Seconds from the start of each event, laid end to end."""
        return np.asarray(self._per_event("times"), np.float64)

    def channel(self, name: str) -> npt.NDArray[np.float32]:
        """Values of a numeric channel, laid end to end; NaN = missing."""
        if name not in self.channels:
            raise DataError(f"channel {name!r}: expected one of {list(self.channels)}")
        return np.asarray(self._per_event(name), np.float32)

    def _per_event(self, name: str) -> npt.NDArray[Any]:
        column = self._column(name)
        if not np.array_equal(list_offsets(column), self.events.offsets):
            raise DataError(f"{self.path or 'sequences'}: column {name!r}: expected one value per event")
        values: npt.NDArray[Any] = column.flatten().to_numpy(zero_copy_only=False)
        return values

    def static(self) -> list[dict[str, str]]:
        """What was known at the start, a dictionary for each sequence."""
        try:
            column = self._column("static")
        except KeyError:
            return [{} for _ in range(len(self))]
        return [dict(pairs or []) for pairs in column.to_pylist()]

    def label_times(self) -> Float64 | None:
        """Time of each label, aligned with `labels.ids`; NaN = unknown; None when the dataset has none."""
        try:
            column = self._column("label_times")
        except KeyError:
            return None
        values = np.full(len(self.labels.ids), np.nan)
        known = ~column.is_null().to_numpy(zero_copy_only=False)
        if not np.array_equal(np.diff(list_offsets(column))[known], self.labels.lengths[known]):
            raise DataError(f"{self.path or 'sequences'}: column 'label_times': expected one value per label")
        values[known[self.labels.rows()]] = column.flatten().to_numpy(zero_copy_only=False)
        return values

    def take(self, indices: Sequence[int] | npt.NDArray[Any]) -> Dataset:
        """The chosen sequences, in the given order; a boolean mask chooses too."""
        chosen = np.asarray(indices)
        chosen = np.flatnonzero(chosen) if chosen.dtype == bool else chosen.astype(np.int64)
        arrow = pa.array(chosen)
        return Dataset(
            self.sequence_ids.take(arrow),
            self.subject_ids.take(arrow),
            self.start.take(arrow),
            self.event_names,
            self.label_names,
            self.events.take(chosen),
            self.labels.take(chosen),
            self.labelled[chosen],
            self.channels,
            self.info,
            self.path,
            lambda name: self._column(name).take(arrow),
        )

    def index_of(self, sequence_ids: Iterable[str]) -> Int64:
        """Row numbers of the named sequences; an unknown id is a DataError."""
        names = list(sequence_ids)
        rows = pc.index_in(pa.array(names, pa.string()), value_set=self.sequence_ids)
        if rows.null_count:
            missing = names[rows.is_null().to_pylist().index(True)]
            raise DataError(f"sequence {missing!r}: not in this dataset of {len(self):,} sequences")
        return np.asarray(rows.to_numpy(), np.int64)

    def events_of(self, index: int) -> list[str]:
        """Event names of one sequence, in order."""
        return [self.event_names[i] for i in self.events[index]]

    def labels_of(self, index: int) -> list[str]:
        """Label names of one sequence."""
        return [self.label_names[i] for i in self.labels[index]]


def from_table(table: pa.Table, *, where: str = "sequences") -> Dataset:
    """A dataset from an Arrow table in the format's columns (held in memory).

    >>> nights = pa.table({"sequence_id": ["night 1", "night 2"], "events": [["boot", "login"], ["boot"]],
    ...                    "times": [[0.0, 4.0], [0.0]], "labels": [["outage"], []]})
    >>> from_table(nights).labels_of(0)
    ['outage']
    """
    table = conform(table)
    check_sequences(table, where=where)
    columns = {name: one_array(table[name]) for name in table.column_names}
    encoder = _Encoder()
    encoder.add(columns["events"], columns["labels"])
    return encoder.finish(columns, channels_of(table.schema), {}, None, columns.__getitem__)


def from_records(records: Iterable[Mapping[str, Any]]) -> Dataset:
    """A dataset from dictionaries with the format's keys.

    >>> data = from_records([{"sequence_id": "car 1", "events": ["B", "A"], "times": [0, 5], "labels": ["fault"]}])
    >>> len(data), data.events_of(0), data.labels_of(0)
    (1, ['B', 'A'], ['fault'])
    """
    rows = list(records)
    if not rows:
        raise DataError("sequences: expected at least one sequence, got none")
    try:
        table = pa.Table.from_pylist(rows)
    except (pa.ArrowException, UnicodeEncodeError, OverflowError) as error:
        raise DataError(f"sequences: {next(iter(str(error).splitlines()), 'cannot be read')}") from error
    return from_table(table)


def read_dataset(path: Path | str) -> Dataset:
    """Open a dataset folder; events and labels are read now, row group by row group, the rest when asked for.

    >>> from tempfile import TemporaryDirectory
    >>> from oscar_causal import write_dataset
    >>> with TemporaryDirectory() as place:
    ...     table = pa.table({"sequence_id": ["n1"], "events": [["boot"]], "times": [[0.0]]})
    ...     write_dataset(f"{place}/nights", [table])
    ...     read_dataset(f"{place}/nights").events_of(0)
    ['boot']
    """
    path = Path(path)
    info = read_info(path)
    files = sequence_files(path)
    encoder = _Encoder()
    heads: dict[str, list[pa.Array]] = {"sequence_id": [], "subject_id": [], "start": []}
    for batch in _stream(files, ["sequence_id", "subject_id", "start", "events", "labels"]):
        encoder.add(batch["events"], batch["labels"])
        for name, parts in heads.items():
            parts.append(batch[name])
    columns = {name: pa.concat_arrays(parts) for name, parts in heads.items()}
    channels = channels_in(files)
    if len(encoder) != info.get("sequences"):
        raise FolderError(f"{path}: expected {info.get('sequences')} sequences (dataset.json), found {len(encoder)}")
    return encoder.finish(columns, channels, info, path, lru_cache(4)(partial(_read_column, files)))


class _Encoder:
    """Turns names into ids while row groups stream by, into one array that grows in place."""

    def __init__(self) -> None:
        self._ids = np.empty(0, np.int32)
        self._used = 0
        self._names: dict[str, int] = {}
        self._lengths: list[Int64] = []
        self._label_names: dict[str, int] = {}
        self._label_ids: list[Int32] = []
        self._label_lengths: list[Int64] = []
        self._labelled: list[npt.NDArray[np.bool_]] = []

    def __len__(self) -> int:
        return sum(len(part) for part in self._lengths)

    def add(self, events: pa.ListArray, labels: pa.ListArray) -> None:
        ids = _encode(events.flatten(), self._names)
        if self._used + len(ids) > len(self._ids):
            self._ids.resize(self._used + len(ids) + len(self._ids) // 4, refcheck=False)
        self._ids[self._used : self._used + len(ids)] = ids
        self._used += len(ids)
        self._lengths.append(np.diff(list_offsets(events)))
        self._label_ids.append(_encode(labels.flatten(), self._label_names))
        self._label_lengths.append(np.diff(list_offsets(labels)))
        self._labelled.append(~labels.is_null().to_numpy(zero_copy_only=False))

    def finish(
        self,
        columns: Mapping[str, Any],
        channels: tuple[str, ...],
        info: Mapping[str, Any],
        path: Path | None,
        load: Callable[[str], pa.Array],
    ) -> Dataset:
        event_names, event_map = _sorted_names(self._names)
        label_names, label_map = _sorted_names(self._label_names)
        self._ids.resize(self._used, refcheck=False)
        ids = self._ids
        for begin in range(0, len(ids), 1 << 20):  # in pieces: numpy widens indices to 64 bits
            ids[begin : begin + (1 << 20)] = event_map[ids[begin : begin + (1 << 20)]]
        label_ids = np.concatenate(self._label_ids) if self._label_ids else np.empty(0, np.int32)
        return Dataset(
            columns["sequence_id"],
            columns["subject_id"],
            columns["start"],
            event_names,
            label_names,
            Ragged(ragged_offsets(np.concatenate(self._lengths)), ids),
            Ragged(ragged_offsets(np.concatenate(self._label_lengths)), label_map[label_ids]),
            np.concatenate(self._labelled),
            channels,
            info,
            path,
            load,
        )


def _encode(values: pa.Array, known: dict[str, int]) -> Int32:
    encoded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
    names = encoded.dictionary.to_pylist()
    table = np.fromiter((known.setdefault(name, len(known)) for name in names), np.int32, len(names))
    indices = encoded.indices.to_numpy(zero_copy_only=False)
    return np.take(table, indices) if len(table) else np.empty(0, np.int32)


def _sorted_names(known: Mapping[str, int]) -> tuple[tuple[str, ...], Int32]:
    names = tuple(sorted(known))
    table = np.empty(len(names), np.int32)
    table[[known[name] for name in names]] = np.arange(len(names), dtype=np.int32)
    return names, table


def _no_column(name: str) -> pa.Array:
    raise KeyError(name)


def _stream(files: Sequence[Path], columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    for file in files:
        with open_parquet(file) as plain:
            _check_columns(file, plain.schema_arrow.names)
            leaves = [plain.schema.column(index).path for index in range(len(plain.schema))]
        encoded = [leaf for leaf in leaves if leaf.split(".")[0] in ("events", "labels")]
        with open_parquet(file, read_dictionary=encoded) as parquet:
            for table in row_groups(file, parquet, columns):
                yield _with_defaults(file, table)


def _check_columns(file: Path, names: Sequence[str]) -> None:
    missing = [name for name in REQUIRED if name not in names]
    if missing:
        raise FolderError(f"{file}: expected columns {', '.join(REQUIRED)}, got {list(names)}")


def _with_defaults(file: Path, table: pa.Table) -> dict[str, Any]:
    columns = {name: _typed(file, table[name], name) for name in table.column_names}
    columns.setdefault("subject_id", columns["sequence_id"])
    columns.setdefault("start", pa.nulls(len(table), pa.timestamp("us", tz="UTC")))
    columns.setdefault("labels", pa.nulls(len(table), pa.list_(pa.string())))
    for name in ("sequence_id", "subject_id", "events", "labels"):
        values = columns[name].flatten() if name in ("events", "labels") else columns[name]
        if values.null_count:
            raise FolderError(f"{file}: column {name!r}: expected names, got null")
    if not pc.all(pc.greater(pc.list_value_length(columns["events"]), 0), skip_nulls=False, min_count=0).as_py():
        raise FolderError(f"{file}: column 'events': expected at least one event in every sequence, got none")
    return columns


def _read_column(files: Sequence[Path], name: str) -> pa.Array:
    parts = []
    for file in files:
        with open_parquet(file) as parquet:
            if name not in parquet.schema_arrow.names:
                raise KeyError(name)
            for table in row_groups(file, parquet, ["sequence_id", name]):
                parts.append(_typed(file, table[name], name))
                ids = one_array(table["sequence_id"])
                checked(file, lambda ids=ids: check_values(parts[-1], ids, name, where="sequences"))  # type: ignore[misc]
    return pa.concat_arrays(parts)


def _typed(file: Path, column: pa.ChunkedArray, name: str) -> pa.Array:
    return checked(file, lambda: one_array(as_typed(column, name)))
