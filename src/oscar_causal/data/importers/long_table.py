"""Long tables, one row per event or per label, read in batches: CSV (also .gz), JSON lines (also .gz), Parquet.

Every reader hands out the same thing: the chosen columns of a few hundred thousand rows, their row numbers, and the
rows that could not be cut into cells at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from oscar_causal.data.importers.rejects import BadRow
from oscar_causal.errors import DataError

CSV_SUFFIXES = (".csv", ".tsv", ".txt")
JSONL_SUFFIXES = (".jsonl", ".ndjson", ".json")
PARQUET_SUFFIXES = (".parquet", ".pq")


@dataclass(frozen=True)
class RawBatch:
    """Rows as they came: cells of any primitive type, null = empty; CSV cells are bytes."""

    columns: dict[str, pa.Array]
    rows: npt.NDArray[np.int64]
    """Number of each row in its file, from 1."""
    broken: list[BadRow] = field(default_factory=list)
    """Rows that are not in `columns`."""
    position: int = 0
    """Bytes of the file read so far."""


class LongTable(Protocol):
    """An open table. `name` is the file's name as messages show it.

    A format whose columns have names of their own also has a mapping `known`: usual name -> column (`roles`).
    """

    @property
    def name(self) -> str: ...

    @property
    def header(self) -> list[str]: ...

    def batches(self, columns: Sequence[str]) -> Iterator[RawBatch]:
        """The rows, in the order of the file; only these columns."""
        ...


def open_table(path: Path | str, *, delimiter: str | None = None, encoding: str = "utf-8") -> LongTable:
    """Open a table by the ending of its name; the header is read and checked, no row yet."""
    path = Path(path)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = bool(suffixes) and suffixes[-1] == ".gz"
    suffix = (suffixes[-2:-1] if packed else suffixes[-1:]) or [""]
    table = _open(path, suffix[0], packed, delimiter, encoding)
    _check_header(table)
    return table


def _open(path: Path, suffix: str, packed: bool, delimiter: str | None, encoding: str) -> LongTable:
    if suffix in CSV_SUFFIXES:
        from oscar_causal.data.importers.csv_table import CsvTable

        return CsvTable(path, delimiter or ("\t" if suffix == ".tsv" else None), encoding)
    if suffix in JSONL_SUFFIXES:
        from oscar_causal.data.importers.jsonl_table import JsonLinesTable

        return JsonLinesTable(path, encoding)
    if suffix in PARQUET_SUFFIXES and not packed:
        from oscar_causal.data.importers.parquet_table import ParquetTable

        return ParquetTable(path)
    known = ", ".join(CSV_SUFFIXES + JSONL_SUFFIXES + PARQUET_SUFFIXES)
    raise DataError(f"{path}: expected a table whose name ends in {known} (text also with .gz), got {path.name!r}")


def _check_header(table: LongTable) -> None:
    seen: set[str] = set()
    for name in table.header:
        if name in seen:
            raise DataError(f"{table.name}: expected each column once, got {name!r} twice in the header")
        seen.add(name)
