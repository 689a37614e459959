"""Folders of the Hugging Face `datasets` library, read with pyarrow alone: `save_to_disk` (Arrow) or a hub's Parquet.

A record is a sequence whose columns are lists (events, times, labels), or a row of a long table: columns that are lists
are spread over rows. Numbers of class labels become their names. Each data file is a table of its own; `split` is known
from the folder (`save_to_disk`) or from the file's name (`train-00000-of-00002.parquet`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from oscar_causal.data.importers.nested import Records, RecordTable
from oscar_causal.data.importers.parquet_table import refuse_twice
from oscar_causal.errors import DataError

KNOWN = {"time": "times", "event": "events", "label": "labels"}
"""Plain names of lists; roles fall back to the usual names of long tables."""
BATCH_RECORDS = 2_000
_SHARD = re.compile(r"^(?P<split>.+?)-\d{5}-of-\d{5}$")


def is_hf_folder(path: Path) -> bool:
    """A `save_to_disk` folder, or one that holds Parquet files (also under data/)."""
    marks = ("dataset_dict.json", "state.json", "dataset_info.json")
    return path.is_dir() and (any((path / mark).exists() for mark in marks) or bool(_parquet_files(path)))


def hf_tables(path: Path, *, split: str | None = None, labels: bool = False) -> list[RecordTable]:
    """One table per data file; `split` keeps only its own."""
    files = _files(path)
    if not files:
        raise DataError(f"{path}: expected a folder of Hugging Face datasets with .arrow or .parquet files, found none")
    known = list(dict.fromkeys(name for name, _ in files if name is not None))
    if split is not None and split not in known:
        raise DataError(f"{path}: expected a split {split!r}, found {', '.join(map(str, known)) or 'no splits'}")
    seen: set[str] = set()
    return [_table(file, name, labels, seen) for name, file in files if split in (None, name)]


def _files(path: Path) -> list[tuple[str | None, Path]]:
    if (path / "dataset_dict.json").exists():
        splits = _json(path / "dataset_dict.json").get("splits")
        if not isinstance(splits, list) or not all(_is_name(name) for name in splits):
            raise DataError(
                f"{path / 'dataset_dict.json'}: expected a list of splits, folders in this one, got {splits!r}"
            )
        return [(name, file) for name in splits for file in _saved(path / name)]
    if (path / "state.json").exists():
        split = _json(path / "state.json").get("_split")
        return [(split if isinstance(split, str) else None, file) for file in _saved(path)]
    found = [(_SHARD.match(file.stem), file) for file in _parquet_files(path)]
    return [(match["split"] if match else None, file) for match, file in found]


def _saved(folder: Path) -> list[Path]:
    """The Arrow files of one split, as `state.json` names them."""
    state = _json(folder / "state.json")
    if state.get("_indices_files") or state.get("_indices_data_files"):
        raise DataError(f"{folder}: expected a dataset without an index file: call flatten_indices() before saving it")
    told = state.get("_data_files")
    named: list[Any] = [
        item.get("filename") if isinstance(item, dict) else None for item in (told if isinstance(told, list) else ())
    ]
    if not named or not all(_is_name(name) for name in named):
        raise DataError(f"{folder / 'state.json'}: expected the names of data files in this folder, got {told!r}")
    return [folder / name for name in named]


def _is_name(name: object) -> bool:
    """A plain name, which leads nowhere else."""
    if not isinstance(name, str) or any(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in name):
        return False
    return name not in ("", ".", "..") and Path(name).name == name


def _parquet_files(path: Path) -> list[Path]:
    return sorted([*path.glob("*.parquet"), *path.glob("data/*.parquet")])


def _table(file: Path, split: str | None, labels: bool, seen: set[str]) -> RecordTable:
    schema = _guard(file, lambda: _open(file)[0])
    refuse_twice(schema, file)
    names = _class_names(schema)
    read = partial(_read, file, names)
    return RecordTable(file, schema.names, read, known=KNOWN, split=split, labels=labels, seen=seen)


def _read(file: Path, names: Mapping[str, list[str]]) -> Iterator[Records]:
    _, batches, rows = _guard(file, lambda: _open(file))
    size, done = file.stat().st_size, 0
    while (batch := _guard(file, lambda: _checked(next(batches, None)))) is not None:
        for begin in range(0, len(batch), BATCH_RECORDS):
            part = pa.Table.from_batches([batch.slice(begin, BATCH_RECORDS)])
            numbers = np.arange(done + 1, done + 1 + len(part))
            done += len(part)
            yield Records(_named(part, names, file), numbers, [], size * done // max(rows or done, 1))


def _checked(batch: pa.RecordBatch | None) -> pa.RecordBatch | None:
    """Arrow trusts its files; one with a damaged offset would read memory that is not its own."""
    if batch is not None:
        batch.validate(full=True)
    return batch


def _open(file: Path) -> tuple[pa.Schema, Iterator[pa.RecordBatch], int | None]:
    """Schema, batches, and the number of records where the file says it."""
    if file.suffix == ".parquet":
        parquet = pq.ParquetFile(file)
        return parquet.schema_arrow, parquet.iter_batches(BATCH_RECORDS, use_threads=False), parquet.metadata.num_rows
    source = pa.memory_map(str(file))
    try:
        stream = pa.ipc.open_stream(source)
        return stream.schema, iter(stream), None
    except pa.ArrowInvalid:
        whole = pa.ipc.open_file(source)
        return whole.schema, (whole.get_batch(index) for index in range(whole.num_record_batches)), None


def _class_names(schema: pa.Schema) -> dict[str, list[str]]:
    """Column -> names of its classes, from what the library notes in the schema."""
    try:
        info = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
        features = info.get("info", {}).get("features", {})
    except (ValueError, AttributeError):
        return {}
    found = {}
    for column, feature in (features or {}).items():
        inner = feature.get("feature", feature) if isinstance(feature, dict) else {}
        if isinstance(inner, dict) and inner.get("_type") == "ClassLabel" and isinstance(inner.get("names"), list):
            found[column] = [str(name) for name in inner["names"]]
    return found


def _named(table: pa.Table, names: Mapping[str, list[str]], file: Path) -> pa.Table:
    for column, classes in names.items():
        if column in table.column_names:
            index = table.schema.get_field_index(column)
            table = table.set_column(index, column, _with_names(table[column], classes, column, file))
    return table


def _with_names(column: pa.ChunkedArray, classes: list[str], name: str, file: Path) -> pa.Array:
    array = column.combine_chunks()
    listed = pa.types.is_list(array.type)
    ids = array.flatten() if listed else array
    if not pa.types.is_integer(ids.type):
        return array
    known = ids.cast(pa.int64())
    low, high = (pc.min_max(known)[end].as_py() for end in ("min", "max"))
    if low is not None and (low < -1 or high >= len(classes)):  # the library writes -1 for "no class"
        raise DataError(f"{file}: column {name!r}: expected classes 0 to {len(classes) - 1}, got {low} to {high}")
    names = pa.array(classes, pa.string()).take(pc.if_else(pc.less(known, 0), pa.scalar(None, pa.int64()), known))
    if not listed:
        return names
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy()
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    return pa.ListArray.from_arrays(offsets, names, mask=array.is_null())


def _json(file: Path) -> dict[str, Any]:
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{file}: expected a JSON object: {error}") from error
    if not isinstance(value, dict):
        raise DataError(f"{file}: expected a JSON object, got {type(value).__name__}")
    return value


def _guard(file: Path, read: Callable[[], Any]) -> Any:
    try:
        return read()
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{file}: expected a whole Arrow or Parquet file: {reason}") from error
