"""Parquet tables, row group by row group."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from oscar_causal.data.importers.long_table import RawBatch
from oscar_causal.data.importers.text_source import open_bytes
from oscar_causal.data.schema import check_names
from oscar_causal.data.validate import one_array
from oscar_causal.errors import DataError

BATCH_ROWS = 200_000


class ParquetTable:
    """Flat columns of any primitive type."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.name = str(path)
        open_bytes(path).close()
        with self._guard(lambda: pq.ParquetFile(path)) as parquet:
            self._schema: pa.Schema = self._guard(lambda: parquet.schema_arrow)
        refuse_twice(self._schema, path)
        self.header: list[str] = list(self._schema.names)

    def batches(self, columns: Sequence[str]) -> Iterator[RawBatch]:
        """The rows in batches of at most 200,000."""
        for name in columns:
            if pa.types.is_nested(self._schema.field(name).type):
                kind = self._schema.field(name).type
                raise DataError(f"{self.name}: column {name!r}: expected text, numbers or timestamps, got {kind}")
        size = self._path.stat().st_size
        first, done = 1, 0
        with self._guard(lambda: pq.ParquetFile(self._path)) as parquet:
            batches = parquet.iter_batches(BATCH_ROWS, columns=list(columns), use_threads=False)
            while (batch := self._guard(lambda: next(batches, None))) is not None:
                rows = np.arange(first, first + len(batch))
                first, done = first + len(batch), done + len(batch)
                cells = {name: plain(batch.column(name)) for name in columns}
                yield RawBatch(cells, rows, [], size * done // max(parquet.metadata.num_rows, 1))

    def _guard(self, read: Callable[[], Any]) -> Any:
        try:
            return read()
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise DataError(f"{self.name}: expected a whole Parquet file: {reason}") from error


def refuse_twice(schema: pa.Schema, file: Path) -> None:
    """A file with a column twice is a DataError that names it."""
    try:
        check_names(schema)
    except DataError as error:
        raise DataError(f"{file}: {error}") from error


def plain(column: pa.Array) -> pa.Array:
    """A column without dictionaries and large or view types."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return plain(one_array(column.dictionary_decode()))
    if pa.types.is_large_string(kind) or kind == pa.string_view():
        return column.cast(pa.string())
    if pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind) or kind == pa.binary_view():
        return column.cast(pa.binary())
    return column
