"""Datasets appear whole, their bytes depend on their content alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oscar_causal.data.digest import ContentDigest
from oscar_causal.data.schema import WHY_SCHEMA, conform, sequences_schema
from oscar_causal.data.sequences import read_dataset
from oscar_causal.data.stream import stream_why
from oscar_causal.data.writer import PartWriter, dataset_writer, write_dataset
from oscar_causal.errors import DataError, UsageError


def table(count: int, begin: int = 0, **more: Any) -> pa.Table:
    rows = range(begin, begin + count)
    columns = {"sequence_id": [f"q{i}" for i in rows], "events": [["A"] * (i % 3 + 1) for i in rows]}
    return pa.table({**columns, "times": [[0.0] * (i % 3 + 1) for i in rows], **more})


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def test_how_the_caller_cuts_its_tables_leaves_no_trace(tmp_path: Path) -> None:
    whole = table(25_000)
    write_dataset(tmp_path / "one", [whole])
    write_dataset(tmp_path / "two", [whole.slice(i, 777) for i in range(0, 25_000, 777)])
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")
    parquet = pq.ParquetFile(tmp_path / "one" / "sequences" / "part-00000.parquet")
    assert [parquet.metadata.row_group(i).num_rows for i in range(parquet.num_row_groups)] == [10_000, 10_000, 5_000]


@settings(max_examples=60, deadline=None)
@given(
    weights=st.lists(st.integers(0, 12), max_size=40),
    cuts=st.lists(st.integers(0, 40), max_size=4),
    group_rows=st.integers(1, 7),
    group_weight=st.integers(1, 20),
)
def test_row_groups_and_files_are_bounded(
    tmp_path_factory: pytest.TempPathFactory, weights: list[int], cuts: list[int], group_rows: int, group_weight: int
) -> None:
    folder = tmp_path_factory.mktemp("parts")
    rows = pa.table({"w": pa.array(weights, pa.int64())})
    parts = PartWriter(
        folder,
        group_rows=group_rows,
        file_rows=3 * group_rows,
        weigh=lambda t: t["w"].to_numpy(),
        group_weight=group_weight,
    )
    edges = [0, *sorted(min(cut, len(weights)) for cut in cuts), len(weights)]
    for begin, end in zip(edges, edges[1:], strict=False):
        parts.write(rows.slice(begin, end - begin))
    parts.close()
    wanted: list[list[int]] = []
    for weight in weights:  # greedy, one row at a time
        if not wanted or len(wanted[-1]) == group_rows or sum(wanted[-1]) + weight > group_weight:
            wanted.append([])
        wanted[-1].append(weight)
    files = sorted(folder.glob("*.parquet"))
    found = []
    for file in files:
        with pq.ParquetFile(file) as parquet:
            found += [parquet.read_row_group(i)["w"].to_pylist() for i in range(parquet.num_row_groups)]
            assert parquet.metadata.num_rows <= 3 * group_rows
    assert found == wanted
    assert parts.rows == len(weights)


def test_what_dataset_json_says(tmp_path: Path) -> None:
    with dataset_writer(tmp_path / "one") as writer:
        writer.write(table(3, km=[[1.0] * (i % 3 + 1) for i in range(3)]))
        writer.describe(generator="test")
        writer.write_names({"A": "first"})
    info = json.loads((tmp_path / "one" / "dataset.json").read_text())
    assert {key: info[key] for key in ("kind", "format_version", "sequences", "events", "channels", "generator")} == {
        "kind": "dataset",
        "format_version": 1,
        "sequences": 3,
        "events": 6,
        "channels": ["km"],
        "generator": "test",
    }
    total = ContentDigest()
    total.update(conform(pq.read_table(tmp_path / "one" / "sequences")))
    assert info["digest"] == total.hexdigest()
    assert json.loads((tmp_path / "one" / "names.json").read_text()) == {"A": "first"}


def test_other_content_has_another_digest(tmp_path: Path) -> None:
    for name, rows in {"one": table(3), "two": table(4), "three": table(3, begin=3)}.items():
        write_dataset(tmp_path / name, [rows])
    assert len({json.loads(file.read_text())["digest"] for file in tmp_path.glob("*/dataset.json")}) == 3


def test_reasons(tmp_path: Path) -> None:
    why = {"sequence_id": "q0", "label": "y", "event": "A", "positions": [0], "role": "cause", "necessary": True}
    with dataset_writer(tmp_path / "one") as writer:
        writer.write(table(1))
        writer.write_why(pa.Table.from_pylist([why], schema=WHY_SCHEMA))
        writer.write_why(pa.Table.from_pylist([{**why, "role": "blocker"}], schema=WHY_SCHEMA))
    (found,) = stream_why(tmp_path / "one")
    assert found.to_pylist() == [why, {**why, "role": "blocker"}]


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ([], "at least one sequence"),
        ([table(0)], "at least one sequence"),
        ([table(3), table(2, begin=2)], "'q2' 2 times"),
        ([table(3), table(2, begin=5, km=[[1.0, 1.0, 1.0], [1.0]])], "expected columns"),
        ([table(1, labels=[["y", "y"]])], "'y' twice"),
    ],
)
def test_what_is_refused_leaves_nothing(tmp_path: Path, tables: list[pa.Table], words: str) -> None:
    with pytest.raises(DataError, match=words):
        write_dataset(tmp_path / "one", tables)
    assert list(tmp_path.iterdir()) == []


def test_an_exception_of_the_caller_leaves_nothing(tmp_path: Path) -> None:
    def stopped() -> None:
        with dataset_writer(tmp_path / "one") as writer:
            writer.write(table(3))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert list(tmp_path.iterdir()) == []


def test_force_replaces_only_when_the_new_one_is_complete(tmp_path: Path) -> None:
    write_dataset(tmp_path / "one", [table(3)])
    with pytest.raises(UsageError, match="exists already"):
        write_dataset(tmp_path / "one", [table(5)])
    with pytest.raises(DataError):
        write_dataset(tmp_path / "one", [table(5), table(5)], force=True)
    assert len(read_dataset(tmp_path / "one")) == 3
    write_dataset(tmp_path / "one", [table(5)], force=True)
    assert len(read_dataset(tmp_path / "one")) == 5
    assert [item.name for item in tmp_path.iterdir()] == ["one"]


def test_long_sequences_make_small_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    defaults = {**PartWriter.__init__.__kwdefaults__, "group_weight": 1000}  # type: ignore[dict-item]
    monkeypatch.setattr(PartWriter.__init__, "__kwdefaults__", defaults)
    events = pa.array([["A"] * 600, ["B"] * 600, ["C"] * 5000, ["D"]])
    times = pa.array([np.zeros(600), np.zeros(600), np.zeros(5000), np.zeros(1)])
    rows = pa.table({"sequence_id": list("abcd"), "events": events, "times": times})
    write_dataset(tmp_path / "one", [rows])
    parquet = pq.ParquetFile(tmp_path / "one" / "sequences" / "part-00000.parquet")
    assert parquet.num_row_groups == 4
    assert read_dataset(tmp_path / "one").lengths.tolist() == [600, 600, 5000, 1]
    assert parquet.schema_arrow.equals(sequences_schema(), check_metadata=False)
