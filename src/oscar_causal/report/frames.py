"""Datasets and results as pandas data frames; pandas is an extra."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from oscar_causal.data.extras import load_extra
from oscar_causal.data.sequences import Dataset
from oscar_causal.discovery.boundary import Boundary
from oscar_causal.discovery.results import boundary_table, read_table
from oscar_causal.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

DATASET_TABLES = ("events", "labels")
RESULT_TABLES = ("causes", "evidence", "verdicts")


def to_pandas(
    source: Dataset | Path | str | Boundary | Iterable[Boundary | list[Boundary]], table: str | None = None
) -> pd.DataFrame:
    """A data frame of a dataset, of boundaries (what `discover` gives), or of a results folder; needs `pandas`.

    `table` of a dataset: "events" (default, one row per event) or "labels"; of results: "causes" (default), "evidence"
    or "verdicts". Columns are those of the files (docs/formats.md).

    >>> from oscar_causal.data.sequences import from_records
    >>> data = from_records([{"sequence_id": "s", "events": ["A", "B"], "times": [0, 5], "labels": ["y"]}])
    >>> to_pandas(data)["event"].tolist(), to_pandas(data, "labels")["label"].tolist()
    (['A', 'B'], ['y'])
    """
    load_extra("pandas", "to_pandas")
    if isinstance(source, Dataset):
        wanted = _chosen(table, DATASET_TABLES)
        return _frame(_events(source) if wanted == "events" else _labels(source))
    wanted = _chosen(table, RESULT_TABLES)
    if isinstance(source, Path | str):
        return _frame(read_table(source, wanted))
    return _frame(boundary_table(_flat([source] if isinstance(source, Boundary) else source), wanted))


def _chosen(table: str | None, known: tuple[str, ...]) -> str:
    if table is not None and table not in known:
        raise UsageError(f"to_pandas: expected a table {' or '.join(known)}, got {table!r}")
    return table or known[0]


def _frame(table: pa.Table) -> Any:
    return table.to_pandas()


def _events(data: Dataset) -> pa.Table:
    owners = pa.array(data.events.rows())
    columns: dict[str, Any] = {
        "sequence_id": data.sequence_ids.take(owners),
        "subject_id": data.subject_ids.take(owners),
        "time": data.times,
        "event": pa.DictionaryArray.from_arrays(data.events.ids, pa.array(data.event_names, pa.string())),
    }
    return pa.table(columns | {name: data.channel(name) for name in data.channels if name not in columns})


def _labels(data: Dataset) -> pa.Table:
    names = pa.array(data.label_names, pa.string())
    columns: dict[str, Any] = {
        "sequence_id": data.sequence_ids.take(pa.array(data.labels.rows())),
        "label": pa.DictionaryArray.from_arrays(data.labels.ids, names),
    }
    times = data.label_times()
    return pa.table(columns if times is None else columns | {"label_time": pa.array(times, mask=np.isnan(times))})


def _flat(parts: Iterable[Boundary | list[Boundary]]) -> Iterator[Boundary]:
    for part in parts:
        if isinstance(part, Boundary):
            yield part
        else:
            yield from part
