"""Sequences of all partitions, brought back into the order in which they first appear in the input.

Each partition is in that order already; only the first row of each sequence is kept in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from oscar_causal.data.importers.grouping import Int64

CHUNK_SEQUENCES = 10_000
CHUNK_EVENTS = 2_000_000
BATCH_EVENTS = 50_000


class Merger:
    """Takes one table per partition, gives back tables in the common order."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._first: list[Int64] = []
        self._lengths: list[Int64] = []
        folder.mkdir(parents=True)

    def add(self, table: pa.Table, first: Int64) -> None:
        """The sequences of the next partition, with the running number of the first row of each."""
        lengths = np.diff(table["events"].combine_chunks().offsets.to_numpy()).astype(np.int64)
        with pa.ipc.new_stream(str(self._path(len(self._first))), table.schema) as stream:
            for begin, end in _pieces(lengths, len(lengths), BATCH_EVENTS):
                stream.write_table(table.slice(begin, end - begin))
        self._first.append(first)
        self._lengths.append(lengths)

    def tables(self) -> Iterator[pa.Table]:
        """All sequences by first appearance, in tables of bounded size."""
        order = np.argsort(np.concatenate(self._first), kind="stable")
        owner = np.repeat(np.arange(len(self._first)), [len(part) for part in self._first])[order]
        lengths = np.concatenate(self._lengths)[order]
        cursors = [_Cursor(self._path(index)) for index in range(len(self._first))]
        try:
            for begin, end in _pieces(lengths, CHUNK_SEQUENCES, CHUNK_EVENTS):
                yield _gather(cursors, owner[begin:end])
        finally:
            for cursor in cursors:
                cursor.close()

    def _path(self, index: int) -> Path:
        return self._folder / f"{index:05d}.arrow"


class _Cursor:
    """Reads a partition front to back, as many sequences at a time as asked for."""

    def __init__(self, path: Path) -> None:
        self._file = pa.OSFile(str(path))
        self._stream = pa.ipc.open_stream(self._file)
        self._left = self._stream.schema.empty_table()

    def take(self, count: int) -> pa.Table:
        parts = [self._left]
        while sum(len(part) for part in parts) < count:
            parts.append(pa.Table.from_batches([self._stream.read_next_batch()]))
        table = pa.concat_tables(parts)
        self._left = table.slice(count)
        return table.slice(0, count)

    def close(self) -> None:
        self._stream.close()
        self._file.close()


def _gather(cursors: list[_Cursor], owner: Int64) -> pa.Table:
    counts = np.bincount(owner, minlength=len(cursors))
    table = pa.concat_tables([cursors[i].take(int(counts[i])) for i in np.flatnonzero(counts)])
    place = np.empty(len(owner), np.int64)
    place[np.argsort(owner, kind="stable")] = np.arange(len(owner))
    return table.combine_chunks().take(pa.array(place)).combine_chunks()


def _pieces(lengths: Int64, most: int, most_events: int) -> Iterator[tuple[int, int]]:
    """Runs of sequences: at most `most` of them and about `most_events` events, but at least one."""
    ends = np.cumsum(lengths)
    begin = 0
    while begin < len(lengths):
        before = ends[begin - 1] if begin else 0
        full = int(np.searchsorted(ends, before + most_events, side="right"))
        end = min(max(full, begin + 1), begin + most)
        yield begin, end
        begin = end
