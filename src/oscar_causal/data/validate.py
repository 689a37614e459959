"""Checks the invariants of `schema` on a table of sequences, vectorised, and names the first offender."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from oscar_causal.data.schema import MAX_SECONDS, channels_of
from oscar_causal.errors import DataError

MAX_EVENTS = 10_000_000
"""Longest sequence the format accepts; beyond it a file is taken to be damaged."""


def list_offsets(column: pa.ListArray) -> npt.NDArray[np.int64]:
    """Offsets of a list column counted from its own first value; a null list counts as empty."""
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])


def one_array(column: pa.ChunkedArray | pa.Array) -> Any:
    """A chunked column as one array."""
    if isinstance(column, pa.ChunkedArray):
        return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    return column


def check_sequences(table: pa.Table, *, where: str) -> None:
    """Raise DataError on the first broken invariant, naming `where`, the sequence, the column and what came."""
    if not len(table):
        return
    ids = one_array(table["sequence_id"])
    _check_ids(ids, one_array(table["subject_id"]), where)
    events = one_array(table["events"])
    offsets = list_offsets(events)
    lengths = np.diff(offsets)
    _first(lengths == 0, ids, where, "events", "at least one event", lambda i: "an empty sequence")
    _first(lengths > MAX_EVENTS, ids, where, "events", f"at most {MAX_EVENTS:,} events", lambda i: f"{lengths[i]:,}")
    _check_names(events.flatten(), offsets, ids, where, "events")
    _check_times(one_array(table["times"]), offsets, ids, where)
    for name in channels_of(table.schema):
        _check_lengths(one_array(table[name]), lengths, ids, where, name)
        _check_finite(one_array(table[name]), ids, where, name)
    if "static" in table.column_names:
        _check_static(one_array(table["static"]), ids, where)
    _check_labels(table, ids, where)


def check_values(column: Any, ids: Any, name: str, *, where: str) -> None:
    """The same for one column alone (times, label times, static, a channel): what does not need the others."""
    if name == "times":
        _check_times(column, list_offsets(column), ids, where)
    elif name == "static":
        _check_static(column, ids, where)
    else:
        _check_finite(column, ids, where, name)


def _first(bad: npt.NDArray[np.bool_], ids: Any, where: str, column: str, expected: str, came: Any) -> None:
    if bad.any():
        i = int(np.argmax(bad))
        raise DataError(f"{where}: sequence {ids[i].as_py()!r}, column {column!r}: expected {expected}, got {came(i)}")


def _check_ids(ids: Any, subjects: Any, where: str) -> None:
    for name, column in (("sequence_id", ids), ("subject_id", subjects)):
        empty = pc.fill_null(pc.equal(pc.utf8_length(column), 0), True).to_numpy(zero_copy_only=False)
        if empty.any():
            raise DataError(f"{where}: row {int(np.argmax(empty)) + 1}, column {name!r}: expected a name, got nothing")


def _check_names(values: Any, offsets: npt.NDArray[np.int64], ids: Any, where: str, column: str) -> None:
    empty = pc.fill_null(pc.equal(pc.binary_length(values), 0), True).to_numpy(zero_copy_only=False)
    if empty.any():
        row = int(np.searchsorted(offsets, np.argmax(empty), side="right")) - 1
        position = int(np.argmax(empty)) - int(offsets[row])
        raise DataError(
            f"{where}: sequence {ids[row].as_py()!r}, column {column!r}, position {position}: "
            "expected a name, got null or empty text"
        )


def _check_lengths(column: Any, lengths: npt.NDArray[np.int64], ids: Any, where: str, name: str) -> None:
    found = np.diff(list_offsets(column))
    nulls = column.is_null().to_numpy(zero_copy_only=False)
    _first(
        (found != lengths) | (nulls & (lengths > 0)),
        ids,
        where,
        name,
        "one value per event",
        lambda i: f"{found[i]} for {lengths[i]} events",
    )


def _check_times(column: Any, offsets: npt.NDArray[np.int64], ids: Any, where: str) -> None:
    _check_lengths(column, np.diff(offsets), ids, where, "times")
    times = column.flatten().to_numpy(zero_copy_only=False)
    rows = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    broken = ~(times >= 0) | (times > MAX_SECONDS)
    falling = np.zeros(len(times), bool)
    falling[1:] = (np.diff(times) < 0) & (rows[1:] == rows[:-1])
    for bad, expected in ((broken, f"seconds from the start, 0 to {MAX_SECONDS:g}"), (falling, "times in order")):
        if bad.any():
            at = int(np.argmax(bad))
            raise DataError(
                f"{where}: sequence {ids[int(rows[at])].as_py()!r}, column 'times', "
                f"position {at - int(offsets[rows[at]])}: expected {expected}, got {float(times[at])}"
            )


def _check_labels(table: pa.Table, ids: Any, where: str) -> None:
    labels = one_array(table["labels"])
    offsets = list_offsets(labels)
    values = labels.flatten()
    _check_names(values, offsets, ids, where, "labels")
    rows = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    at = _second_of_two(rows, values)
    if at is not None:
        raise DataError(
            f"{where}: sequence {ids[int(rows[at])].as_py()!r}, column 'labels': "
            f"expected each label once, got {values[at].as_py()!r} twice"
        )
    if "label_times" in table.column_names:
        times = one_array(table["label_times"])
        unlabelled = times.is_null().to_numpy(zero_copy_only=False)
        found, wanted = np.diff(list_offsets(times)), np.diff(offsets)
        bad = (found != wanted) & ~unlabelled
        _first(bad, ids, where, "label_times", "one value per label", lambda i: f"{found[i]} for {wanted[i]} labels")
        _check_finite(times, ids, where, "label_times")


def _check_finite(column: Any, ids: Any, where: str, name: str) -> None:
    infinite = np.isinf(column.flatten().to_numpy(zero_copy_only=False))
    if infinite.any():
        row = int(np.searchsorted(list_offsets(column), np.argmax(infinite), side="right")) - 1
        raise DataError(
            f"{where}: sequence {ids[row].as_py()!r}, column {name!r}: expected finite numbers or null, got infinity"
        )


def _check_static(column: Any, ids: Any, where: str) -> None:
    pairs = column.cast(pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())])))
    offsets, flat = list_offsets(pairs), pairs.flatten()
    for part in ("key", "value"):
        _check_names(flat.field(part), offsets, ids, where, "static")
    rows = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    twice = _second_of_two(rows, flat.field("key"))
    if twice is not None:
        key = flat.field("key")[twice].as_py()
        raise DataError(
            f"{where}: sequence {ids[int(rows[twice])].as_py()!r}, column 'static': expected each key once, "
            f"got {key!r} twice"
        )


def _second_of_two(rows: npt.NDArray[np.int64], names: Any) -> int | None:
    """Where a name stands in a row that has it already; None when nowhere."""
    codes = names.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
    order = np.lexsort((codes, rows))
    twice = (np.diff(codes[order]) == 0) & (np.diff(rows[order]) == 0)
    return int(order[1:][twice].min()) if twice.any() else None
