"""From what the user names to open tables: which format a file or folder has, and what that format settles by itself.

Every format ends up as long tables (`long_table`), so that all of them share row numbers, bad rows, options and limits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow.parquet as pq

from oscar_causal.data.importers.long_table import LongTable, RawBatch, open_table
from oscar_causal.data.importers.options import ImportOptions
from oscar_causal.data.importers.text_source import open_bytes
from oscar_causal.errors import DataError, UsageError

FORMATS = ("tables", "meds", "xes", "ocel", "easytpp", "hf")
SNIFFED = 1 << 16
_ENDINGS = {".xes": "xes", ".jsonocel": "ocel", ".xmlocel": "ocel", ".ocel": "ocel", ".sqlite": "ocel"}


@dataclass(frozen=True)
class Source:
    """An import that is about to begin."""

    format: str
    tables: Sequence[LongTable]
    labels: LongTable | None
    options: ImportOptions
    """The user's, with what the format settles filled in."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Descriptions that come with the format."""


def open_source(files: Sequence[Path | str], options: ImportOptions) -> Source:
    """Open files or folders of one format."""
    paths = [Path(file) for file in files]
    if not paths:
        raise UsageError("import: expected at least one table of events, got none")
    kind = options.format or guess_format(paths[0])
    if kind not in FORMATS:
        raise UsageError(f"--format: expected one of {', '.join(FORMATS)}, got {kind!r}")
    _refuse_foreign(kind, options)
    if kind == "meds":
        return _meds(paths, options)
    seen: set[str] = set()
    tables = [table for path in paths for table in _events(path, kind, options, seen)]
    same = options.labels is not None and options.labels in paths
    return Source(kind, tables, _labels(options, kind if same else None), _settled(kind, tables[0], options))


def guess_format(path: Path) -> str:
    """The format of a file or folder, by its name and, where that says too little, its first bytes."""
    if path.is_dir():
        from oscar_causal.data.importers.hf_datasets import is_hf_folder
        from oscar_causal.data.importers.meds_folder import is_meds_folder

        if is_meds_folder(path):
            return "meds"
        return "hf" if is_hf_folder(path) else "tables"
    endings = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    ending = endings[-1] if endings else ""
    if ending in _ENDINGS:
        return _ENDINGS[ending]
    if ending in (".json", ".xml"):
        return _sniff(path)
    return "tables"


def _sniff(path: Path) -> str:
    from oscar_causal.data.importers.easytpp import looks_like_easytpp

    with open_bytes(path) as file:
        start = bytes(file.read(SNIFFED)).decode("utf-8", "replace")
    if start.lstrip("\ufeff \r\n\t").startswith("<"):
        return "xes" if "<trace" in start or "xes" in start else "ocel"
    if '"objectTypes"' in start or '"eventTypes"' in start:
        return "ocel"
    return "easytpp" if looks_like_easytpp(start) else "tables"


def _refuse_foreign(kind: str, options: ImportOptions) -> None:
    if options.object_type is not None and kind != "ocel":
        raise UsageError(f"--object-type: expected an OCEL log, got the format {kind}")
    if options.split is not None and kind not in ("meds", "hf"):
        raise UsageError(f"--split: expected a MEDS or Hugging Face dataset, got the format {kind}")


def _events(path: Path, kind: str, options: ImportOptions, seen: set[str]) -> Sequence[LongTable]:
    if kind == "xes":
        from oscar_causal.data.importers.xes import XesTable

        return [XesTable(path)]
    if kind == "ocel":
        from oscar_causal.data.importers.ocel import OcelTable

        return [OcelTable(path, options.object_type)]
    if kind == "easytpp":
        from oscar_causal.data.importers.easytpp import easytpp_table

        return [easytpp_table(path, options.encoding, seen)]
    if kind == "hf":
        from oscar_causal.data.importers.hf_datasets import hf_tables

        return hf_tables(path, split=options.split)
    return [open_table(path, delimiter=options.delimiter, encoding=options.encoding)]


def _labels(options: ImportOptions, known: str | None = None) -> LongTable | None:
    """The label table in its own format: traces of an XES log, objects of an OCEL log, records of a dataset."""
    path = options.labels
    if path is None:
        return None
    kind = known or guess_format(path)
    if kind == "xes":
        from oscar_causal.data.importers.xes import XesTable

        return XesTable(path, traces=True)
    if kind == "ocel":
        from oscar_causal.data.importers.ocel import OcelTable

        return OcelTable(path, options.object_type, objects=True)
    if kind == "hf":
        from oscar_causal.data.importers.hf_datasets import hf_tables

        return Chain(path, hf_tables(path, split=options.split, labels=True))
    return open_table(path, delimiter=options.delimiter, encoding=options.encoding)


def _settled(kind: str, first: LongTable, options: ImportOptions) -> ImportOptions:
    if kind == "easytpp":
        options = replace(options, keep_origin=True)
    if "split" in first.header and kind in ("easytpp", "hf") and "split" not in options.static:
        options = replace(options, static=(*options.static, "split"))
    return options


class Chain:
    """Tables with the same columns as one; rows are numbered over all of them."""

    def __init__(self, path: Path, tables: Sequence[LongTable]) -> None:
        self._tables, self.name = tables, str(path)
        self.header = tables[0].header
        self.known: Mapping[str, str] = getattr(tables[0], "known", {})

    def batches(self, columns: Sequence[str]) -> Iterator[RawBatch]:
        """The rows of all tables."""
        base = 0
        for table in self._tables:
            last = 0
            for batch in table.batches(columns):
                last = max([last, *batch.rows[-1:].tolist(), *(bad.row for bad in batch.broken)])
                yield replace(batch, rows=batch.rows + base)
            base += last


def _meds(paths: Sequence[Path], options: ImportOptions) -> Source:
    from oscar_causal.data.importers.meds import START, Cohort, MedsTable, static_facts
    from oscar_causal.data.importers.meds_folder import is_meds_labels, open_meds
    from oscar_causal.data.importers.meds_labels import MedsLabels

    if len(paths) > 1:
        raise UsageError(f"import: expected one MEDS dataset at a time, got {len(paths)}")
    folder = open_meds(paths[0])
    facts, splits = static_facts(folder, options.static), folder.splits()
    if options.split is not None and options.split not in splits.values():
        found = ", ".join(sorted(set(splits.values()))) or "no splits"
        raise DataError(f"{paths[0]}: expected a split {options.split!r}, found {found}")
    if splits:
        facts.values["split"] = splits
    chosen = None if options.split is None else frozenset(s for s, name in splits.items() if name == options.split)
    cohort = Cohort(None, facts, chosen, folder.own_names())
    labels: LongTable | None = None
    if options.labels is not None and is_meds_labels(options.labels):
        labels = MedsLabels(options.labels, folder, cohort.sequence, chosen)
        cohort = replace(cohort, pairs=labels.pairs())
        cohort.refuse_second_times(options.labels)
        options = replace(options, label_column="label")
    elif options.labels is not None:
        labels = _labels(options)
    tables = [MedsTable(file, folder, cohort) for file in folder.data_files]
    channels = options.channels or (("numeric_value",) if _has_numbers(folder.data_files) else ())
    settled = replace(options, time_unit="timestamp", static=tuple(facts.values), channels=channels)
    if cohort.own and settled.start_column is None:
        settled = replace(settled, start_column=START)
    return Source("meds", tables, labels, settled, folder.descriptions())


def _has_numbers(files: Sequence[Path]) -> bool:
    """Does some shard hold a number?"""
    for file in files:
        with pq.ParquetFile(file) as parquet:
            names = [parquet.schema.column(index).name for index in range(len(parquet.schema))]
            if "numeric_value" not in names:
                continue
            column = names.index("numeric_value")
            for group in range(parquet.metadata.num_row_groups):
                part = parquet.metadata.row_group(group)
                stored = part.column(column).statistics
                if stored is None or stored.null_count is None or stored.null_count < part.num_rows:
                    return True
    return False
