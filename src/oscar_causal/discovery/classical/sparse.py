"""Presence of events and labels as a sparse 0/1 table: the counts of *all* candidates from one pass over few rows.

Most rows hold none of the conditioning events, so they form one big stratum whose counts are column totals minus the
rest. Only the rows that hold a conditioning event, and those with the target, are ever visited. Columns are events
first, then labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from oscar_causal.data.sequences import ragged_positions
from oscar_causal.discovery.classical.ci_tests import (
    Associations,
    Cells,
    Statistic,
    binary_associations,
    xlogx_table,
)
from oscar_causal.errors import DataError

Int64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]
CELLS_AT_ONCE = 1 << 21
"""Most (stratum, column) counts held at a time; more strata are taken in turns."""
BITS_AT_ONCE = 24
"""Conditioning columns coded in one integer before the codes are numbered anew."""


@dataclass(frozen=True)
class _Strata:
    """Rows grouped by which conditioning events they hold; stratum 0 holds none of them."""

    of_row: Int64
    touched: Int64
    """Rows outside stratum 0."""
    n: Int64
    n_y: Int64

    @property
    def mixed(self) -> Bool:
        """Strata in which the target varies; the others carry no information."""
        return (self.n_y > 0) & (self.n_y < self.n)


class SparseTable:
    """A 0/1 table by rows and by columns. Made by `sparse_table`, or opened from a folder shared between processes."""

    def __init__(
        self, by_row: tuple[Any, Any], by_column: tuple[Any, Any], names: Sequence[str], n_events: int
    ) -> None:
        self.names = tuple(names)
        self.n_events = n_events
        self.row_offsets, self.columns = by_row
        self.column_offsets, self.rows = by_column
        self.n_rows = len(self.row_offsets) - 1
        self.totals: Int64 = np.diff(self.column_offsets)
        self.xlogx = xlogx_table(self.n_rows)

    @property
    def n_columns(self) -> int:
        """Events and labels."""
        return len(self.names)

    def rows_of(self, column: int) -> Int64:
        """Rows that hold this event or label, ascending."""
        return np.asarray(self.rows[self.column_offsets[column] : self.column_offsets[column + 1]], np.int64)

    def associations(self, target: int, given: Sequence[int], candidates: Int64, statistic: Statistic) -> Associations:
        """Test every candidate against `target` inside the strata of `given`."""
        cells = self.cells(target, given, candidates)
        return binary_associations(candidates, cells, statistic, self.xlogx)

    def cells(self, target: int, given: Sequence[int], candidates: Int64) -> Cells:
        """The informative 2 × 2 tables of all candidates, by whichever pass visits less."""
        with_y = np.zeros(self.n_rows, bool)
        with_y[self.rows_of(target)] = True
        strata = self._strata(given, with_y)
        few = int(self.totals[candidates].sum()) * 4 < len(self.columns)
        counts = self._count_by_column if few else self._count_by_row
        return counts(strata, with_y, candidates)

    def strata_of(self, target: int, x: int, given: Sequence[int]) -> tuple[Int64, Int64, Int64, Int64]:
        """Rows of every stratum of `given`, and those with x, with the target, with both: four arrays (strata,)."""
        with_y = np.zeros(self.n_rows, bool)
        with_y[self.rows_of(target)] = True
        strata = self._strata(given, with_y)
        rows = self.rows_of(x)
        size = len(strata.n)
        n_x = np.bincount(strata.of_row[rows], minlength=size)
        return strata.n, n_x, strata.n_y, np.bincount(strata.of_row[rows[with_y[rows]]], minlength=size)

    def entropies(self, columns: Int64) -> npt.NDArray[np.float64]:
        """Entropy of each column in nats."""
        n, ones = self.n_rows, self.totals[columns]
        return np.asarray((self.xlogx[n] - self.xlogx[ones] - self.xlogx[n - ones]) / n, np.float64)

    def save(self, folder: Path) -> None:
        """Write the arrays as plain .npy files, to be opened by other processes without a copy."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("row_offsets", "columns", "column_offsets", "rows"):
            np.save(folder / f"{name}.npy", getattr(self, name), allow_pickle=False)

    @classmethod
    def open(cls, folder: Path, names: Sequence[str], n_events: int) -> SparseTable:
        """Map the arrays that `save` wrote."""
        load = [np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in _ARRAYS]
        return cls((load[0], load[1]), (load[2], load[3]), names, n_events)

    def _strata(self, given: Sequence[int], with_y: Bool) -> _Strata:
        code = np.zeros(self.n_rows, np.int64)
        touched, size = np.zeros(0, np.int64), 1
        for begin in range(0, len(given), BITS_AT_ONCE):
            for bit, column in enumerate(given[begin : begin + BITS_AT_ONCE]):
                code[self.rows_of(column)] += np.int64(size) << bit
            touched = np.flatnonzero(code)
            values, inverse = np.unique(code[touched], return_inverse=True)
            code[touched] = inverse + 1
            size = len(values) + 1
        n = np.bincount(code[touched], minlength=size)
        n[0] = self.n_rows - len(touched)
        return _Strata(code, touched, n, np.bincount(code[with_y], minlength=size))

    def _count_by_column(self, strata: _Strata, with_y: Bool, candidates: Int64) -> Cells:
        """Visit the rows of each candidate."""
        size = len(strata.n)
        rows = self.rows[ragged_positions(self.column_offsets, candidates)]
        owner = np.repeat(np.arange(len(candidates)), self.totals[candidates])
        stratum = strata.of_row[rows]
        keep = strata.mixed[stratum]
        key, positive = (owner * size + stratum)[keep], with_y[rows[keep]]
        n_x = np.bincount(key, minlength=len(candidates) * size).reshape(-1, size)  # (C, S)
        n_xy = np.bincount(key[positive], minlength=len(candidates) * size).reshape(-1, size)
        who, where = np.nonzero((n_x > 0) & (n_x < strata.n))
        return Cells(who, strata.n[where], n_x[who, where], strata.n_y[where], n_xy[who, where])

    def _count_by_row(self, strata: _Strata, with_y: Bool, candidates: Int64) -> Cells:
        """Visit the rows of each informative stratum; the untouched rows by subtraction."""
        place = np.full(self.n_columns, -1, np.int64)
        place[candidates] = np.arange(len(candidates))
        mixed = np.flatnonzero(strata.mixed)
        parts = [self._untouched(strata, with_y)] if len(mixed) and mixed[0] == 0 else []
        mixed = mixed[mixed > 0]
        turn = max(1, CELLS_AT_ONCE // self.n_columns)
        parts += [self._some_strata(strata, with_y, mixed[i : i + turn]) for i in range(0, len(mixed), turn)]
        column, *counts = (np.concatenate(part) for part in zip(*parts, strict=True)) if parts else [_NONE] * 5
        keep = place[column] >= 0
        n, n_x, n_y, n_xy = (part[keep] for part in counts)
        return Cells(place[column][keep], n, n_x, n_y, n_xy)

    def _some_strata(self, strata: _Strata, with_y: Bool, chosen: Int64) -> tuple[Int64, ...]:
        index = np.full(len(strata.n), -1, np.int64)
        index[chosen] = np.arange(len(chosen))
        rows = strata.touched[index[strata.of_row[strata.touched]] >= 0]
        n_x = self._count(rows, index[strata.of_row[rows]], len(chosen))  # (S, columns)
        positive = rows[with_y[rows]]
        n_xy = self._count(positive, index[strata.of_row[positive]], len(chosen))
        where, column = np.nonzero((n_x > 0) & (n_x < strata.n[chosen][:, None]))
        return column, strata.n[chosen][where], n_x[where, column], strata.n_y[chosen][where], n_xy[where, column]

    def _untouched(self, strata: _Strata, with_y: Bool) -> tuple[Int64, ...]:
        n, n_y = int(strata.n[0]), int(strata.n_y[0])
        if 2 * len(strata.touched) < self.n_rows:
            n_x = self.totals - self._count(strata.touched)[0]
        else:
            n_x = self._count(np.flatnonzero(strata.of_row == 0))[0]
        n_xy = self._count(np.flatnonzero(with_y & (strata.of_row == 0)))[0]
        column = np.flatnonzero((n_x > 0) & (n_x < n))
        return column, np.full(len(column), n), n_x[column], np.full(len(column), n_y), n_xy[column]

    def _count(self, rows: Int64, group: Int64 | None = None, n_groups: int = 1) -> Int64:
        """How often each column occurs in these rows, by group: (groups, columns)."""
        columns = self.columns[ragged_positions(self.row_offsets, rows)].astype(np.int64)
        if group is not None:
            columns += np.repeat(group * self.n_columns, np.diff(self.row_offsets)[rows])
        return np.bincount(columns, minlength=n_groups * self.n_columns).reshape(n_groups, self.n_columns)


_ARRAYS = ("row_offsets", "columns", "column_offsets", "rows")
_NONE = np.zeros(0, np.int64)


def sparse_table(
    rows: Int64, columns: Int64, shape: tuple[int, int], names: Sequence[str], n_events: int
) -> SparseTable:
    """A table from the places of its ones (repeats count once)."""
    if len(names) != shape[1]:
        raise DataError(f"table: expected one name for each of {shape[1]} columns, got {len(names)}")
    from scipy.sparse import csr_array

    matrix = csr_array((np.ones(len(rows), np.int8), (rows, columns)), shape=shape)
    matrix.sum_duplicates()
    turned = matrix.tocsc()
    by_row = (matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32))
    by_column = (turned.indptr.astype(np.int64), turned.indices.astype(np.int32))
    return SparseTable(by_row, by_column, names, n_events)
