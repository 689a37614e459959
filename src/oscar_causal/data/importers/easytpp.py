"""EasyTPP's JSON: one record per sequence with parallel lists `time_since_start` and `type_event`.

A file is a JSON array of records or one record per line. `seq_idx` counts anew in each file, so the file's stem (train,
dev, test) stands before it in the sequence id. Times count from the start already; event types are numbers and stay so.
"""

from __future__ import annotations

import codecs
import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from oscar_causal.data.importers.nested import Records, RecordTable
from oscar_causal.data.importers.rejects import BadRow, as_written, shown
from oscar_causal.data.importers.text_source import BLOCK_BYTES, TextSource
from oscar_causal.errors import DataError

TIMES, EVENTS = "time_since_start", "type_event"
KNOWN = {"sequence_id": "sequence_id", "time": TIMES, "event": EVENTS}
CHUNK, CHUNK_BYTES = 2_000, 2 << 20
"""Records at a time: so many, or as many as have so much text."""


def easytpp_table(path: Path, encoding: str = "utf-8", seen: set[str] | None = None) -> RecordTable:
    """Open one file; records are read one after the other. Sequence ids are new among the files that share `seen`."""
    if next(_records(path, encoding), None) is None:
        raise DataError(f"{path}: expected at least one EasyTPP record, got an empty file or an empty array")

    def read() -> Iterator[Records]:
        part: list[Any] = []
        first, size = 1, 0
        for record, length, position in _records(path, encoding):
            part.append(record)
            size += length
            if len(part) == CHUNK or size > CHUNK_BYTES:
                yield _chunk(part, first, path, position)
                first, size, part = first + len(part), 0, []
        if part:
            yield _chunk(part, first, path, path.stat().st_size)

    header = ["sequence_id", TIMES, EVENTS]
    return RecordTable(path, header, read, known=KNOWN, split=path.name.split(".")[0], seen=seen)


def looks_like_easytpp(start: str) -> bool:
    """Do the first characters of a JSON file speak of such records?"""
    return f'"{TIMES}"' in start or f'"{EVENTS}"' in start


def _records(path: Path, encoding: str) -> Iterator[tuple[Any, int, int]]:
    """The records of an array, or one after the other: each with its length and the bytes of the file read so far."""
    with TextSource(path, encoding) as source:
        text = _Text(path, source)
        array = text.skip("[")
        ended = text.skip("]") if array else not text.more()
        while not ended:
            yield *text.value(), source.tell_raw()
            if array:
                ended = not text.skip(",")
                if ended and not text.skip("]"):
                    raise text.wrong("expected ',' or ']' after a record")
            else:
                ended = not text.more()
        if text.more():
            raise text.wrong("something follows the array")


class _Text:
    """JSON values read one by one from a stream; of each at most 8 MB are held."""

    def __init__(self, path: Path, source: TextSource) -> None:
        self._path, self._source = path, source
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._text, self._at, self._whole = "", 0, False

    def more(self) -> bool:
        """Is there anything but blanks from here on?"""
        while True:
            found = _BLANKS.match(self._text, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._text) or not self._read():
                return self._at < len(self._text)

    def skip(self, mark: str) -> bool:
        """Step over this mark, if it is next."""
        if not self.more() or self._text[self._at] != mark:
            return False
        self._at += 1
        return True

    def value(self) -> tuple[Any, int]:
        """The next value, and its length as text."""
        if not self.more():
            raise self.wrong("the file ends before its array does")
        while True:
            try:
                value, end = _JSON.raw_decode(self._text, self._at)
            except (ValueError, RecursionError) as error:
                if isinstance(error, json.JSONDecodeError) and self._read():
                    continue
                raise self.wrong(error) from error
            if end == len(self._text) and self._read():  # a number may go on
                continue
            begin, self._at = self._at, end
            return value, end - begin

    def wrong(self, reason: object) -> DataError:
        return DataError(f"{self._path}: expected a JSON array of records or one per line: {reason}")

    def _read(self) -> bool:
        """Read on; False at the end."""
        if self._whole:
            return False
        if len(self._text) - self._at > BLOCK_BYTES:
            limit = f"records of at most {BLOCK_BYTES >> 20} MB"
            raise DataError(f"{self._path}: expected {limit}, got a longer one, or JSON that is broken before its end")
        block = self._source.read()
        self._whole = not block
        self._text = self._text[self._at :] + self._decoder.decode(block, final=self._whole)
        self._at = 0
        return True


_BLANKS, _JSON = re.compile(r"[ \t\r\n]*"), json.JSONDecoder()


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
