"""The dataset on disk: one folder, Parquet inside. This file is the format; everything else calls it.

Invariants of `sequences/*.parquet`, one row per sequence, each with its reason:

- `sequence_id` is unique and not empty: results refer to sequences by it.
- `subject_id` (the car, the patient) is never null in memory; a file without it means "each sequence its own subject".
  Splits never cut a subject, otherwise a model is judged on what it has memorised.
- `events` is not empty and holds no null; events are in time order.
- `times` has the length of `events`: seconds from the start, 0 to 1e15, never falling, ties allowed.
- every channel (`mileage`, ...) is a `list<float>` of the length of `events`; missing = null, never infinite.
- `static` has each key once; keys and values are not empty: what is not known is left out, null = nothing is known.
- `labels` null = unlabelled, empty = none observed; no label twice. `label_times` is aligned with `labels`;
  null = not known.
- row groups hold at most 10,000 sequences and about 5 million events, so that readers can stream.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from oscar_causal.errors import DataError

FORMAT_VERSION = 1
ROW_GROUP_SEQUENCES = 10_000
FILE_SEQUENCES = 100_000
ROW_GROUP_EVENTS = 5_000_000
"""A row group is closed before it holds more events than this (one longer sequence has a group of its own)."""
MAX_SECONDS = 1e15
"""Times end here (thirty million years): beyond it a float64 no longer tells one second from the next."""

FIRST_START, LAST_START = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The years 1 to 9999 in microseconds from 1970: what Python's datetime can hold."""

REQUIRED = ("sequence_id", "events", "times")
RESERVED = ("sequence_id", "subject_id", "start", "events", "times", "static", "labels", "label_times")

_STRING_LIST = pa.list_(pa.string())
_TYPES: dict[str, pa.DataType] = {
    "sequence_id": pa.string(),
    "subject_id": pa.string(),
    "start": pa.timestamp("us", tz="UTC"),
    "events": _STRING_LIST,
    "times": pa.list_(pa.float64()),
    "static": pa.map_(pa.string(), pa.string()),
    "labels": _STRING_LIST,
    "label_times": pa.list_(pa.float64()),
}
CHANNEL_TYPE = pa.list_(pa.float32())

WHY_SCHEMA = pa.schema(
    [
        ("sequence_id", pa.string()),
        ("label", pa.string()),
        ("event", pa.string()),
        ("positions", pa.list_(pa.int32())),
        ("role", pa.string()),
        ("necessary", pa.bool_()),
    ]
)


def sequences_schema(channels: Sequence[str] = (), *, static: bool = False, label_times: bool = False) -> pa.Schema:
    """The columns written for a dataset with these channels and optional parts.

    >>> sequences_schema(["mileage"]).names
    ['sequence_id', 'subject_id', 'start', 'events', 'times', 'mileage', 'labels']
    """
    for name in channels:
        if name in RESERVED:
            raise DataError(f"channel {name!r}: this name is taken by the format; rename the column")
    fields = [pa.field(name, _TYPES[name]) for name in ("sequence_id", "subject_id", "start", "events", "times")]
    fields += [pa.field(name, CHANNEL_TYPE) for name in channels]
    fields += [pa.field("static", _TYPES["static"])] if static else []
    fields += [pa.field("labels", _TYPES["labels"])]
    fields += [pa.field("label_times", _TYPES["label_times"])] if label_times else []
    return pa.schema(fields)


def channels_of(schema: pa.Schema) -> tuple[str, ...]:
    """The numeric channels of a file: every list of numbers that the format does not name itself."""
    names = []
    for field in schema:
        if field.name in RESERVED:
            continue
        value = getattr(field.type, "value_type", None)
        if value is None or not (pa.types.is_floating(value) or pa.types.is_integer(value)):
            raise DataError(f"column {field.name!r}: expected a channel (list of numbers), got {field.type}")
        names.append(field.name)
    return tuple(names)


def check_names(schema: pa.Schema) -> None:
    """A column that is there twice is a DataError: Arrow finds neither by its name."""
    twice = [name for name, count in Counter(schema.names).items() if count > 1]
    if twice:
        raise DataError(f"column {twice[0]!r}: expected each column once, got it {schema.names.count(twice[0])} times")


def as_typed(column: pa.ChunkedArray | pa.Array, name: str) -> Any:
    """A column as the format types it; lists of names may be dictionary-encoded. What cannot be cast is a DataError."""
    wanted: pa.DataType = _TYPES.get(name, CHANNEL_TYPE)
    value: Any = getattr(column.type, "value_type", None)
    encoded = pa.types.is_list(column.type) and pa.types.is_dictionary(value) and wanted == _STRING_LIST
    if column.type == wanted or (encoded and value.value_type == pa.string()):
        return _near(column, name)
    return _cast(column, name, wanted)


def _cast(column: pa.ChunkedArray | pa.Array, name: str, wanted: pa.DataType) -> Any:
    try:
        return _near(column.cast(wanted), name)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise DataError(f"column {name!r}: expected {wanted}, got {column.type}: {reason}") from error


def _near(column: Any, name: str) -> Any:
    """The column; a start outside the years that calendars know is a DataError."""
    if name == "start":
        bounds = pc.min_max(column.cast(pa.int64()))
        if bounds["min"].is_valid and not (
            bounds["min"].as_py() >= FIRST_START and bounds["max"].as_py() <= LAST_START
        ):
            raise DataError("column 'start': expected moments in the years 1 to 9999")
    return column


def conform(batch: pa.RecordBatch | pa.Table) -> pa.Table:
    """Bring a table of sequences to the format's columns and types; optional columns are filled with their defaults.

    A column that is missing or cannot be cast is a DataError that names it.
    """
    table = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
    check_names(table.schema)
    missing = [name for name in REQUIRED if name not in table.column_names]
    if missing:
        raise DataError(
            f"sequences: expected column {missing[0]!r}, got {', '.join(table.column_names) or 'no columns'}"
        )
    channels = channels_of(table.schema)
    optional = {name: name in table.column_names for name in ("static", "label_times")}
    schema = sequences_schema(channels, static=optional["static"], label_times=optional["label_times"])
    defaults = {
        "subject_id": lambda: table["sequence_id"],
        "start": lambda: pa.nulls(len(table), _TYPES["start"]),
        "labels": lambda: pa.nulls(len(table), _TYPES["labels"]),
    }
    columns = []
    for field in schema:
        column = table[field.name] if field.name in table.column_names else defaults[field.name]()
        columns.append(_cast(column, field.name, field.type))
    return pa.table(columns, schema=schema)
