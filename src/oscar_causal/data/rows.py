"""Sequences of a dataset folder by row number: one or two row groups are in memory, however large the dataset is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from oscar_causal.data.schema import conform
from oscar_causal.data.sequences import Dataset, from_table, ragged_offsets
from oscar_causal.data.stream import checked, open_parquet, read_group, read_info, sequence_files, stream_columns
from oscar_causal.errors import DataError, FolderError


class SequenceRows:
    """An open dataset folder. `take` reads the row groups that hold the chosen sequences and keeps the last two.

    Made for row numbers that mostly rise; numbers in random order read a row group for nearly every one of them.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.info: Mapping[str, Any] = read_info(self.path)
        self._groups: list[tuple[Path, int]] = []
        lengths: list[int] = []
        for file in sequence_files(self.path):
            with open_parquet(file) as parquet:
                for group in range(parquet.num_row_groups):
                    self._groups.append((file, group))
                    lengths.append(parquet.metadata.row_group(group).num_rows)
        self._offsets = ragged_offsets(np.array(lengths, np.int64))
        if len(self) != self.info["sequences"]:
            raise FolderError(
                f"{self.path}: expected {self.info['sequences']} sequences (dataset.json), found {len(self)}"
            )
        self._read = lru_cache(2)(self._read_group)

    def __len__(self) -> int:
        return int(self._offsets[-1])

    def lengths(self) -> npt.NDArray[np.int64]:
        """Events of every sequence; one pass over that column, row group by row group."""
        parts = (pc.list_value_length(table["events"]) for table in stream_columns(self.path, ("events",)))
        return np.concatenate([np.zeros(0, np.int64), *(part.to_numpy().astype(np.int64) for part in parts)])

    def take(self, indices: Sequence[int] | npt.NDArray[Any]) -> Dataset:
        """The chosen sequences, in the given order."""
        chosen = np.asarray(indices, np.int64)
        if not len(chosen) or chosen.min() < 0 or chosen.max() >= len(self):
            raise DataError(f"{self.path}: expected row numbers from 0 to {len(self) - 1}, got {_span(chosen)}")
        groups = np.searchsorted(self._offsets, chosen, side="right") - 1
        parts, rows, before = [], np.empty(len(chosen), np.int64), 0
        for group in np.unique(groups):
            mine = np.flatnonzero(groups == group)
            parts.append(self._read(int(group)).take(pa.array(chosen[mine] - self._offsets[group])))
            rows[mine] = before + np.arange(len(mine))
            before += len(mine)
        table = pa.concat_tables(parts, promote_options="default")
        return from_table(table.take(pa.array(rows)), where=str(self.path))

    def _read_group(self, index: int) -> pa.Table:
        file, group = self._groups[index]
        with open_parquet(file) as parquet:
            table = read_group(file, parquet, group)
        return checked(file, lambda: conform(table))


def _span(chosen: npt.NDArray[np.int64]) -> str:
    return f"{chosen.min()} to {chosen.max()}" if len(chosen) else "none"
