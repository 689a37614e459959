"""A dataset back as long tables, for other tools; imported again they give the same content digest.

`events` has one row per event: sequence, subject, start, time, event, channels, static. `labels` has one row per label
(sequence, label, its time), and a row with `labelled` = 0 for each unlabelled sequence; it is left out when no sequence
is labelled. Columns that would say nothing are left out too.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

from oscar_causal.data.checksums import check_file
from oscar_causal.data.folders import new_folder
from oscar_causal.data.importers.names import check_notes
from oscar_causal.data.importers.options import ImportOptions
from oscar_causal.data.stream import channels_in, read_info, sequence_files, stream_tables
from oscar_causal.data.validate import list_offsets, one_array
from oscar_causal.errors import DataError, UsageError

FORMATS = ("csv", "parquet")
OnProgress = Callable[[int, int], None]


@dataclass(frozen=True)
class ExportSummary:
    """What was written, and how to get it back."""

    events: Path
    labels: Path | None
    event_rows: int
    label_rows: int
    import_options: ImportOptions
    """`import_tables([events], DIR, import_options)` gives a dataset of the same content digest."""


@dataclass
class _Found:
    """What a first look over the small columns shows."""

    static: dict[str, None] = field(default_factory=dict)
    subjects: bool = False
    starts: bool = False
    labelled: bool = False
    unlabelled: bool = False
    label_times: bool = False


@dataclass(frozen=True)
class _Columns:
    """Names of the columns in the event table; they give way to channels and static keys of the same name."""

    sequence: str
    subject: str | None
    start: str | None
    time: str
    event: str
    channels: tuple[str, ...]
    static: tuple[str, ...]


def export_tables(
    source: Path | str,
    out: Path | str,
    *,
    format: str = "csv",
    force: bool = False,
    on_progress: OnProgress | None = None,
) -> ExportSummary:
    """Write the dataset at `source` as long tables into the folder `out`.

    >>> from tempfile import TemporaryDirectory
    >>> from oscar_causal import write_dataset
    >>> with TemporaryDirectory() as place:
    ...     drives = {"sequence_id": ["d1", "d2"], "events": [["A", "B"], ["A"]], "times": [[0.0, 9.0], [0.0]]}
    ...     write_dataset(f"{place}/fleet", [pa.table(drives)])
    ...     _ = export_tables(f"{place}/fleet", f"{place}/tables")
    ...     Path(place, "tables", "events.csv").read_text().splitlines()[1:]
    ['"d1",0,"A"', '"d1",9,"B"', '"d2",0,"A"']
    """
    if format not in FORMATS:
        raise UsageError(f"--format: expected one of {', '.join(FORMATS)} or meds, got {format!r}")
    source, out, info = Path(source), Path(out), read_info(source)
    check_notes(source)
    found = _look(source)
    columns = _columns(channels_in(sequence_files(source)), found)
    with new_folder(out, force=force) as folder:
        tables = _with_progress(
            stream_tables(source), int(info["sequences"]), on_progress or (lambda done, total: None)
        )
        rows = _write(folder, format, tables, columns, found)
        for name in ("names.json", "rules.json"):
            if (source / name).exists():
                check_file(source / name)
                shutil.copyfile(source / name, folder / name)
    labels = out / f"labels.{format}" if found.labelled else None
    names = out / "names.json" if (out / "names.json").exists() else None
    return ExportSummary(out / f"events.{format}", labels, *rows, _options(columns, labels, names, found))


def _with_progress(tables: Iterable[pa.Table], total: int, on_progress: OnProgress) -> Iterator[pa.Table]:
    done = 0
    for table in tables:
        yield table
        done += len(table)
        on_progress(done, total)


def _look(source: Path) -> _Found:
    found = _Found()
    for table in stream_tables(source):
        columns = {name: one_array(table[name]) for name in table.column_names}
        if "static" in columns:
            pairs = columns["static"].cast(pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())])))
            found.static |= dict.fromkeys(pairs.flatten().field("key").unique().to_pylist())
        found.subjects |= bool(pc.any(pc.not_equal(columns["subject_id"], columns["sequence_id"])).as_py())
        found.starts |= columns["start"].null_count < len(table)
        unknown = columns["labels"].null_count
        found.labelled |= unknown < len(table)
        found.unlabelled |= unknown > 0
        if "label_times" in columns:
            times = columns["label_times"].flatten().to_numpy(zero_copy_only=False)
            found.label_times |= bool(np.isfinite(times).any())
    return found


def _columns(channels: tuple[str, ...], found: _Found) -> _Columns:
    static = tuple(sorted(found.static))
    for name in static:
        if name in channels:
            raise DataError(f"export: expected different names, got {name!r} as a channel and as a static key")
    taken = {*channels, *static}

    def free(name: str) -> str:
        while name in taken:
            name += "_"
        taken.add(name)
        return name

    return _Columns(
        free("sequence_id"),
        free("subject_id") if found.subjects else None,
        free("start") if found.starts else None,
        free("time"),
        free("event"),
        channels,
        static,
    )


def _write(folder: Path, format: str, tables: Iterable[pa.Table], columns: _Columns, found: _Found) -> tuple[int, int]:
    events = _Sink(folder / f"events.{format}")
    labels = _Sink(folder / f"labels.{format}")
    try:
        for table in tables:
            events.write(event_rows(table, columns))
            if found.labelled:
                labels.write(_label_rows(table, columns, found))
    finally:
        events.close()
        labels.close()
    return events.rows, labels.rows


def event_rows(table: pa.Table, columns: _Columns) -> pa.Table:
    """One row per event."""
    events = one_array(table["events"])
    rows = pa.array(np.repeat(np.arange(len(table)), np.diff(list_offsets(events))))
    found = {columns.sequence: one_array(table["sequence_id"]).take(rows)}
    if columns.subject is not None:
        found[columns.subject] = one_array(table["subject_id"]).take(rows)
    if columns.start is not None:
        found[columns.start] = one_array(table["start"]).take(rows)
    found[columns.time] = one_array(table["times"]).flatten()
    found[columns.event] = events.flatten()
    for name in columns.channels:
        values = one_array(table[name]).flatten()
        found[name] = pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)
    for name in columns.static:
        known = "static" in table.column_names
        values = (
            pc.map_lookup(one_array(table["static"]), name, "first") if known else pa.nulls(len(table), pa.string())
        )
        found[name] = values.take(rows)
    return pa.table(found)


def _label_rows(table: pa.Table, columns: _Columns, found: _Found) -> pa.Table:
    labels, ids = one_array(table["labels"]), one_array(table["sequence_id"])
    lengths = np.diff(list_offsets(labels))
    unknown = np.flatnonzero(labels.is_null().to_numpy(zero_copy_only=False))
    owners = np.concatenate([np.repeat(np.arange(len(table)), lengths), unknown])
    rows: dict[str, Any] = {
        columns.sequence: ids.take(pa.array(owners)),
        "label": pa.concat_arrays([labels.flatten(), pa.nulls(len(unknown), pa.string())]),
    }
    if found.label_times:
        values = np.full(len(owners), np.nan)
        if "label_times" in table.column_names:
            times = one_array(table["label_times"])
            known = np.repeat(~times.is_null().to_numpy(zero_copy_only=False), lengths)
            values[: len(known)][known] = times.flatten().to_numpy(zero_copy_only=False)
        rows["label_time"] = pa.array(values, mask=np.isnan(values))
    if found.unlabelled:
        rows["labelled"] = pa.array((np.arange(len(owners)) < lengths.sum()).astype(np.int8))
    return pa.table(rows)


class _Sink:
    """A CSV or Parquet file that comes into being with the first table; text is always quoted, nothing never."""

    def __init__(self, path: Path) -> None:
        self._path, self.rows = path, 0
        self._writer: Any = None

    def write(self, table: pa.Table) -> None:
        if self._writer is None:
            parquet = self._path.suffix == ".parquet"
            make: Any = pq.ParquetWriter if parquet else arrow_csv.CSVWriter
            self._writer = make(str(self._path), table.schema)
        self._writer.write_table(table)
        self.rows += len(table)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def _options(columns: _Columns, labels: Path | None, names: Path | None, found: _Found) -> ImportOptions:
    return ImportOptions(
        sequence_column=columns.sequence,
        time_column=columns.time,
        event_column=columns.event,
        subject_column=columns.subject,
        start_column=columns.start,
        static=columns.static,
        channels=columns.channels,
        labels=labels,
        label_column="label" if labels is not None else None,
        label_time_column="label_time" if labels is not None and found.label_times else None,
        time_unit="s",
        keep_origin=True,
        names=names,
    )
