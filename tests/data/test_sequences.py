"""Datasets in memory and from disk hold what the records say."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oscar_causal.data.sequences import (
    Dataset,
    Ragged,
    from_records,
    from_table,
    ragged_offsets,
    ragged_positions,
    read_dataset,
)
from oscar_causal.data.writer import write_dataset
from oscar_causal.errors import DataError, FolderError

RECORDS = [
    {"sequence_id": "a", "events": ["B", "A"], "times": [0, 5], "labels": ["y"], "km": [1.0, None]},
    {"sequence_id": "b", "events": ["A"], "times": [0], "labels": None, "km": [2.0]},
]


def content(data: Dataset) -> list[dict[str, Any]]:
    """Everything a dataset holds, as records."""
    times, bounds, label_times = data.times, data.events.offsets, data.label_times()
    found = []
    for i in range(len(data)):
        row: dict[str, Any] = {
            "sequence_id": data.sequence_ids[i].as_py(),
            "subject_id": data.subject_ids[i].as_py(),
            "start": data.start[i].as_py(),
            "events": data.events_of(i),
            "times": times[bounds[i] : bounds[i + 1]].tolist(),
            "static": dict(data.static()[i]),
            "labels": data.labels_of(i) if data.labelled[i] else None,
        }
        for name in data.channels:
            row[name] = _with_nulls(data.channel(name)[bounds[i] : bounds[i + 1]])
        if label_times is not None:
            ends = data.labels.offsets
            row["label_times"] = _with_nulls(label_times[ends[i] : ends[i + 1]])
        found.append(row)
    return found


def _with_nulls(values: Any) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]


def wanted(table: pa.Table) -> list[dict[str, Any]]:
    rows = table.to_pylist()
    for row in rows:
        row["static"] = dict(row.get("static") or [])
        if "label_times" in row:
            row["label_times"] = row["label_times"] or [None] * len(row["labels"] or [])
    return rows


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_memory_disk_and_records_agree(data: st.DataObject, table_strategy: st.SearchStrategy[pa.Table]) -> None:
    table = data.draw(table_strategy)
    with tempfile.TemporaryDirectory() as folder:
        write_dataset(Path(folder) / "one", [table])
        opened, held = read_dataset(Path(folder) / "one"), from_table(table)
        assert content(opened) == content(held) == wanted(table)
        assert opened.event_names == tuple(sorted({name for row in table["events"].to_pylist() for name in row}))
        rows = data.draw(st.lists(st.integers(0, len(table) - 1), max_size=6))
        assert content(opened.take(rows)) == [wanted(table)[row] for row in rows]
        assert content(held.take(rows).take(range(len(rows)))) == [wanted(table)[row] for row in rows]
        names = [table["sequence_id"][row].as_py() for row in rows]
        assert opened.index_of(names).tolist() == rows


lists = st.lists(st.lists(st.integers(0, 9), max_size=4), min_size=1, max_size=6)


@given(rows=lists, chosen=st.data())
def test_ragged_lists(rows: list[list[int]], chosen: st.DataObject) -> None:
    ragged = Ragged(ragged_offsets(np.array([len(row) for row in rows])), np.array(sum(rows, []), np.int32))
    assert [ragged[i].tolist() for i in range(len(ragged))] == rows
    assert ragged.lengths.tolist() == [len(row) for row in rows]
    assert ragged.rows().tolist() == [i for i, row in enumerate(rows) for _ in row]
    indices = np.array(chosen.draw(st.lists(st.integers(0, len(rows) - 1), max_size=6)), np.int64)
    taken = ragged.take(indices)
    assert [taken[i].tolist() for i in range(len(taken))] == [rows[i] for i in indices]
    assert ragged_positions(ragged.offsets, indices).tolist() == [
        p for i in indices for p in range(ragged.offsets[i], ragged.offsets[i + 1])
    ]
    dense = ragged.indicator(10)
    assert [set(np.flatnonzero(row).tolist()) for row in dense] == [set(row) for row in rows]


def test_a_mask_chooses_too() -> None:
    data = from_records(RECORDS)
    assert data.take(np.array([False, True])).sequence_ids.to_pylist() == ["b"]
    assert len(data.take([])) == 0


def test_unknown_names() -> None:
    data = from_records(RECORDS)
    with pytest.raises(DataError, match="sequence 'ghost': not in this dataset of 2"):
        data.index_of(["a", "ghost"])
    with pytest.raises(DataError, match="channel 'speed'"):
        data.channel("speed")
    assert data.label_times() is None
    assert data.static() == [{}, {}]


@pytest.mark.parametrize(
    "records",
    [[], [{"sequence_id": "a"}], [{"sequence_id": "a", "events": ["A"], "times": ["x"]}], [{"events": [1, "A"]}]],
)
def test_bad_records(records: list[Any]) -> None:
    with pytest.raises(DataError):
        from_records(records)


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """Without checksums: whatever was changed is read."""
    write_dataset(tmp_path / "fleet", [pa.Table.from_pylist(RECORDS)])
    (tmp_path / "fleet" / "checksums.json").unlink()
    return tmp_path / "fleet"


def test_files_that_lack_optional_columns(fleet: Path) -> None:
    part = fleet / "sequences" / "part-00000.parquet"
    pq.write_table(pq.read_table(part).select(["sequence_id", "events", "times"]), part)
    data = read_dataset(fleet)
    assert data.subject_ids.to_pylist() == ["a", "b"]
    assert not data.labelled.any()
    assert data.start.null_count == 2


def test_damaged_folders(fleet: Path) -> None:
    part = fleet / "sequences" / "part-00000.parquet"
    whole = part.read_bytes()
    pq.write_table(pq.read_table(part).slice(1), part)
    with pytest.raises(FolderError, match="expected 2 sequences"):
        read_dataset(fleet)
    for broken in (whole[:-20], whole[:100], b"", whole[:60] + b"\0" * 300 + whole[360:]):
        part.write_bytes(broken)
        with pytest.raises(FolderError, match=r"part-00000\.parquet") as error:
            read_dataset(fleet).times  # noqa: B018
        assert "\n" not in str(error.value)
    pq.write_table(pa.table({"sequence_id": ["a", "b"]}), part)
    with pytest.raises(FolderError):
        read_dataset(fleet)
    part.unlink()
    with pytest.raises(FolderError, match="found none"):
        read_dataset(fleet)
    (fleet / "dataset.json").unlink()
    with pytest.raises(FolderError, match="expected a dataset folder"):
        read_dataset(fleet)
