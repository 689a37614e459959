"""A dataset as MEDS: one MEDS subject per sequence, one task per label.

MEDS subjects are numbers and have one timeline each, so sequences are numbered from 0 in their order and their names
kept in `metadata/oscar_sequences.parquet`, which the importer reads. What MEDS cannot say is lost: times are rounded to
microseconds, a sequence without a start begins at 1970-01-01, labels lose their order and their times, and unlabelled
sequences are left out of an import with labels. The prediction time is that of the last event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from oscar_causal.data.extras import load_extra
from oscar_causal.data.folders import new_folder, read_json, write_json
from oscar_causal.data.importers.meds_folder import OWN_NAMES
from oscar_causal.data.importers.meds_labels import TASK_KEY
from oscar_causal.data.importers.names import check_notes
from oscar_causal.data.stream import channels_in, read_info, sequence_files, stream_tables
from oscar_causal.data.validate import list_offsets, one_array
from oscar_causal.errors import DataError

SPLIT = "split"
"""The static key that becomes the split of a subject."""
LONGEST_NAME = 120
MICROSECONDS = 1_000_000
OnProgress = Callable[[int, int], None]
Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class MedsSummary:
    """What was written; `oscar import FOLDER --labels LABELS` reads it."""

    folder: Path
    labels: Path | None
    event_rows: int
    label_rows: int


def export_meds(
    source: Path | str, out: Path | str, *, force: bool = False, on_progress: OnProgress | None = None
) -> MedsSummary:
    """Write the dataset at `source` as a MEDS dataset with its tasks under `labels/`."""
    meds = load_extra("meds", "writing MEDS")
    source, out, info = Path(source), Path(out), read_info(source)
    check_notes(source)
    progress = on_progress or (lambda done, total: None)
    with new_folder(out, force=force) as folder:
        job = _Export(folder, meds, source, channels_in(sequence_files(source)))
        for done in job.write_all():
            progress(done, int(info["sequences"]))
        job.finish()
    return MedsSummary(out, out / "labels" if job.tasks else None, job.event_rows, job.label_rows)


class _Export:
    """One export under way."""

    def __init__(self, folder: Path, meds: Any, source: Path, channels: tuple[str, ...]) -> None:
        self._folder, self._meds, self._source, self._channels = folder, meds, source, channels
        self.tasks = _label_names(source)
        self.event_rows = self.label_rows = 0
        self._codes: set[str] = set()
        self._writers: dict[Path, pq.ParquetWriter] = {}
        reserved = set(meds.DataSchema.schema().names) - {"numeric_value"}
        clash = [name for name in channels if name in reserved]
        if clash:
            raise DataError(f"export: expected channels unlike the columns of MEDS, got {clash[0]!r}")

    def write_all(self) -> Iterator[int]:
        """Write table after table; gives the sequences done."""
        done = 0
        try:
            for table in stream_tables(self._source):
                subjects = np.arange(done, done + len(table))
                self._write_events(table, subjects)
                self._write_labels(table, subjects)
                self._write_names(table, subjects)
                done += len(table)
                yield done
        finally:
            for writer in self._writers.values():
                writer.close()

    def finish(self) -> None:
        """Write what describes the whole."""
        described = {}
        if (self._source / "names.json").exists():
            described = read_json(self._source / "names.json")
        codes = sorted(self._codes)
        table = pa.table({"code": codes, "description": pa.array([described.get(c) for c in codes], pa.string())})
        pq.write_table(self._meds.CodeMetadataSchema.align(table), self._folder / self._meds.code_metadata_filepath)
        metadata = {"meds_version": self._meds.__version__, "etl_name": "oscar export"}
        write_json(self._folder / self._meds.dataset_metadata_filepath, metadata)

    def _write_events(self, table: pa.Table, subjects: Int64) -> None:
        timed, static, splits = self._timed(table, subjects), *self._static(table, subjects)
        rows = pa.concat_tables([static.cast(timed.schema), timed])
        order = np.lexsort((np.arange(len(rows)), rows["subject_id"].to_numpy()))
        self._append(Path(self._meds.data_subdirectory) / "0.parquet", rows.take(pa.array(order)))
        self._codes |= set(rows["code"].unique().to_pylist())
        self.event_rows += len(timed)
        if len(splits):
            self._append(Path(self._meds.subject_splits_filepath), splits)

    def _timed(self, table: pa.Table, subjects: Int64) -> pa.Table:
        events = one_array(table["events"])
        owners = np.repeat(np.arange(len(table)), np.diff(list_offsets(events)))
        columns: dict[str, Any] = {
            "subject_id": subjects[owners],
            "time": _times(table)[1],
            "code": events.flatten(),
            "numeric_value": pa.nulls(len(owners), pa.float32()),
            "text_value": pa.nulls(len(owners), pa.large_string()),
        }
        for name in self._channels:
            values = one_array(table[name]).flatten()
            columns[name] = pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)
        return pa.table(columns)

    def _static(self, table: pa.Table, subjects: Int64) -> tuple[pa.Table, pa.Table]:
        """Rows without a time, and splits."""
        rows = one_array(table["static"]).to_pylist() if "static" in table.column_names else [None] * len(table)
        found = [(int(s), key, text) for s, pairs in zip(subjects, rows, strict=True) for key, text in pairs or []]
        facts = [item for item in found if item[1] != SPLIT]
        nothing = pa.nulls(len(facts), pa.float32())
        columns: dict[str, Any] = {
            "subject_id": pa.array([item[0] for item in facts], pa.int64()),
            "time": pa.nulls(len(facts), pa.timestamp("us")),
            "code": pa.array([item[1] for item in facts], pa.string()),
            "numeric_value": nothing,
            "text_value": pa.array([item[2] for item in facts], pa.large_string()),
        }
        columns |= {name: nothing for name in self._channels}
        splits = {
            "subject_id": [s for s, key, _ in found if key == SPLIT],
            "split": [t for _, k, t in found if k == SPLIT],
        }
        return pa.table(columns), pa.table(splits, schema=self._meds.SubjectSplitSchema.schema())

    def _write_labels(self, table: pa.Table, subjects: Int64) -> None:
        labels = one_array(table["labels"])
        known = np.flatnonzero(labels.is_valid().to_numpy(zero_copy_only=False))
        last = pa.array(_times(table)[2][known]).cast(pa.timestamp("us"))
        lists = [set(names) for names in labels.take(pa.array(known)).to_pylist()]
        for index, task in enumerate(self.tasks if len(known) else ()):
            columns = {
                "subject_id": subjects[known],
                "prediction_time": last,
                "boolean_value": [task in n for n in lists],
            }
            rows = pa.table(columns).replace_schema_metadata({TASK_KEY: task.encode()})
            self._append(Path("labels") / _file_name(task, index) / "0.parquet", rows)
            self.label_rows += len(rows)

    def _write_names(self, table: pa.Table, subjects: Int64) -> None:
        columns = {"subject_id": subjects, "sequence": table["sequence_id"], "subject": table["subject_id"]}
        starts = pa.array(_times(table)[0]).cast(pa.timestamp("us", "UTC"))
        self._append(OWN_NAMES, pa.table({**columns, "start": starts}))

    def _append(self, path: Path, table: pa.Table) -> None:
        if path not in self._writers:
            (self._folder / path).parent.mkdir(parents=True, exist_ok=True)
            self._writers[path] = pq.ParquetWriter(self._folder / path, table.schema, compression="zstd")
        self._writers[path].write_table(table)


def _times(table: pa.Table) -> tuple[Int64, pa.Array, Int64]:
    """Start of each sequence, time of each event, time of each last event; microseconds since 1970."""
    starts = pc.fill_null(one_array(table["start"]).cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    column = one_array(table["times"])
    offsets = list_offsets(column)
    since = column.flatten().to_numpy(zero_copy_only=False) * MICROSECONDS
    if len(since) and since.max() > 2.0**62:
        raise DataError("export: expected times that fit a timestamp (292,000 years), got a later one")
    moments = np.repeat(starts, np.diff(offsets)) + np.rint(since).astype(np.int64)
    return starts, pa.array(moments).cast(pa.timestamp("us")), moments[offsets[1:] - 1]


def _label_names(source: Path) -> list[str]:
    names: set[str] = set()
    for table in stream_tables(source):
        names |= set(one_array(table["labels"]).flatten().unique().to_pylist())
    return sorted(names)


def _file_name(task: str, index: int) -> str:
    """A folder's name for a task; long ones are cut and numbered (the schema keeps the full name).

    >>> _file_name("sepsis / 24 h", 0), len(_file_name("x" * 500, 3)) < 200
    ('sepsis %2F 24 h', True)
    """
    quoted = quote(task, safe=" ")
    short = quoted if len(quoted) <= LONGEST_NAME else f"{quoted[:LONGEST_NAME]}-{index}"
    return short if short.strip(". ") else f"label-{index}"
