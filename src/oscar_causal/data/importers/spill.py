"""Rows on their way from tables to sequences: cut into partitions by a hash of the sequence id, each in a file.

All rows of one sequence land in the same partition, in the order in which they came, so that a table larger than
memory can be grouped partition by partition.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def partition_of(ids: pa.Array, partitions: int) -> npt.NDArray[np.int64]:
    """The partition of each id; the same id always gets the same one."""
    if partitions == 1:
        return np.zeros(len(ids), np.int64)
    encoded = ids.dictionary_encode()
    names = encoded.dictionary.to_pylist()
    table = np.fromiter((zlib.crc32(name.encode()) % partitions for name in names), np.int64, len(names))
    return np.asarray(table[encoded.indices.to_numpy(zero_copy_only=False)], np.int64)


class Spill:
    """Tables with a column `id`, spread over `partitions` files in `folder`."""

    def __init__(self, folder: Path, schema: pa.Schema, partitions: int) -> None:
        self._folder, self._schema, self._partitions = folder, schema, partitions
        self._writers: dict[int, Any] = {}
        folder.mkdir(parents=True)

    def write(self, table: pa.Table) -> None:
        """Append the rows, keeping their order inside each partition."""
        if not len(table):
            return
        partition = partition_of(table["id"].combine_chunks(), self._partitions)
        order = np.argsort(partition, kind="stable")
        bounds = np.searchsorted(partition[order], np.arange(self._partitions + 1))
        ordered = table.take(pa.array(order)) if self._partitions > 1 else table
        for index, (begin, end) in enumerate(zip(bounds[:-1], bounds[1:], strict=True)):
            if end > begin:
                self._writer(index).write_table(ordered.slice(begin, end - begin))

    def finish(self) -> None:
        """No more rows will come."""
        for writer in self._writers.values():
            writer.close()

    def read(self, partition: int) -> pa.Table:
        """All rows of one partition; its file is removed."""
        path = self._path(partition)
        if partition not in self._writers:
            return self._schema.empty_table()
        with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as stream:
            table = stream.read_all()
        path.unlink()
        return table

    def _writer(self, index: int) -> Any:
        if index not in self._writers:
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            self._writers[index] = pa.ipc.new_stream(str(self._path(index)), self._schema, options=options)
        return self._writers[index]

    def _path(self, index: int) -> Path:
        return self._folder / f"{index:05d}.arrow"
