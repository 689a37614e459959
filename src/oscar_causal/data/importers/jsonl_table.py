"""JSON lines: one object per line. Several times slower than CSV, but every line stands for itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from oscar_causal.data.importers.long_table import RawBatch
from oscar_causal.data.importers.rejects import BadRow, as_written, shown
from oscar_causal.data.importers.text_source import TextSource, restored
from oscar_causal.errors import DataError

BATCH_ROWS = 100_000
HEADER_ROWS = 1_000
"""The columns of a file are the keys met in its first rows."""


class JsonLinesTable:
    """Objects with text, numbers, true/false or null as values; a missing key is an empty cell."""

    def __init__(self, path: Path, encoding: str) -> None:
        self._path, self._encoding = path, encoding
        self.name = str(path)
        self.header = self._read_header()

    def batches(self, columns: Sequence[str]) -> Iterator[RawBatch]:
        """The rows in batches of 100,000."""
        with TextSource(self._path, self._encoding) as source:
            lines = source.lines()
            first = 1
            while block := list(islice(lines, BATCH_ROWS)):
                block = [restored(line) for line in block] if source.escaped else block
                yield self._batch(block, columns, first, source.tell_raw())
                first += len(block)

    def _batch(self, lines: list[bytes], columns: Sequence[str], first: int, position: int) -> RawBatch:
        rows, broken = [], []
        cells: list[tuple[str | None, ...]] = []
        for number, line in enumerate(lines, first):
            try:
                record = _record(line)
                cells.append(tuple(_cell(record.get(name), name) for name in columns))
                rows.append(number)
            except _BadLine as bad:
                broken.append(BadRow(self.name, number, bad.column, str(bad), as_written(line)))
        by_column = list(zip(*cells, strict=True)) or [()] * len(columns)
        arrays = {name: pa.array(values, pa.string()) for name, values in zip(columns, by_column, strict=True)}
        return RawBatch(arrays, np.array(rows, np.int64), broken, position)

    def _read_header(self) -> list[str]:
        names: dict[str, None] = {}
        seen = 0
        with TextSource(self._path, self._encoding) as source:
            for line in islice(map(restored, source.lines()), HEADER_ROWS):
                seen += 1
                if seen == 1 and line.lstrip().startswith(b"["):
                    raise DataError(f"{self.name}: expected one JSON object per line, got a JSON array")
                try:
                    names.update(dict.fromkeys(_record(line)))
                except _BadLine:
                    continue  # reported with its row number when the rows are read
        if not seen:
            raise DataError(f"{self.name}: expected one JSON object per line, got an empty file")
        if not names:
            raise DataError(f"{self.name}: expected one JSON object per line, got none in the first {seen:,} lines")
        return list(names)


class _BadLine(Exception):
    def __init__(self, problem: str, column: str = "") -> None:
        super().__init__(problem)
        self.column = column


def _record(line: bytes) -> dict[str, Any]:
    try:
        record = _DECODER.decode(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise _BadLine(f"expected UTF-8 text, got {shown(line)}; see --encoding") from error
    except (ValueError, RecursionError) as error:
        raise _BadLine(f"expected a JSON object, got {shown(line)}") from error
    if not isinstance(record, dict):
        raise _BadLine(f"expected a JSON object, got {shown(line)}")
    return record


def _cell(value: Any, column: str) -> str | None:
    if isinstance(value, str):
        if not value.isascii():
            _refuse_surrogates(value, column)
        return value
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    kind = "a list" if isinstance(value, list) else "an object"
    raise _BadLine(f"expected text or a number, got {kind}", column)


def _refuse_surrogates(value: str, column: str) -> None:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise _BadLine("expected Unicode text, got half of a surrogate pair", column) from error


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
