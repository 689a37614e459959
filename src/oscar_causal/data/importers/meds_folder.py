"""The files of a MEDS dataset, read with the columns and types of the `meds` package's own schemas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from oscar_causal.data.extras import load_extra
from oscar_causal.data.importers.parquet_table import refuse_twice
from oscar_causal.data.importers.rejects import Int64
from oscar_causal.errors import DataError

BATCH_ROWS = 200_000
OWN_NAMES = Path("metadata") / "oscar_sequences.parquet"
"""Where `oscar export --format meds` keeps the names of sequences and subjects that MEDS has only numbers for."""


def is_meds_folder(path: Path) -> bool:
    """A folder with Parquet files under data/ whose columns are those of MEDS events."""
    files = sorted((path / "data").rglob("*.parquet")) if path.is_dir() else []
    if not files:
        return False
    try:
        return {"subject_id", "time", "code"} <= set(pq.read_schema(files[0]).names)
    except (pa.ArrowException, OSError):
        return (path / "metadata" / "dataset.json").exists()


def is_meds_labels(path: Path) -> bool:
    """A Parquet file, or a folder of them, with the column `prediction_time`."""
    files = [path] if path.is_file() else sorted(path.rglob("*.parquet"))
    try:
        return bool(files) and "prediction_time" in pq.read_schema(files[0]).names
    except (pa.ArrowException, OSError):
        return False


@dataclass(frozen=True)
class Own:
    """Names that MEDS has only a number for, and time zero of the sequence."""

    sequence: str
    subject: str
    start: datetime


@dataclass(frozen=True)
class MedsFolder:
    """An open MEDS dataset."""

    path: Path
    meds: Any
    """The package `meds`."""

    @property
    def data_files(self) -> list[Path]:
        """The shards, in order."""
        return sorted((self.path / self.meds.data_subdirectory).rglob("*.parquet"))

    def shard_folders(self) -> set[str]:
        """Names of folders inside data/ (train, held_out, ...), which label folders may mirror."""
        root = self.path / self.meds.data_subdirectory
        return {item.name for item in root.iterdir() if item.is_dir()}

    def splits(self) -> dict[int, str]:
        """Subject -> split; empty when the dataset has none."""
        file = self.path / self.meds.subject_splits_filepath
        if not file.exists():
            return {}
        found: dict[int, str] = {}
        for table, first in batches(file, self.meds.SubjectSplitSchema):
            columns = (table["subject_id"].to_pylist(), table["split"].to_pylist())
            for row, (subject, split) in enumerate(zip(*columns, strict=True), first):
                if subject is None or not split or found.get(subject, split) != split:
                    expected = "a subject with one split"
                    raise DataError(f"{file}: row {row:,}: expected {expected}, got {subject!r}, {split!r}")
                found[subject] = split
        return found

    def descriptions(self) -> dict[str, str]:
        """Code -> description."""
        file = self.path / self.meds.code_metadata_filepath
        if not file.exists():
            return {}
        found: dict[str, str] = {}
        for table, _ in batches(file, self.meds.CodeMetadataSchema):
            if "description" in table.column_names:
                pairs = zip(table["code"].to_pylist(), table["description"].to_pylist(), strict=True)
                found |= {code: text for code, text in pairs if code and text}
        return found

    def own_names(self) -> dict[int, Own] | None:
        """By MEDS subject, the names in a dataset that `oscar export` wrote; None for any other."""
        file = self.path / OWN_NAMES
        if not file.exists():
            return None
        names = ["subject_id", "sequence", "subject", "start"]
        kinds = [pa.int64(), pa.string(), pa.string(), pa.timestamp("us", "UTC")]
        wanted = pa.schema(list(zip(names, kinds, strict=True)))
        table = guard(file, lambda: pq.read_table(file).select(names).cast(wanted))
        columns = [table[name].to_pylist() for name in names]
        if any(table[name].null_count for name in names):
            raise DataError(f"{file}: expected a name and a start for every subject, got null")
        return {number: Own(*rest) for number, *rest in zip(*columns, strict=True)}


def open_meds(path: Path) -> MedsFolder:
    """Open a MEDS dataset; needs the extra `meds`."""
    folder = MedsFolder(path, load_extra("meds", "reading or writing MEDS"))
    if not folder.data_files:
        raise DataError(f"{path}: expected a MEDS dataset with data/*.parquet, found none")
    return folder


def batches(file: Path, schema: Any, columns: list[str] | None = None) -> Iterator[tuple[pa.Table, int]]:
    """Tables of a file with the types of a MEDS schema, and the number of their first row (from 1).

    `columns` of other names come as they are. A missing column, or one of another type, is a DataError; nulls are left
    to the caller, who knows the row.
    """
    wanted: pa.Schema = schema.schema()
    first = 1
    with guard(file, lambda: pq.ParquetFile(file)) as parquet:
        names = parquet.schema_arrow.names
        refuse_twice(parquet.schema_arrow, file)
        missing = [name for name in _required(schema) if name not in names]
        if missing:
            raise DataError(f"{file}: expected a column {missing[0]!r} (MEDS), got {', '.join(names)}")
        chosen = [name for name in names if columns is None or name in columns]
        rows = parquet.iter_batches(BATCH_ROWS, columns=chosen, use_threads=False)
        while (batch := guard(file, lambda: next(rows, None))) is not None:
            yield _typed(pa.Table.from_batches([batch]), wanted, file), first
            first += len(batch)


def _required(schema: Any) -> list[str]:
    optional = {"numeric_value", "text_value", "boolean_value", "integer_value", "float_value", "categorical_value"}
    optional |= {"description", "parent_codes"}
    return [name for name in schema.schema().names if name not in optional]


def _typed(table: pa.Table, wanted: pa.Schema, file: Path) -> pa.Table:
    for index, name in enumerate(table.column_names):
        if name in wanted.names:
            kind = wanted.field(name).type
            try:
                table = table.set_column(index, name, _cast(table[name], kind))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                came = table[name].type
                raise DataError(f"{file}: column {name!r}: expected {kind} (MEDS), got {came}: {error}") from error
    return table


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_timestamp(kind) and getattr(column.type, "tz", None):
        column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    return column.cast(kind)


def microseconds(column: pa.ChunkedArray | pa.Array) -> Int64:
    """Timestamps as whole microseconds since 1970; null = 0."""
    return np.asarray(pc.fill_null(column.cast(pa.int64()), 0).to_numpy(zero_copy_only=False), np.int64)


def guard(file: Path, read: Callable[[], Any]) -> Any:
    """What Arrow says of a damaged file, in one line."""
    try:
        return read()
    except (pa.ArrowException, OSError, KeyError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{file}: expected a whole Parquet file: {reason}") from error
