"""Writes a dataset folder from a stream of tables, checking every invariant on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from oscar_causal.data.checksums import NAME as CHECKSUMS
from oscar_causal.data.checksums import checksums
from oscar_causal.data.digest import ContentDigest
from oscar_causal.data.folders import new_folder, write_json
from oscar_causal.data.schema import (
    FILE_SEQUENCES,
    FORMAT_VERSION,
    ROW_GROUP_EVENTS,
    ROW_GROUP_SEQUENCES,
    WHY_SCHEMA,
    channels_of,
    conform,
)
from oscar_causal.data.validate import check_sequences, one_array
from oscar_causal.errors import DataError

Int64 = npt.NDArray[np.int64]


class PartWriter:
    """Appends tables to `folder/part-00000.parquet`, ... in row groups and files of bounded sizes.

    A row group holds `group_rows` rows, or fewer when their weights (`weigh`) would add up to more than `group_weight`.
    How the caller cuts its tables leaves no trace in the bytes.
    """

    def __init__(
        self,
        folder: Path,
        *,
        group_rows: int = ROW_GROUP_SEQUENCES,
        file_rows: int = FILE_SEQUENCES,
        weigh: Callable[[pa.Table], Int64] | None = None,
        group_weight: int = ROW_GROUP_EVENTS,
    ) -> None:
        self.folder, self.group_rows, self.file_rows = folder, group_rows, file_rows
        self.rows = 0
        self._weigh, self._group_weight = weigh or (lambda table: np.zeros(len(table), np.int64)), group_weight
        self._waiting: list[pa.Table] = []
        self._weights: Int64 = np.empty(0, np.int64)
        self._writer: pq.ParquetWriter | None = None
        self._parts = self._file_rows = 0
        folder.mkdir(parents=True, exist_ok=True)

    def write(self, table: pa.Table) -> None:
        """Take over the rows of `table`."""
        self._waiting.append(table)
        self._weights = np.concatenate([self._weights, self._weigh(table)])
        while rows := self._full_group():
            waiting = pa.concat_tables(self._waiting)
            self._write_group(waiting.slice(0, rows))
            self._waiting = [waiting.slice(rows)]
            self._weights = self._weights[rows:]

    def close(self) -> None:
        """Write what is left and finish the last file."""
        if len(self._weights):
            self._write_group(pa.concat_tables(self._waiting))
        self._waiting, self._weights = [], np.empty(0, np.int64)
        self._close_file()

    def _full_group(self) -> int:
        """Rows of the next group; 0 when more rows could still join it."""
        light = int(np.searchsorted(np.cumsum(self._weights), self._group_weight, side="right"))
        rows = min(max(light, 1), self.group_rows)
        return rows if rows == self.group_rows <= len(self._weights) or rows < len(self._weights) else 0

    def _write_group(self, table: pa.Table) -> None:
        if self._writer is None:
            path = self.folder / f"part-{self._parts:05d}.parquet"
            self._writer = pq.ParquetWriter(
                path, table.schema, compression="zstd", compression_level=1, write_page_checksum=True
            )
            self._parts += 1
        self._writer.write_table(table.combine_chunks(), row_group_size=self.group_rows)
        self.rows += len(table)
        self._file_rows += len(table)
        if self._file_rows + self.group_rows > self.file_rows:
            self._close_file()

    def _close_file(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
            self._file_rows = 0


class DatasetWriter:
    """Collects sequences into an (unfinished) dataset folder. Use `dataset_writer`, which makes it appear whole."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._parts = PartWriter(folder / "sequences", weigh=_event_counts)
        self._why: PartWriter | None = None
        self._digest = ContentDigest()
        self._schema: pa.Schema | None = None
        self._ids: list[Any] = []
        self._events = 0
        self._extra: dict[str, Any] = {}
        self._info: dict[str, Any] | None = None

    def write(self, table: pa.Table | pa.RecordBatch, *, where: str = "sequences") -> None:
        """Check and append sequences; all tables of one dataset have the same columns."""
        table = conform(table)
        if self._schema is None:
            self._schema = table.schema
        elif table.schema != self._schema:
            raise DataError(f"{where}: expected columns {self._schema.names}, got {table.schema.names}")
        check_sequences(table, where=where)
        self._ids.append(one_array(table["sequence_id"]))
        self._events += int(pc.sum(pc.list_value_length(table["events"])).as_py() or 0)
        self._digest.update(table)
        self._parts.write(table)

    def write_why(self, table: pa.Table) -> None:
        """Append reasons (`why/`): which events brought a label about."""
        if self._why is None:
            self._why = PartWriter(self.folder / "why", group_rows=100_000, file_rows=1_000_000)
        self._why.write(table.cast(WHY_SCHEMA))

    def write_names(self, names: Mapping[str, str]) -> None:
        """Write `names.json`: event or label -> description."""
        write_json(self.folder / "names.json", dict(names))

    def describe(self, **extra: Any) -> None:
        """Add keys to `dataset.json` (how the data came about)."""
        self._extra.update(extra)

    def finish(self) -> dict[str, Any]:
        """Close the files and write `dataset.json`; returns its content (called again, it only returns it)."""
        if self._info is not None:
            return self._info
        if self._schema is None or not sum(map(len, self._ids)):
            raise DataError("dataset: expected at least one sequence, got none")
        self._refuse_double_ids()
        self._parts.close()
        if self._why is not None:
            self._why.close()
        info = {
            "kind": "dataset",
            "format_version": FORMAT_VERSION,
            "sequences": self._parts.rows,
            "events": self._events,
            "channels": list(channels_of(self._schema)),
            "digest": self._digest.hexdigest(),
            **self._extra,
        }
        write_json(self.folder / "dataset.json", info)
        self._info = info
        return info

    def _refuse_double_ids(self) -> None:
        ids = pa.chunked_array(self._ids)
        if pc.count_distinct(ids).as_py() == len(ids):
            return
        counts = pc.value_counts(ids)
        at = int(np.argmax(counts.field("counts").to_numpy() > 1))
        name = counts.field("values")[at].as_py()
        raise DataError(f"column 'sequence_id': expected each id once, got {name!r} {counts.field('counts')[at]} times")


def _event_counts(table: pa.Table) -> Int64:
    return np.asarray(pc.list_value_length(table["events"]).to_numpy(), np.int64)


@contextmanager
def dataset_writer(out: Path | str, *, force: bool = False) -> Iterator[DatasetWriter]:
    """Open a dataset for writing; it appears at `out` only when the block ends well (finish is called for you)."""
    with new_folder(out, force=force) as folder:
        writer = DatasetWriter(folder)
        yield writer
        writer.finish()
        write_json(folder / CHECKSUMS, checksums(folder))


def write_dataset(
    out: Path | str,
    tables: Iterable[pa.Table] | Sequence[pa.Table],
    *,
    names: Mapping[str, str] | None = None,
    force: bool = False,
) -> None:
    """Write tables of sequences as a dataset folder.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as place:
    ...     table = pa.table({"sequence_id": ["n1"], "events": [["boot"]], "times": [[0.0]], "labels": [["outage"]]})
    ...     write_dataset(f"{place}/nights", [table], names={"boot": "power-on self test"})
    ...     sorted(path.name for path in Path(place, "nights").iterdir())
    ['checksums.json', 'dataset.json', 'names.json', 'sequences']
    """
    with dataset_writer(out, force=force) as writer:
        for table in tables:
            writer.write(table)
        if names:
            writer.write_names(names)
