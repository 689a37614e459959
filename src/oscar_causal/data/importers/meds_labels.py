"""MEDS labels: for a subject and a prediction time, what came true of each task.

Data up to and including the prediction time may be used, so (subject, prediction time) is a sequence. A task is a file
or a folder of shards, and gives the label its name: `task` where `boolean_value` is true, `task=VALUE` for a whole
number or a category. With several tasks every sequence needs a value in each: "not asked" is not "did not come".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from oscar_causal.data.importers.long_table import RawBatch
from oscar_causal.data.importers.meds_folder import MedsFolder, batches, guard, microseconds
from oscar_causal.data.importers.rejects import BadRow, Int64
from oscar_causal.errors import DataError

VALUES = ("boolean_value", "integer_value", "categorical_value")
TASK_KEY = b"oscar.task"
"""Where the schema of an exported file keeps the task's full name."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Pair = tuple[int, int]
"""(subject, prediction time in microseconds since 1970)"""
NameOf = Callable[[int, int], str]
"""The sequence id of a pair."""


@dataclass(frozen=True)
class LabelRow:
    """One row of a label file."""

    pair: Pair
    task: str
    label: str | None
    file: str
    row: int


class MedsLabels:
    """The label files of a dataset as a `LongTable`; rows are numbered over all files in their order."""

    known = {"sequence_id": "sequence_id", "label": "label"}

    def __init__(self, path: Path, folder: MedsFolder, name_of: NameOf, chosen: frozenset[int] | None = None) -> None:
        self.name, self._name_of, self._chosen = str(path), name_of, chosen
        self.header = ["sequence_id", "label"]
        self.broken: list[BadRow] = []
        rows: list[LabelRow] = []
        for task, file in _task_files(path, folder):
            rows += self._read(file, task, folder)
        self._rows = self._complete(rows)

    def pairs(self) -> Int64:
        """The sequences, (P, 2): subject and prediction time, sorted, each once."""
        found = sorted({row.pair for row in self._rows})
        return np.array(found, np.int64).reshape(-1, 2)

    def batches(self, columns: Sequence[str]) -> Iterator[RawBatch]:
        """All rows at once: label tables are small beside the data."""
        cells = {
            "sequence_id": pa.array([self._name_of(*row.pair) for row in self._rows], pa.string()),
            "label": pa.array([row.label for row in self._rows], pa.string()),
        }
        numbers = np.arange(1, len(self._rows) + 1)
        yield RawBatch({name: cells[name] for name in columns}, numbers, self.broken)

    def _read(self, file: Path, task: str, folder: MedsFolder) -> Iterator[LabelRow]:
        for table, first in batches(file, folder.meds.LabelSchema):
            column = _value_column(table, file)
            subjects, values = table["subject_id"].to_pylist(), table[column].to_pylist()
            times = microseconds(table["prediction_time"])
            timeless = table["prediction_time"].is_null().to_pylist()
            for k, (subject, value) in enumerate(zip(subjects, values, strict=True)):
                if self._chosen is not None and subject is not None and subject not in self._chosen:
                    continue
                lacking = {"subject_id": subject is None, "prediction_time": timeless[k], column: value is None}
                empty = [name for name, bad in lacking.items() if bad]
                if empty:
                    self.broken.append(BadRow(str(file), first + k, empty[0], "expected a value, got nothing", ""))
                    continue
                label = (task if value else None) if column == "boolean_value" else f"{task}={value}"
                yield LabelRow((subject, int(times[k])), task, label, str(file), first + k)

    def _complete(self, rows: list[LabelRow]) -> list[LabelRow]:
        """The rows without second values of a task, and without sequences that lack a task."""
        tasks = {row.task for row in rows}
        seen: dict[tuple[Pair, str], LabelRow] = {}
        for row in rows:
            first = seen.setdefault((row.pair, row.task), row)
            if first is not row:
                problem = f"expected one value of task {row.task!r} for {self._name_of(*row.pair)}, got another"
                self.broken.append(BadRow(row.file, row.row, "prediction_time", problem, ""))
        asked: dict[Pair, set[str]] = {}
        for pair, task in seen:
            asked.setdefault(pair, set()).add(task)
        kept = []
        for row in seen.values():
            lacking = sorted(tasks - asked[row.pair])
            if not lacking:
                kept.append(row)
                continue
            problem = f"expected a value of task {lacking[0]!r} for {self._name_of(*row.pair)} too, got none"
            self.broken.append(BadRow(row.file, row.row, "prediction_time", problem, ""))
        return kept


def sequence_name(subject: int, time: int) -> str:
    """The id of a sequence.

    >>> sequence_name(7, 1_000_000)
    '7@1970-01-01T00:00:01'
    """
    moment = _EPOCH + timedelta(microseconds=time)
    return f"{subject}@{moment.replace(tzinfo=None).isoformat()}"


def _value_column(table: pa.Table, file: Path) -> str:
    found = [name for name in VALUES if name in table.column_names and table[name].null_count < len(table)]
    if len(found) == 1:
        return found[0]
    if len(found) > 1:
        raise DataError(f"{file}: expected one kind of value, got {', '.join(found)}")
    if "float_value" in table.column_names:
        raise DataError(f"{file}: expected {', '.join(VALUES)}, got float_value: a label is something that came or not")
    raise DataError(f"{file}: expected a column with values ({', '.join(VALUES)}), got {', '.join(table.column_names)}")


def _task_files(path: Path, folder: MedsFolder) -> list[tuple[str, Path]]:
    if path.is_file():
        return [(_task_name(path, path.stem), path)]
    inner = sorted(item for item in path.iterdir() if item.is_dir())
    tasks = [item for item in inner if item.name not in folder.shard_folders()]
    direct = sorted(path.glob("*.parquet"))
    if not tasks or direct:
        files = sorted(path.rglob("*.parquet"))
        found = [(_task_name(file, path.name), file) for file in files]
    else:
        found = [(_task_name(file, task.name), file) for task in tasks for file in sorted(task.rglob("*.parquet"))]
    if not found:
        raise DataError(f"{path}: expected label files (*.parquet), found none")
    return sorted(found)


def _task_name(file: Path, fallback: str) -> str:
    metadata: Any = guard(file, lambda: pq.read_schema(file)).metadata or {}
    return bytes(metadata[TASK_KEY]).decode() if TASK_KEY in metadata else unquote(fallback)
