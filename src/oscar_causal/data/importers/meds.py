"""MEDS, the Medical Event Data Standard: codes become events, `numeric_value` a channel, codes without a time static.

Without labels a subject is a sequence. With labels (`meds_labels`) each (subject, prediction time) is one, of the
events at or before that time; subjects nobody asked about are left out. Codes without a time become static keys with
their text, number or `yes` as value; `split` is one more. Text of timed events is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from oscar_causal.data.importers.long_table import RawBatch
from oscar_causal.data.importers.meds_folder import MedsFolder, Own, batches, guard, microseconds
from oscar_causal.data.importers.meds_labels import sequence_name
from oscar_causal.data.importers.parquet_table import plain
from oscar_causal.data.importers.rejects import BadRow, Int64, Mask, shown
from oscar_causal.data.validate import one_array
from oscar_causal.errors import DataError, UsageError

KNOWN = {"sequence_id": "sequence_id", "time": "time", "event": "code"}
COLUMNS = ("sequence_id", "subject_id", "time", "code")
NUMBER = "numeric_value"
START = "oscar_start"
"""The column of time zero, in what `oscar export` wrote."""
MOST_STATIC = 100
"""More different codes without a time than this must be chosen from with --static."""


@dataclass
class Facts:
    """What is known of whole subjects: static code -> subject -> value, and rows that contradict others."""

    values: dict[str, dict[int, str]] = field(default_factory=dict)
    broken: dict[Path, list[BadRow]] = field(default_factory=dict)

    def add(self, code: str, subject: int, value: str, file: Path, row: int) -> None:
        before = self.values.setdefault(code, {}).setdefault(subject, value)
        if before != value:
            problem = f"expected {shown(before)} as before for {shown(code)} of subject {subject}, got {shown(value)}"
            self.broken.setdefault(file, []).append(BadRow(str(file), row, "code", problem, value))


@dataclass(frozen=True)
class Cohort:
    """What all shards of a dataset share."""

    pairs: Int64 | None
    """(P, 2) sorted sequences (subject, prediction time); None: a subject is a sequence."""
    facts: Facts
    chosen: frozenset[int] | None = None
    """Subjects of the wanted split; None: all."""
    own: dict[int, Own] | None = None
    """Names by MEDS subject, in what `oscar export` wrote."""

    def refuse_second_times(self, labels: Path) -> None:
        """In what `oscar export` wrote a subject is one sequence and keeps its name: it has one prediction time."""
        if self.own is None or self.pairs is None:
            return
        subjects = self.pairs[:, 0]  # sorted
        again = subjects[1:][subjects[1:] == subjects[:-1]]
        if len(again):
            expected = "one prediction time per subject of an exported dataset"
            raise DataError(f"{labels}: expected {expected}, got several for subject {int(again[0])}")

    def sequence(self, subject: int, time: int) -> str:
        """The id of the sequence that ends at a prediction time."""
        return self.own[subject].sequence if self.own and subject in self.own else sequence_name(subject, time)

    def whole(self, subject: int) -> str:
        """The id of the sequence of all events of a subject."""
        return self.own[subject].sequence if self.own and subject in self.own else str(subject)

    def subject(self, subject: int) -> str:
        """The name of a subject."""
        return self.own[subject].subject if self.own and subject in self.own else str(subject)


class MedsTable:
    """One shard as a `LongTable`; the row of a message is the row of the shard."""

    known = KNOWN

    def __init__(self, file: Path, folder: MedsFolder, cohort: Cohort) -> None:
        self._file, self._folder, self._cohort = file, folder, cohort
        self.name = str(file)
        stored = guard(file, lambda: pq.read_schema(file))
        extra = [item.name for item in stored if item.name not in COLUMNS and not pa.types.is_nested(item.type)]
        clash = [name for name in cohort.facts.values if name in (*COLUMNS, *extra)]
        if clash:
            raise DataError(f"{file}: expected static codes unlike the columns of MEDS, got {clash[0]!r}")
        self._stored = [name for name in extra if name != "text_value"]
        optional = [NUMBER] if NUMBER not in extra else []
        self.header = [*COLUMNS, *self._stored, *optional, *cohort.facts.values, *([START] if cohort.own else [])]

    def batches(self, columns: Sequence[str]) -> Iterator[RawBatch]:
        """The timed rows of the cohort; a row stands in every sequence of its subject that may use it."""
        needed = ["subject_id", "time", "code", *(name for name in columns if name in self._stored)]
        size, broken = self._file.stat().st_size, self._cohort.facts.broken.get(self._file, [])
        total = guard(self._file, lambda: pq.read_metadata(self._file)).num_rows
        for table, first in batches(self._file, self._folder.meds.DataSchema, needed):
            yield self._batch(table, columns, first, broken, size * (first + len(table)) // max(total, 1))
            broken = []

    def _batch(self, table: pa.Table, columns: Sequence[str], first: int, broken: list[BadRow], at: int) -> RawBatch:
        nobody = one_array(table["subject_id"].is_null()).to_numpy(zero_copy_only=False)
        subjects = np.asarray(table["subject_id"].fill_null(-1).to_numpy(), np.int64)
        timed = ~one_array(table["time"].is_null()).to_numpy(zero_copy_only=False)
        lost = [
            BadRow(self.name, first + int(row), "subject_id", "expected a subject, got nothing", "")
            for row in np.flatnonzero(timed & nobody)
        ]
        keep = timed & ~nobody & self._wanted(subjects)
        rows, names = self._sequences(subjects, microseconds(table["time"]), np.flatnonzero(keep))
        taken = table.take(pa.array(rows))
        owners = subjects[rows]
        people = pa.array([self._cohort.subject(int(subject)) for subject in owners], pa.string())
        cells = {"sequence_id": names, "subject_id": people}
        for name in columns:
            if name in self._cohort.facts.values:
                known = self._cohort.facts.values[name]
                cells[name] = pa.array([known.get(int(subject)) for subject in owners], pa.string())
            elif name == START:
                cells[name] = self._starts(owners)
            elif name == NUMBER and name not in self._stored:
                cells[name] = pa.nulls(len(owners), pa.float32())
            elif name not in cells:
                cells[name] = plain(one_array(taken[name]))
        return RawBatch({name: cells[name] for name in columns}, rows + first, [*broken, *lost], at)

    def _wanted(self, subjects: Int64) -> Mask:
        if self._cohort.chosen is None:
            return np.ones(len(subjects), bool)
        return np.isin(subjects, np.fromiter(self._cohort.chosen, np.int64, len(self._cohort.chosen)))

    def _sequences(self, subjects: Int64, times: Int64, rows: Int64) -> tuple[Int64, pa.Array]:
        """Rows, each as often as it is used, and the sequence it then belongs to."""
        pairs = self._cohort.pairs
        if pairs is None:
            whole = [self._cohort.whole(int(subjects[row])) for row in rows]
            return rows, pa.array(whole, pa.string())
        moments = np.unique(pairs[:, 1])
        width = len(moments) + 1
        people = np.unique(pairs[:, 0])
        keys = np.searchsorted(people, pairs[:, 0]) * width + np.searchsorted(moments, pairs[:, 1])
        known = rows[np.isin(subjects[rows], people)]
        person = np.searchsorted(people, subjects[known])
        begin = np.searchsorted(keys, person * width + np.searchsorted(moments, times[known]))
        counts = np.searchsorted(keys, (person + 1) * width) - begin
        index = np.repeat(begin - (np.cumsum(counts) - counts), counts) + np.arange(int(counts.sum()))
        names = [self._cohort.sequence(int(subject), int(time)) for subject, time in pairs]
        return np.repeat(known, counts), pa.array(names, pa.string()).take(pa.array(index))

    def _starts(self, owners: Int64) -> pa.Array:
        own = self._cohort.own or {}
        found = [own[int(subject)].start if int(subject) in own else None for subject in owners]
        return pa.array(found, pa.timestamp("us", "UTC"))


def static_facts(folder: MedsFolder, wanted: Sequence[str] = ()) -> Facts:
    """The codes without a time of all shards; `wanted` = only these."""
    facts = Facts()
    for file in folder.data_files:
        columns = ["subject_id", "time", "code", "numeric_value", "text_value"]
        for table, first in batches(file, folder.meds.DataSchema, columns):
            rows = np.flatnonzero(one_array(table["time"].is_null()).to_numpy(zero_copy_only=False))
            for row, item in zip(rows.tolist(), table.take(pa.array(rows)).to_pylist(), strict=True):
                _add_fact(facts, item, file, row + first, wanted)
    if len(facts.values) > MOST_STATIC:
        raise UsageError(
            f"{folder.path}: {len(facts.values):,} different codes have no time: choose those to keep with --static"
        )
    return facts


def _add_fact(facts: Facts, item: dict[str, object], file: Path, row: int, wanted: Sequence[str]) -> None:
    code, subject = item["code"], item["subject_id"]
    if not code or subject is None:
        column = "subject_id" if subject is None else "code"
        facts.broken.setdefault(file, []).append(BadRow(str(file), row, column, "expected a value, got nothing", ""))
        return
    if wanted and code not in wanted:
        return
    number = item.get("numeric_value")
    value = item.get("text_value") or (f"{number:g}" if number is not None else "yes")
    facts.add(str(code), int(str(subject)), str(value), file, row)
