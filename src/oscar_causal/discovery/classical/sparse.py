"""Presence of events and labels as a sparse 0/1 table: the counts of *all* candidates from one pass over few rows.

Mostly one stratum holds most rows (those with none of the conditioning events, as a rule), and its counts are column
totals minus the rest; of that rest only what changed since the last count is visited. Strata without the target, or
with nothing else, are not visited at all. Columns are events first, then labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csc_array, csr_array

from oscar_causal.data.folders import read_json, write_json
from oscar_causal.data.sequences import ragged_positions
from oscar_causal.discovery.classical.ci_tests import (
    Associations,
    Cells,
    Statistic,
    binary_associations,
    xlogx_table,
)
from oscar_causal.errors import DataError

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]
CELLS_AT_ONCE = 1 << 21
"""Most (stratum, column) counts held at a time; more strata are taken in turns."""
STRATA_KEPT = 12
"""Stratifications remembered by a table; each takes some bytes for each row."""
CODES_AT_ONCE = 1 << 16
"""Possible codes of strata before those that occur are numbered anew."""


@dataclass(frozen=True)
class _Strata:
    """Rows grouped by which conditioning events they hold; stratum 0 holds none of them."""

    of_row: Int32
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
        self._last_strata: dict[tuple[int, ...], tuple[Bool, _Strata]] = {}
        self._last_count: tuple[Bool, Int64] = (np.zeros(self.n_rows, bool), np.zeros(len(names), np.int64))

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
        with_y, strata = self._strata_given(target, given)
        few = int(self.totals[candidates].sum()) * 4 < len(self.columns)
        counts = self._count_by_column if few else self._count_by_row
        return counts(strata, with_y, candidates)

    def strata_of(self, target: int, x: int, given: Sequence[int]) -> tuple[Int64, Int64, Int64, Int64]:
        """Rows of every stratum of `given`, and those with x, with the target, with both: four arrays (strata,)."""
        with_y, strata = self._strata_given(target, given)
        rows = self.rows_of(x)
        size = len(strata.n)
        n_x = np.bincount(strata.of_row[rows], minlength=size)
        return strata.n, n_x, strata.n_y, np.bincount(strata.of_row[rows[with_y[rows]]], minlength=size)

    def entropies(self, columns: Int64) -> npt.NDArray[np.float64]:
        """Entropy of each column in nats."""
        n, ones = self.n_rows, self.totals[columns]
        return np.asarray((self.xlogx[n] - self.xlogx[ones] - self.xlogx[n - ones]) / n, np.float64)

    def save(self, folder: Path) -> None:
        """Write the arrays as plain .npy files, to be opened by other processes without a copy; names beside them."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in _ARRAYS:
            np.save(folder / f"{name}.npy", getattr(self, name), allow_pickle=False)
        write_json(folder / _NAMES, {"names": self.names, "n_events": self.n_events})

    @classmethod
    def open(cls, folder: Path) -> SparseTable:
        """Map the arrays that `save` wrote.

        Names are read from there, too: what a process is started with must be small, or processes start one by one.
        """
        told = read_json(folder / _NAMES)
        load = [np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in _ARRAYS]
        return cls((load[0], load[1]), (load[2], load[3]), told["names"], told["n_events"])

    def _strata_given(self, target: int, given: Sequence[int]) -> tuple[Bool, _Strata]:
        """Rows with the target, and the strata; the last ones are kept: a boundary is asked about again and again."""
        key = (target, *given)
        if key not in self._last_strata:
            with_y = np.zeros(self.n_rows, bool)
            with_y[self.rows_of(target)] = True
            self._last_strata[key] = with_y, self._strata(given, with_y)
            if len(self._last_strata) > STRATA_KEPT:
                del self._last_strata[next(iter(self._last_strata))]
        return self._last_strata[key]

    def _strata(self, given: Sequence[int], with_y: Bool) -> _Strata:
        code = np.zeros(self.n_rows, np.int32)
        codes = 1
        for column in given:
            if 2 * codes > CODES_AT_ONCE:
                codes = len(_renumber(code, codes)[1])
            code[self.rows_of(column)] += np.int32(codes)
            codes *= 2
        touched, n = _renumber(code, codes)
        return _Strata(code, touched, n, np.bincount(code[np.flatnonzero(with_y)], minlength=len(n)))

    def _count_by_column(self, strata: _Strata, with_y: Bool, candidates: Int64) -> Cells:
        """Visit the rows of each candidate."""
        size = len(strata.n)
        rows = self.rows[ragged_positions(self.column_offsets, candidates)]
        owner = np.repeat(np.arange(len(candidates)), self.totals[candidates])
        stratum = strata.of_row[rows].astype(np.int64)
        keep = strata.mixed[stratum]
        key, positive = (owner * size + stratum)[keep], with_y[rows[keep]]
        n_x = np.bincount(key, minlength=len(candidates) * size).reshape(-1, size)  # (C, S)
        n_xy = np.bincount(key[positive], minlength=len(candidates) * size).reshape(-1, size)
        who, where = np.nonzero((n_x > 0) & (n_x < strata.n))
        return Cells(who, strata.n[where], n_x[who, where], strata.n_y[where], n_xy[who, where])

    def _count_by_row(self, strata: _Strata, with_y: Bool, candidates: Int64) -> Cells:
        """Visit the rows of each informative stratum; one that holds most rows is counted by the other rows."""
        place = np.full(self.n_columns, -1, np.int64)
        place[candidates] = np.arange(len(candidates))
        mixed = np.flatnonzero(strata.mixed)
        most = [int(s) for s in mixed if 2 * strata.n[s] > self.n_rows]
        turn = max(1, CELLS_AT_ONCE // self.n_columns)
        before, after = (mixed[mixed < most[0]], mixed[mixed > most[0]]) if most else (mixed, mixed[:0])
        parts = [self._some_strata(strata, with_y, before[i : i + turn], place) for i in range(0, len(before), turn)]
        parts += [self._most_rows(strata, with_y, stratum, place) for stratum in most]
        parts += [self._some_strata(strata, with_y, after[i : i + turn], place) for i in range(0, len(after), turn)]
        return Cells(*(np.concatenate(part) for part in zip(*parts, strict=True))) if parts else Cells(*[_NONE] * 5)

    def _some_strata(self, strata: _Strata, with_y: Bool, chosen: Int64, place: Int64) -> tuple[Int64, ...]:
        index = np.full(len(strata.n), -1, np.int64)
        index[chosen] = np.arange(len(chosen))
        inside = strata.touched if chosen[0] > 0 else np.arange(self.n_rows)
        group = index[strata.of_row[inside]]
        rows, group = inside[group >= 0], group[group >= 0]
        n_x = self._count(rows, group, len(chosen))  # (S, columns)
        positive = with_y[rows]
        n_xy = self._count(rows[positive], group[positive], len(chosen))
        return _informative(strata.n[chosen], n_x, strata.n_y[chosen], n_xy, place)

    def _most_rows(self, strata: _Strata, with_y: Bool, stratum: int, place: Int64) -> tuple[Int64, ...]:
        inside = strata.of_row == stratum
        n_x = self.totals - self._count_by_difference(~inside)
        n_xy = self._count(np.flatnonzero(with_y & inside))
        here = slice(stratum, stratum + 1)
        return _informative(strata.n[here], n_x[None], strata.n_y[here], n_xy, place)

    def _count_by_difference(self, chosen: Bool) -> Int64:
        """How often each column occurs in these rows; a set much like the last one is counted by what differs."""
        before, counts = self._last_count
        came, went = np.flatnonzero(chosen & ~before), np.flatnonzero(before & ~chosen)
        if len(came) + len(went) < np.count_nonzero(chosen):
            counts = np.asarray(counts + self._count(came)[0] - self._count(went)[0])
        else:
            counts = self._count(np.flatnonzero(chosen))[0]
        self._last_count = (chosen, counts)
        return counts

    def _count(self, rows: Int64, group: Int64 | None = None, n_groups: int = 1) -> Int64:
        """How often each column occurs in these rows, by group: (groups, columns)."""
        size = n_groups * self.n_columns
        turn = max(1, max(CELLS_AT_ONCE // 4, size) * self.n_rows // max(len(self.columns), 1))
        counts = self._count_some(rows[:turn], None if group is None else group[:turn], size)
        for i in range(turn, len(rows), turn):  # in turns that fit the processor's memory
            counts += self._count_some(rows[i : i + turn], None if group is None else group[i : i + turn], size)
        return counts.reshape(n_groups, self.n_columns)

    def _count_some(self, rows: Int64, group: Int64 | None, size: int) -> Int64:
        chosen = self._by_row[rows]
        columns = chosen.indices.astype(np.int64)
        if group is not None:
            columns += np.repeat(group * self.n_columns, np.diff(chosen.indptr))
        return np.bincount(columns, minlength=size)

    @cached_property
    def _by_row(self) -> Any:
        """The table for scipy, which copies rows fast; the ones themselves are never looked at."""
        ones = np.ones(len(self.columns), np.int8)
        return csr_array((ones, self.columns, narrow(self.row_offsets)), shape=(self.n_rows, self.n_columns))


def narrow(offsets: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Offsets in 32 bits where they fit; with wider ones scipy would copy all indices into 64 bits."""
    return offsets.astype(np.int32 if offsets[-1] <= np.iinfo(np.int32).max else np.int64)


def _informative(n: Int64, n_x: Int64, n_y: Int64, n_xy: Int64, place: Int64) -> tuple[Int64, ...]:
    """The parts of `Cells` from dense counts (strata, columns): where a candidate (place >= 0) varies."""
    kept = (n_x > 0) & (n_x < n[:, None]) & (place >= 0)
    flat, each = np.flatnonzero(kept), np.count_nonzero(kept, axis=1)
    owner = place[flat - np.repeat(np.arange(len(n)) * len(place), each)]
    return owner, np.repeat(n, each), n_x.ravel()[flat], np.repeat(n_y, each), n_xy.ravel()[flat]


def _renumber(code: Int32, codes: int) -> tuple[Int64, Int64]:
    """Number the codes that occur anew, in their order, 0 staying 0: in place. Rows not 0, and rows of each number."""
    touched = np.flatnonzero(code != 0)
    values = code[touched]
    seen = np.bincount(values, minlength=codes)
    occurs = seen > 0
    code[touched] = np.cumsum(occurs, dtype=np.int32)[values]
    return touched, np.append(len(code) - len(touched), seen[occurs])


_ARRAYS = ("row_offsets", "columns", "column_offsets", "rows")
_NAMES = "names.json"
_NONE = np.zeros(0, np.int64)


def sparse_table(
    rows: Int64, columns: Int64, shape: tuple[int, int], names: Sequence[str], n_events: int
) -> SparseTable:
    """A table from the places of its ones (repeats count once)."""
    if len(names) != shape[1]:
        raise DataError(f"table: expected one name for each of {shape[1]} columns, got {len(names)}")
    matrix = csc_array((np.ones(len(rows), np.int8), (rows, columns)), shape=shape)
    matrix.sum_duplicates()
    return table_of_columns(matrix.indptr, matrix.indices, shape[0], names, n_events)


def table_of_columns(
    offsets: npt.NDArray[Any], rows: npt.NDArray[Any], n_rows: int, names: Sequence[str], n_events: int
) -> SparseTable:
    """A table from the rows of each column end to end, in each column rising and without repeats."""
    ones = np.ones(len(rows), np.int8)
    turned = csc_array((ones, rows, narrow(offsets)), shape=(n_rows, len(names))).tocsr()
    by_row = (turned.indptr.astype(np.int64), turned.indices.astype(np.int32, copy=False))
    return SparseTable(by_row, (offsets.astype(np.int64), rows.astype(np.int32, copy=False)), names, n_events)
