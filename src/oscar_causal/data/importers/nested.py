"""Records with one list per column (events, times, labels) become long rows: one row per value, scalars repeated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from oscar_causal.data.importers.long_table import RawBatch
from oscar_causal.data.importers.parquet_table import plain
from oscar_causal.data.importers.rejects import BadRow, Int64, Mask, as_written, shown
from oscar_causal.data.validate import one_array
from oscar_causal.errors import DataError

LABELLED = "labelled"
"""A column that label views of nested tables have without holding it: 0 where the list of labels is null."""


@dataclass(frozen=True)
class Records:
    """Some records of a file, with their numbers in it (from 1), and records that could not be read."""

    table: pa.Table
    numbers: Int64
    broken: list[BadRow] = field(default_factory=list)
    position: int = 0
    """Bytes of the file read so far."""


def explode(records: pa.Table, columns: Sequence[str], numbers: Int64, name: str, *, labels: bool = False) -> RawBatch:
    """The chosen columns of some records as rows; `numbers` are those of the records in their file.

    Lists of one record must have one length. A null list gives one row with an empty cell. An empty list gives no row
    in a label view (`labels`: the record is labelled, with none) and a bad record otherwise.

    >>> batch = explode(pa.table({"id": ["a"], "events": [["X", "Y"]]}), ["id", "events"], np.array([7]), "file")
    >>> batch.columns["id"].to_pylist(), batch.columns["events"].to_pylist(), batch.rows.tolist()
    (['a', 'a'], ['X', 'Y'], [7, 7])
    """
    arrays = {column: _flat(records[column], column, name) for column in columns if column in records.column_names}
    lists = {column: array for column, array in arrays.items() if pa.types.is_list(array.type)}
    lengths, bad, broken = _lengths(lists, numbers, name, labels)
    lengths[bad] = 0
    parents = np.repeat(np.arange(len(records)), lengths)
    found = {}
    for column, array in arrays.items():
        found[column] = _spread(array, lengths, parents) if column in lists else plain(array.take(pa.array(parents)))
    if LABELLED in columns and LABELLED not in found:
        known = np.ones(len(records), bool)
        for array in lists.values():
            known &= array.is_valid().to_numpy(zero_copy_only=False)
        found[LABELLED] = pa.array(known[parents].astype(np.int8))
    return RawBatch(found, numbers[parents], broken)


def _flat(column: pa.ChunkedArray, column_name: str, file: str) -> pa.Array:
    array = plain(one_array(column))
    kind = array.type
    if pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind) or pa.types.is_list_view(kind):
        array = array.cast(pa.list_(kind.value_type))
    inner = array.type.value_type if pa.types.is_list(array.type) else array.type
    if pa.types.is_nested(inner):
        expected = "text, numbers, timestamps or lists of them"
        raise DataError(f"{file}: column {column_name!r}: expected {expected}, got {kind}")
    return array


def _lengths(lists: dict[str, pa.Array], numbers: Int64, name: str, labels: bool) -> tuple[Int64, Mask, list[BadRow]]:
    """Rows that each record gives, which records are bad, and why."""
    lengths, bad = np.ones(len(numbers), np.int64), np.zeros(len(numbers), bool)
    broken: list[BadRow] = []
    leading = None
    for column, array in lists.items():
        here = pc.fill_null(pc.list_value_length(array), 1).to_numpy(zero_copy_only=False).astype(np.int64)
        if leading is None:
            leading, lengths = column, here
            wrong, problem = (here == 0) & (not labels), "expected at least one value, got an empty list"
            broken += [BadRow(name, int(numbers[i]), column, problem, "[]") for i in np.flatnonzero(wrong)]
        else:
            wrong = (here != lengths) & ~bad
            for i in np.flatnonzero(wrong).tolist():
                problem = f"expected as many values as in column {leading!r} ({lengths[i]}), got {here[i]}"
                broken.append(BadRow(name, int(numbers[i]), column, problem, ""))
        bad |= wrong
    return lengths.copy(), bad, sorted(broken, key=lambda row: row.row)


def _spread(array: pa.ListArray, lengths: Int64, parents: Int64) -> pa.Array:
    """The values of the lists of good records, end to end; null for a null list."""
    starts = np.concatenate([[0], np.cumsum(pc.fill_null(pc.list_value_length(array), 0).to_numpy())[:-1]])
    within = np.arange(len(parents)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    null = array.is_null().to_numpy(zero_copy_only=False)[parents]
    index = starts.astype(np.int64)[parents] + within
    return plain(array.flatten().take(pa.array(np.where(null, 0, index), mask=null)))


class RecordTable:
    """Records of one file as a `LongTable`; the row of a message is the number of the record.

    `read` opens the file anew and gives tables of records and the bad records between them; `known` says which column
    plays which part (`roles`); `split` is a column of its own when the file belongs to one. Where events are lists a
    record is a whole sequence: its id, the first column that is asked for, must be new, also among the files that share
    `seen`.
    """

    def __init__(
        self,
        path: Path,
        header: Sequence[str],
        read: Callable[[], Iterator[Records]],
        *,
        known: Mapping[str, str],
        split: str | None = None,
        labels: bool = False,
        seen: set[str] | None = None,
    ) -> None:
        self.name, self.known, self._read, self._labels = str(path), known, read, labels
        self._seen: set[str] = set() if seen is None else seen
        self._constants = {} if split is None or "split" in header else {"split": split}
        extra = [LABELLED] if labels and LABELLED not in header else []
        self.header = [*header, *self._constants, *extra]

    def batches(self, columns: Sequence[str]) -> Iterator[RawBatch]:
        """The rows, record by record."""
        for records in self._read():
            table = records.table
            for name, value in self._constants.items():
                table = table.append_column(name, pa.repeat(pa.scalar(value, pa.string()), len(table)))
            again = self._second(table, columns, records.numbers)
            fresh = ~np.isin(records.numbers, [bad.row for bad in again])
            table, numbers = table.filter(pa.array(fresh)), records.numbers[fresh]
            batch = explode(table, columns, numbers, self.name, labels=self._labels)
            broken = sorted([*records.broken, *again, *batch.broken], key=lambda bad: bad.row)
            yield RawBatch(batch.columns, batch.rows, broken, records.position)

    def _second(self, table: pa.Table, columns: Sequence[str], numbers: Int64) -> list[BadRow]:
        """Records whose id came before."""
        nested = any(
            pa.types.is_nested(table.schema.field(name).type) for name in columns if name in table.column_names
        )
        if self._labels or not nested:
            return []
        found = []
        for number, value in zip(numbers.tolist(), table[columns[0]].to_pylist(), strict=True):
            name = as_written(value)
            if value is not None and name in self._seen:
                problem = f"expected a new id, since a record is a whole sequence, got {shown(name)} again"
                found.append(BadRow(self.name, number, columns[0], problem, name))
            self._seen.add(name)
        return found
