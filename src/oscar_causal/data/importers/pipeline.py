"""From long tables (`formats` makes them of everything else) to a dataset folder, larger than memory if need be.

Pass one parses every row and spills it by sequence; pass two assembles the sequences of one partition after the other
and brings them back into the order of their first appearance. The dataset appears whole or not at all.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from oscar_causal.data.importers.assemble import Assembled, assemble
from oscar_causal.data.importers.events import EventRows
from oscar_causal.data.importers.formats import Source, open_source
from oscar_causal.data.importers.grouping import Group, Plan, Problem
from oscar_causal.data.importers.labels import LabelRows
from oscar_causal.data.importers.merge import Merger
from oscar_causal.data.importers.names import read_names
from oscar_causal.data.importers.options import ImportOptions, ImportSummary
from oscar_causal.data.importers.places import Places
from oscar_causal.data.importers.rejects import BadRow, Rejects
from oscar_causal.data.importers.roles import event_roles, label_roles
from oscar_causal.data.writer import DatasetWriter, dataset_writer
from oscar_causal.errors import DataError

MOST_PARTITIONS = 256
UNPACKED = 8
"""How many times larger a packed file is taken to be when unpacked."""
READING_SHARE = 60
"""Percent of the progress bar given to pass one."""


def import_tables(
    files: Sequence[Path | str],
    out: Path | str,
    options: ImportOptions | None = None,
    *,
    force: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> ImportSummary:
    """Turn long tables, or logs of another format (`formats`), into a dataset folder at `out`.

    Events are sorted by time inside a sequence, ties keep the order of the files; sequences keep the order of their
    first appearance. `on_progress` is called with (percent, 100).

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as place:
    ...     _ = Path(place, "codes.csv").write_text("car,time,code\\nc1,0,P0A1F\\nc1,60,U0428\\n")
    ...     _ = Path(place, "patterns.csv").write_text("car,label\\nc1,steering degraded\\n")
    ...     options = ImportOptions(labels=Path(place, "patterns.csv"))
    ...     import_tables([f"{place}/codes.csv"], f"{place}/fleet", options).labels
    {'steering degraded': 1}
    """
    progress = on_progress or (lambda done, total: None)
    source = open_source(files, options or ImportOptions())
    given = read_names(source.options.names) if source.options.names is not None else {}
    names = {**source.names, **given}
    with dataset_writer(out, force=force) as writer:
        job = _Import(source, writer)
        job.run(progress)
        if names:
            writer.write_names(names)
        shutil.rmtree(job.folder)
        summary = job.summary(Path(out))
        writer.describe(imported=job.provenance())
        info = writer.finish()
    return ImportSummary(**summary, digest=info["digest"])


class _Import:
    """One import under way: roles, spills, counts."""

    def __init__(self, source: Source, writer: DatasetWriter) -> None:
        self.source, self.writer = source, writer
        self.options, self.tables, self.label_table = source.options, source.tables, source.labels
        options, tables, labels = self.options, self.tables, self.label_table
        self.folder = writer.folder / "spill"
        self.rejects = Rejects(writer.folder, strict=not options.skip_bad_rows)
        self.roles = event_roles(tables, labels, options)
        self.label_roles = label_roles(labels, tables[0], self.roles, options) if labels is not None else None
        self.partitions = _partitions([Path(table.name) for table in tables], options.chunk_mb)
        self.rows = EventRows(self.roles, options, self.partitions)
        self.label_places = Places()
        self.dropped: list[Problem] = []
        self.left_out = 0
        self.counts: dict[str, int] = {}
        self.events = self.sequences = 0
        self.event_names: set[str] = set()
        self._subjects: list[pa.Array] = []

    def run(self, progress: Callable[[int, int], None]) -> None:
        """Both passes."""
        total = max(sum(Path(table.name).stat().st_size for table in self.tables), 1)
        try:
            self.rows.read(
                self.tables,
                self.folder / "events",
                self.rejects,
                lambda done: progress(min(done, total) * READING_SHARE // total, 100),
            )
            merger = self._assemble_all(progress)
            self._note_dropped()
        finally:
            self.rejects.close()
        for table in merger.tables():
            self._count(table)
            self.writer.write(table, where="import")
        progress(100, 100)

    def _assemble_all(self, progress: Callable[[int, int], None]) -> Merger:
        if self.rows.spill is None or self.rows.clock is None:
            raise DataError(f"{self.tables[0].name}: expected at least one row with an event, got {self._nothing()}")
        labels = self._read_labels()
        plan = Plan(self.rows.clock, self.roles, self.label_roles, self.options.keep_origin, self.options.gap)
        merger = Merger(self.folder / "sequences")
        problems: list[Problem] = []
        for index in range(self.partitions):
            rows = labels.spill.read(index) if labels is not None and labels.spill is not None else None
            done = assemble(Group(self.rows.spill.read(index).combine_chunks(), rows, plan))
            problems += [min(done.problems)] if self.rejects.strict and done.problems else done.problems
            self._keep(done, merger)
            progress(READING_SHARE + (95 - READING_SHARE) * (index + 1) // self.partitions, 100)
        self.rejects.add([self._bad_row(problem) for problem in sorted(problems)])
        if not self.sequences:
            raise DataError(f"{self.tables[0].name}: expected at least one sequence with events, got none")
        return merger

    def _nothing(self) -> str:
        """None, and why, where all rows were put aside."""
        if not self.rejects.count:
            return "none"
        return f"none among {self.rejects.count:,} bad ones, the first: {self.rejects.first[0]}"

    def _read_labels(self) -> LabelRows | None:
        if self.label_table is None or self.label_roles is None or self.rows.clock is None:
            return None
        labels = LabelRows(self.label_roles, self.options, self.rows.clock, self.partitions)
        self.label_places = labels.places
        labels.read(self.label_table, self.folder / "labels", self.rejects)
        return labels

    def _keep(self, done: Assembled, merger: Merger) -> None:
        merger.add(done.table, done.first)
        self.dropped += done.dropped
        self.left_out += done.left_out
        self.sequences += len(done.table)

    def _note_dropped(self) -> None:
        if self.dropped:
            self.rejects.note([self._bad_row(problem) for problem in sorted(self.dropped)])

    def _bad_row(self, problem: Problem) -> BadRow:
        places = self.label_places if problem.in_labels else self.rows.places
        return BadRow(*places.find(problem.ordinal), problem.column, problem.problem, problem.text)

    def _count(self, table: pa.Table) -> None:
        events, labels = table["events"].combine_chunks(), table["labels"].combine_chunks()
        self.events += len(events.flatten())
        self.event_names |= set(events.flatten().unique().to_pylist())
        for item in labels.flatten().value_counts().to_pylist():
            self.counts[item["values"]] = self.counts.get(item["values"], 0) + item["counts"]
        self._subjects.append(table["subject_id"].combine_chunks())

    def summary(self, out: Path) -> dict[str, Any]:
        """The fields of ImportSummary, but for the digest."""
        return {
            "out": str(out),
            "sequences": self.sequences,
            "subjects": int(pc.count_distinct(pa.chunked_array(self._subjects)).as_py()),
            "events": self.events,
            "event_types": len(self.event_names),
            "labels": dict(sorted(self.counts.items())),
            "rows": self.rows.places.rows,
            "rejected": self.rejects.count,
            "first_rejected": tuple(self.rejects.first),
            "dropped_by_gap": len(self.dropped),
            "events_left_out": self.left_out,
        }

    def provenance(self) -> dict[str, Any]:
        """What `dataset.json` says about the import; file names without their folders."""
        assert self.rows.clock is not None
        files = [Path(table.name).name for table in self.tables]
        labels = Path(self.label_table.name).name if self.label_table is not None else None
        return {
            "format": self.source.format,
            "files": files,
            "labels": labels,
            "rows": self.rows.places.rows,
            "rejected": self.rejects.count,
            "dropped_by_gap": len(self.dropped),
            "events_left_out": self.left_out,
            "gap": self.options.gap,
            "time_unit": self.rows.clock.unit,
            "keep_origin": self.options.keep_origin,
            "columns": {key: value for key, value in asdict(self.roles).items() if key != "attributes"},
        }


def _partitions(files: Sequence[Path], chunk_mb: int) -> int:
    size = 0
    for file in files:
        packed = file.suffix.lower() in (".gz", ".parquet", ".pq")
        size += file.stat().st_size * (UNPACKED if packed else 1)
    return min(max(-(-size // (chunk_mb << 20)), 1), MOST_PARTITIONS)
