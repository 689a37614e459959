"""Bad rows: the first one is the error, or all of them go to `rejected.csv`.

Row numbers count data rows from 1: the first record below the header is row 1, blank lines do not count. In JSON lines,
which have no header, row 1 is the first line that is not blank.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from oscar_causal.errors import DataError

COLUMNS = ("file", "row", "column", "problem", "text")
SHOWN_FIRST = 3
Mask = npt.NDArray[np.bool_]
Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class BadRow:
    """One row that cannot be used, and why."""

    file: str
    row: int
    column: str
    problem: str
    text: str
    """The offending cell, or the whole line when it cannot be cut into cells."""

    def __str__(self) -> str:
        column = f", column {self.column!r}" if self.column else ""
        return f"{self.file}: row {self.row:,}{column}: {self.problem}"


def shown(value: object, most: int = 60) -> str:
    """A value as it appears in a message: quoted, on one line, not too long.

    >>> shown("zebra"), shown(None), shown("a" * 100, most=4)
    ('"zebra"', 'nothing', '"aaaa…" (100 characters)')
    """
    if value is None or value == "":
        return "nothing"
    text = as_written(value)
    if len(text) <= most:
        return _quoted(text)
    return f"{_quoted(text[:most] + '…')} ({len(text):,} characters)"


def as_written(value: object) -> str:
    """A cell as text, whatever it holds; bytes that are no text as \\xe9."""
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def _quoted(text: str) -> str:
    line = json.dumps(text, ensure_ascii=False)
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in line)


class Rejects:
    """Collects bad rows of one import. Strict: the first one is raised. Else they are written to `rejected.csv`."""

    def __init__(self, folder: Path, *, strict: bool) -> None:
        self.strict, self.count, self.first = strict, 0, list[BadRow]()
        self._path = folder / "rejected.csv"
        self._file: TextIO | None = None

    def add(self, rows: Sequence[BadRow]) -> None:
        """Take over bad rows, given in the order of the file."""
        if not rows:
            return
        if self.strict:
            raise DataError(f"{rows[0]} (--skip-bad-rows puts such rows aside)")
        self.count += len(rows)
        self.first.extend(rows[: max(0, SHOWN_FIRST - len(self.first))])
        self.note(rows)

    def note(self, rows: Sequence[BadRow]) -> None:
        """Write rows to `rejected.csv` without counting them as bad."""
        if self._file is None:
            self._file = self._path.open("w", encoding="utf-8", errors="backslashreplace", newline="")
            csv.writer(self._file).writerow(COLUMNS)
        cells = ([row.file, row.row, row.column, row.problem, row.text] for row in rows)
        csv.writer(self._file).writerows(cells)

    def close(self) -> None:
        """Finish `rejected.csv`; it exists only when something was written."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _plain(cell: Any) -> object:
    """A cell as a value of Python: text that is no UTF-8 with its bytes, a moment outside all calendars as a number."""
    try:
        return cell.as_py()
    except UnicodeDecodeError:
        return cell.as_buffer().to_pybytes().decode("utf-8", "backslashreplace")
    except (OverflowError, ValueError):
        return f"{cell.cast(pa.int64())} ({cell.type})"


class Faults:
    """The bad rows of one batch: each is reported once, for its first bad column."""

    def __init__(self, file: str, rows: Int64) -> None:
        self._file, self._rows = file, rows
        self.bad: Mask = np.zeros(len(rows), bool)
        self._found: list[tuple[int, str, str, str]] = []

    def add(self, column: str, bad: Mask, expected: str, cells: pa.Array) -> None:
        """Mark rows whose cell in `column` is not what was expected."""
        for index in np.flatnonzero(bad & ~self.bad).tolist():
            value = _plain(cells[index])
            text = "" if value is None else as_written(value)
            self._found.append((index, column, f"expected {expected}, got {shown(value)}", text))
        self.bad |= bad

    def rows(self) -> list[BadRow]:
        """In the order of the file."""
        found = sorted(self._found)
        return [BadRow(self._file, int(self._rows[index]), *rest) for index, *rest in found]
