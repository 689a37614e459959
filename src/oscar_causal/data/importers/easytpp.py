"""EasyTPP's JSON: one record per sequence with parallel lists `time_since_start` and `type_event`.

A file is a JSON array of records or one record per line. `seq_idx` counts anew in each file, so the file's stem (train,
dev, test) stands before it in the sequence id. Times count from the start already; event types are numbers and stay so.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from oscar_causal.data.importers.nested import Records, RecordTable
from oscar_causal.data.importers.rejects import BadRow, as_written, shown
from oscar_causal.data.importers.text_source import TextSource
from oscar_causal.errors import DataError

TIMES, EVENTS = "time_since_start", "type_event"
KNOWN = {"sequence_id": "sequence_id", "time": TIMES, "event": EVENTS}
CHUNK = 2_000


def easytpp_table(path: Path, encoding: str = "utf-8", seen: set[str] | None = None) -> RecordTable:
    """Open one file; it is read as a whole. Sequence ids are new among the files that share `seen`."""
    records, size = _records(path, encoding), path.stat().st_size

    def read() -> Iterator[Records]:
        for begin in range(0, len(records), CHUNK):
            yield _chunk(records[begin : begin + CHUNK], begin + 1, path, size * (begin + CHUNK) // len(records))

    header = ["sequence_id", TIMES, EVENTS]
    return RecordTable(path, header, read, known=KNOWN, split=path.name.split(".")[0], seen=seen)


def looks_like_easytpp(start: str) -> bool:
    """Do the first characters of a JSON file speak of such records?"""
    return f'"{TIMES}"' in start or f'"{EVENTS}"' in start


def _records(path: Path, encoding: str) -> list[Any]:
    with TextSource(path, encoding) as source:
        text = b"".join(source.lines()).decode("utf-8", "replace").strip()
    if not text:
        raise DataError(f"{path}: expected EasyTPP records, got an empty file")
    try:
        found = json.loads(text) if text.startswith("[") else [json.loads(line) for line in text.splitlines()]
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: expected a JSON array of records or one per line: {error}") from error
    if not found:
        raise DataError(f"{path}: expected at least one record, got an empty array")
    return list(found)


def _chunk(records: list[Any], first: int, path: Path, position: int) -> Records:
    rows: list[dict[str, Any]] = []
    numbers, broken = [], []
    for number, record in enumerate(records, first):
        bad = _problem(record)
        if bad is not None:
            broken.append(BadRow(str(path), number, *bad))
            continue
        index = record.get("seq_idx", number - 1)
        events = [str(int(kind)) if isinstance(kind, float) else str(kind) for kind in record[EVENTS]]
        rows.append(
            {
                "sequence_id": f"{path.name.split('.')[0]}-{index}",
                TIMES: list(map(float, record[TIMES])),
                EVENTS: events,
            }
        )
        numbers.append(number)
    schema = pa.schema([("sequence_id", pa.string()), (TIMES, pa.list_(pa.float64())), (EVENTS, pa.list_(pa.string()))])
    return Records(pa.Table.from_pylist(rows, schema=schema), np.array(numbers, np.int64), broken, position)


def _problem(record: Any) -> tuple[str, str, str] | None:
    """Column, problem and text of a record that cannot be used."""
    if not isinstance(record, Mapping):
        return "", f"expected a record (a JSON object), got {shown(json.dumps(record))}", as_written(record)
    if not _is_type(record.get("seq_idx", 0)):
        return "seq_idx", f"expected a number, got {shown(json.dumps(record['seq_idx']))}", ""
    for column, fits, what in ((TIMES, _is_time, "numbers"), (EVENTS, _is_type, "event types (whole numbers or text)")):
        values = record.get(column)
        if not isinstance(values, list):
            return column, f"expected a list of {what}, got {shown(json.dumps(values))}", ""
        odd = next((value for value in values if not fits(value)), _FINE)
        if odd is not _FINE:
            return column, f"expected a list of {what}, got {shown(json.dumps(odd))} in it", json.dumps(odd)
    return None


_FINE = object()


def _is_time(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and abs(value) <= sys.float_info.max  # nan is not, and an integer may be larger than any float


def _is_type(value: Any) -> bool:
    if isinstance(value, float):
        return value.is_integer()
    if isinstance(value, str):
        return value != "" and value.encode("utf-8", "replace").decode() == value  # no half of a surrogate pair
    return isinstance(value, int) and not isinstance(value, bool)
