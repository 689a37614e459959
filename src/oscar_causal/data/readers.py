"""Files of other tools as a `Dataset` in memory: what `oscar import` writes to disk, for notebooks."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from oscar_causal.data.importers import ImportOptions, import_tables
from oscar_causal.data.sequences import Dataset, from_table
from oscar_causal.data.stream import read_info, stream_tables


def read_long(files: Path | str | Sequence[Path | str], options: ImportOptions | None = None) -> Dataset:
    """Long tables (CSV, JSON lines, Parquet), or any other format `oscar import` knows, as a dataset in memory.

    Columns are found by their usual names or named in `options`; the first bad row is a DataError that names it.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = Path(folder) / "codes.csv"
    ...     _ = table.write_text("car,time,code\\nc1,0,P0A1F\\nc1,60,U0428\\n")
    ...     read_long(table).events_of(0)
    ['P0A1F', 'U0428']
    """
    paths = [files] if isinstance(files, Path | str) else list(files)
    with tempfile.TemporaryDirectory(prefix="oscar-") as folder:
        out = Path(folder) / "dataset"
        import_tables(paths, out, options)
        return replace(from_table(pa.concat_tables(stream_tables(out))), info=read_info(out))


def read_xes(file: Path | str, options: ImportOptions | None = None) -> Dataset:
    """An XES log as a dataset in memory; a trace is a sequence.

    `ImportOptions(labels=file, label_column="case:outcome")` makes an attribute of the trace the outcome.

    >>> log = (
    ...     '<log><trace><string key="concept:name" value="case 1"/><event><string key="concept:name" value="bill"/>'
    ...     '<date key="time:timestamp" value="2024-05-01T10:00:00Z"/></event></trace></log>'
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "log.xes").write_text(log)
    ...     read_xes(Path(folder, "log.xes")).events_of(0)
    ['bill']
    """
    return read_long(file, replace(options or ImportOptions(), format="xes"))


def read_meds(
    folder: Path | str,
    *,
    labels: Path | str | None = None,
    split: str | None = None,
    options: ImportOptions | None = None,
) -> Dataset:
    """A MEDS dataset as a dataset in memory; needs the extra `meds`.

    `labels` is a task: a Parquet file, or a folder of shards or of several tasks. With it each (subject, prediction
    time) is a sequence of the events at or before that time; without it each subject is one. `split` keeps one split.
    """
    given = options or ImportOptions()
    task = Path(labels) if labels is not None else given.labels
    return read_long(folder, replace(given, format="meds", labels=task, split=split or given.split))
