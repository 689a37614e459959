"""CSV, cut into cells by Arrow; the cells stay bytes, so that one bad cell costs one row and not the file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import csv as arrow_csv

from oscar_causal.data.importers.long_table import RawBatch
from oscar_causal.data.importers.rejects import BadRow, as_written, shown
from oscar_causal.data.importers.text_source import BLOCK_BYTES, TextSource, restored
from oscar_causal.errors import DataError

LONGEST_HEADER = 1 << 20


class CsvTable:
    """A text table with a header. Cells may be quoted and hold line breaks; an empty cell is null, quoted or not."""

    def __init__(self, path: Path, delimiter: str | None, encoding: str) -> None:
        """`delimiter` None: the comma, or what the header has instead."""
        self._path, self._encoding = path, encoding
        self.name = str(path)
        first = self._first_line()
        self._delimiter = delimiter or guess_delimiter(first)
        self.header = self._read_header(first)
        self._skipped: list[tuple[int, Any]] = []

    def batches(self, columns: Sequence[str]) -> Iterator[RawBatch]:
        """The rows in blocks of about 8 MB."""
        with TextSource(self._path, self._encoding) as source:
            next_row = 1
            for batch in self._arrow_batches(source, columns):
                if not len(batch):
                    continue
                rows = self._number(len(batch), next_row)
                broken, next_row = self._broken_before(int(rows[-1])), int(rows[-1]) + 1
                cells = {name: batch.column(index) for index, name in enumerate(columns)}
                if source.escaped:
                    cells = {name: _restored_cells(column) for name, column in cells.items()}
                yield RawBatch(cells, rows, broken, source.tell_raw())
            empty = {name: pa.array([], pa.binary()) for name in columns}
            yield RawBatch(empty, np.empty(0, np.int64), self._broken_before(None), source.tell_raw())
            if source.quotes % 2 and self._ends_inside_quotes():
                raise DataError(f"{self.name}: expected every quotation mark closed, got one that never is")

    def _arrow_batches(self, source: TextSource, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        self._skipped = []
        names = [str(index) for index in range(len(self.header))]
        wanted = [names[self.header.index(name)] for name in columns]
        try:
            yield from arrow_csv.open_csv(
                pa.PythonFile(source, mode="r"),
                read_options=arrow_csv.ReadOptions(
                    block_size=BLOCK_BYTES, use_threads=False, column_names=names, skip_rows_after_names=1
                ),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=self._delimiter, newlines_in_values=True, invalid_row_handler=self._skip
                ),
                convert_options=arrow_csv.ConvertOptions(
                    column_types={name: pa.binary() for name in names},
                    include_columns=wanted,
                    null_values=[""],
                    strings_can_be_null=True,
                    check_utf8=False,
                ),
            )
        except (pa.ArrowException, OSError) as error:
            if "straddl" not in str(error):
                raise DataError(f"{self.name}: cannot be read as CSV: {str(error).splitlines()[0]}") from error
            limit = f"rows of at most {BLOCK_BYTES >> 20} MB"
            raise DataError(
                f"{self.name}: expected {limit}, got a longer one: a quotation mark that is never closed?"
            ) from error
        finally:
            source.stop()

    def _skip(self, row: Any) -> str:
        self._skipped.append((row.number - 1, row))  # Arrow counts the header, we do not
        return "skip"

    def _number(self, count: int, first: int) -> npt.NDArray[np.int64]:
        """Numbers of the next `count` whole rows from `first` on: those of broken rows are left out."""
        holes = np.array([number for number, _ in self._skipped], np.int64)
        end = first + count
        while (more := first + count + int(np.sum(holes < end))) != end:
            end = more
        return np.setdiff1d(np.arange(first, end), holes)

    def _broken_before(self, row: int | None) -> list[BadRow]:
        """Take out the broken rows before this one; None: all that are left."""
        found = [item for item in self._skipped if row is None or item[0] < row]
        self._skipped = self._skipped[len(found) :]
        return [self._broken(number, item) for number, item in found]

    def _broken(self, number: int, row: Any) -> BadRow:
        text = as_written(restored(str(row.text).encode()))
        if text.count('"') % 2 and "\n" in text:
            raise DataError(f"{self.name}: row {number:,}: expected every quotation mark closed, got {shown(text)}")
        problem = f"expected {row.expected_columns} cells, got {row.actual_columns}"
        return BadRow(self.name, number, "", problem, text)

    def _first_line(self) -> str:
        """The header, and what follows as far as a header may be long."""
        with TextSource(self._path, self._encoding) as source:
            data = source.read(LONGEST_HEADER)
        if not data:
            raise DataError(f"{self.name}: expected a header and rows, got an empty file")
        return restored(data).decode("utf-8", "surrogateescape")

    def _read_header(self, text: str) -> list[str]:
        try:
            header = next(csv.reader(io.StringIO(text, newline=""), delimiter=self._delimiter))
        except csv.Error as error:
            raise DataError(f"{self.name}: the header cannot be read as CSV: {error}") from error
        for name in header:
            if any("\ud800" <= char <= "\udfff" for char in name):
                raw = name.encode("utf-8", "surrogateescape")
                raise DataError(f"{self.name}: header: expected UTF-8 text, got {shown(raw)}; see --encoding")
        return header

    def _ends_inside_quotes(self) -> bool:
        """Whether the last record never closes a quotation mark; asked only when their number is odd."""
        last: list[str] = []
        with TextSource(self._path, self._encoding) as source:
            lines = (line.decode("utf-8", "replace") + "\n" for line in source.lines())
            try:
                for _ in csv.reader(_remember(lines, last), delimiter=self._delimiter):
                    record, last[:] = list(last), []
                list(csv.reader(record, delimiter=self._delimiter, strict=True))
            except csv.Error as error:
                return "unexpected end" in str(error) or "field larger" in str(error)
        return False


def guess_delimiter(text: str) -> str:
    """The comma; where the header has none, the semicolon, tab or bar that cuts it into most columns.

    >>> guess_delimiter("car;time;code;km\\n1;2,5;A;3,5\\n"), guess_delimiter("car,time;zone,code\\n")
    (';', ',')
    """
    found = {}
    for delimiter in (",", ";", "\t", "|"):
        try:
            found[delimiter] = len(next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)))
        except csv.Error:
            found[delimiter] = 1
    return "," if found[","] > 1 else max(found, key=lambda delimiter: found[delimiter])


def _restored_cells(cells: pa.Array) -> pa.Array:
    return pa.array([None if cell is None else restored(cell) for cell in cells.to_pylist()], pa.binary())


def _remember(lines: Iterator[str], seen: list[str]) -> Iterator[str]:
    for line in lines:
        seen.append(line)
        yield line
