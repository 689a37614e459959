"""A dataset folder read row group by row group, for work larger than memory. Damage is one line that names the file."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from oscar_causal.data.checksums import check_file, edited_hashes, sha256
from oscar_causal.data.folders import check_format, read_json
from oscar_causal.data.schema import FORMAT_VERSION, REQUIRED, WHY_SCHEMA, as_typed, channels_of, check_names, conform
from oscar_causal.data.validate import check_sequences
from oscar_causal.errors import DataError, FolderError

MOST_ROWS, MOST_BYTES = 10_000_000, 4 << 30
"""Of a row group, unpacked; the format's own writer closes a group at 10,000 rows."""

EVENT_BYTES = 24
"""Of an event of a dataset in memory: its id, its time, and a copy of the time while it is read."""


def read_info(path: Path | str) -> dict[str, Any]:
    """The content of `dataset.json`; what is no dataset folder, or a newer one, is a FolderError."""
    file = Path(path) / "dataset.json"
    if not file.exists():
        raise FolderError(f"{path}: expected a dataset folder, which holds dataset.json, found none")
    info = read_json(file)
    check_format(info, file, kind="dataset", newest=FORMAT_VERSION)
    count, channels = info.get("sequences"), info.get("channels", [])
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise FolderError(f"{file}: expected the number of sequences, 1 or more, got {count!r}")
    if not isinstance(channels, list) or not all(isinstance(name, str) for name in channels):
        raise FolderError(f"{file}: expected channels as a list of names, got {channels!r}")
    return info


def sequence_files(path: Path | str) -> list[Path]:
    """The Parquet files of a dataset folder, in order."""
    files = sorted((Path(path) / "sequences").glob("*.parquet"))
    if not files:
        raise FolderError(f"{Path(path) / 'sequences'}: expected Parquet files, found none")
    return files


def sequences_sha256(path: Path | str) -> str:
    """A hash of the bytes of all sequence files: rows in another order are other data for a run that goes on."""
    total = hashlib.sha256()
    for file in sequence_files(path):
        total.update(f"{file.name}\0{sha256(file)}\0".encode())
    return total.hexdigest()


def describe_dataset(path: Path | str) -> dict[str, Any]:
    """What `run.json` says about the dataset of a run."""
    return {
        "path": str(path),
        "digest": read_info(path).get("digest"),
        "sequences_sha256": sequences_sha256(path),
        "edited_sha256": edited_hashes(Path(path)),
    }


def memory_bytes(path: Path | str) -> int:
    """Bytes that `read_dataset` and its times take, about, from the ends of the files alone."""
    read_info(path)
    total = 0
    for file in sequence_files(path):
        with open_parquet(file) as parquet:
            meta = parquet.metadata
            for group in range(meta.num_row_groups):
                columns = [meta.row_group(group).column(index) for index in range(meta.num_columns)]
                for column in columns:
                    name = column.path_in_schema.split(".")[0]
                    total += EVENT_BYTES * column.num_values if name == "events" else 0
                    total += 2 * column.total_uncompressed_size if name in ("sequence_id", "subject_id") else 0
    return total


def channels_in(files: Sequence[Path]) -> tuple[str, ...]:
    """The channels of a dataset's files, which must all have the same."""
    first: tuple[str, ...] | None = None
    for file in files:
        with open_parquet(file) as parquet:
            found: tuple[str, ...] = checked(file, lambda schema=parquet.schema_arrow: channels_of(schema))  # type: ignore[misc]
        first = found if first is None else first
        if set(found) != set(first):
            raise FolderError(f"{file}: expected the channels of the files before, {list(first)}, got {list(found)}")
    return first or ()


def stream_tables(path: Path | str) -> Iterator[pa.Table]:
    """The sequences of a dataset folder as tables of one row group each, in the format's columns, and sound."""
    wanted, found, files = read_info(path)["sequences"], 0, sequence_files(path)
    channels_in(files)
    for file in files:
        with open_parquet(file) as parquet:
            for table in row_groups(file, parquet):
                found += len(table)
                yield checked(file, lambda table=table: _sound(table))  # type: ignore[misc]
    if found != wanted:
        raise FolderError(f"{path}: expected {wanted} sequences (dataset.json), found {found}")


def _sound(table: pa.Table) -> pa.Table:
    table = conform(table)
    check_sequences(table, where="sequences")
    return table


def stream_columns(path: Path | str, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Some columns only, in the format's types; optional ones that a file lacks are left out."""
    needed = [name for name in columns if name in REQUIRED]
    for file in sequence_files(path):
        with open_parquet(file) as parquet:
            for table in row_groups(file, parquet, columns):
                yield checked(file, lambda table=table: _typed(table, needed))  # type: ignore[misc]


def _typed(table: pa.Table, needed: Sequence[str]) -> pa.Table:
    lost = [name for name in needed if name not in table.column_names]
    if lost:
        raise DataError(f"sequences: expected column {lost[0]!r}, got {', '.join(table.column_names) or 'no columns'}")
    events = table["events"] if "events" in table.column_names else None
    if events is not None and events.null_count:
        raise DataError("column 'events': expected at least one event in every sequence, got null")
    if events is not None and pa.types.is_list(events.type) and pc.list_flatten(events).null_count:
        raise DataError("column 'events': expected names, got null")
    return pa.table({name: as_typed(table[name], name) for name in table.column_names})


def stream_why(path: Path | str) -> Iterator[pa.Table]:
    """The reasons of a dataset folder (`why/`), if it has any."""
    for file in sorted((Path(path) / "why").glob("*.parquet")):
        with open_parquet(file) as parquet:
            for table in row_groups(file, parquet):
                typed = guarded(file, lambda table=table: table.select(WHY_SCHEMA.names).cast(WHY_SCHEMA))  # type: ignore[misc]
                for name in typed.column_names:
                    if typed[name].null_count:
                        raise FolderError(f"{file}: column {name!r}: expected a value in every row, got null")
                yield typed


def checked(file: Path, read: Callable[[], Any]) -> Any:
    """What is wrong with the content of a dataset's file is told with the file's name."""
    try:
        return read()
    except DataError as error:
        raise FolderError(f"{file}: {error}") from error


def row_groups(file: Path, parquet: pq.ParquetFile, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """The row groups of an open file; of `columns` those that it has."""
    names = None if columns is None else [name for name in columns if name in parquet.schema_arrow.names]
    for group in range(parquet.num_row_groups):
        yield read_group(file, parquet, group, names)


def read_group(file: Path, parquet: pq.ParquetFile, group: int, columns: Sequence[str] | None = None) -> pa.Table:
    """One row group of an open file, its offsets and its text checked."""
    _check_size(file, parquet, group)

    def read() -> pa.Table:
        table = parquet.read_row_group(group, columns=columns)
        table.validate(full=True)
        return table

    return guarded(file, read)


def _check_size(file: Path, parquet: pq.ParquetFile, group: int) -> None:
    """Refuse a row group that says it is too large for memory: a few kB can hold gigabytes.

    Only the group's own figures are asked: those of its columns end the process when the footer is damaged in a way.
    """
    meta = parquet.metadata.row_group(group)
    for what, came, most in (("rows", meta.num_rows, MOST_ROWS), ("bytes", meta.total_byte_size, MOST_BYTES)):
        if not 0 <= came <= most:
            raise FolderError(f"{file}: expected row groups of at most {most:,} {what}, got {came:,}")


def open_parquet(file: Path, **options: Any) -> pq.ParquetFile:
    """Open a Parquet file that is as it was written, as far as checksums say (of the folder, and of each page).

    One with a column twice is refused.
    """
    check_file(file)
    parquet = guarded(file, lambda: pq.ParquetFile(file, page_checksum_verification=True, **options))
    checked(file, lambda: check_names(guarded(file, lambda: parquet.schema_arrow)))
    return parquet


def guarded(file: Path, read: Callable[[], Any]) -> Any:
    """A damaged Parquet file is one line that names it, whatever Arrow raised."""
    try:
        return read()
    except (pa.ArrowException, OSError, KeyError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise FolderError(f"{file}: damaged or no Parquet file: {reason}") from error
