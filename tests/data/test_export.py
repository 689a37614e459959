"""A dataset, exported and imported again, is the same dataset."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oscar_causal.data.export import export_tables
from oscar_causal.data.importers import import_tables
from oscar_causal.data.schema import sequences_schema
from oscar_causal.data.sequences import read_dataset
from oscar_causal.data.writer import write_dataset
from oscar_causal.errors import DataError

RECORDS = [
    {
        "sequence_id": "a",
        "subject_id": "s",
        "events": ["A", "B"],
        "times": [5, 6],
        "labels": ["y", "z"],
        "km": [1, None],
    },
    {"sequence_id": "b", "subject_id": "s", "events": ["A"], "times": [0], "labels": None, "km": [2.5]},
    {"sequence_id": "c", "subject_id": "c", "events": ["C"], "times": [1e9], "labels": [], "km": [None]},
]


def fleet(path: Path) -> Path:
    write_dataset(path, [pa.Table.from_pylist(RECORDS, schema=sequences_schema(["km"]))], names={"A": "first letter"})
    return path


@pytest.mark.parametrize("format", ["csv", "parquet"])
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_round_trip(data: st.DataObject, format: str, table_strategy: st.SearchStrategy[pa.Table]) -> None:
    table = data.draw(table_strategy)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_dataset(folder / "one", [table])
        summary = export_tables(folder / "one", folder / "tables", format=format)
        assert summary.event_rows == sum(len(events) for events in table["events"].to_pylist())
        again = import_tables([summary.events], folder / "two", summary.import_options)
        first, second = read_dataset(folder / "one"), read_dataset(folder / "two")
        assert again.digest == first.info["digest"]
        assert second.sequence_ids.to_pylist() == table["sequence_id"].to_pylist()
        assert [second.events_of(i) for i in range(len(second))] == table["events"].to_pylist()
        assert second.times.tolist() == first.times.tolist()
        assert [second.labels_of(i) for i in range(len(second))] == [
            labels or [] for labels in table["labels"].to_pylist()
        ]
        assert (second.labelled == first.labelled).all()
        assert [sorted(pairs.items()) for pairs in second.static()] == [
            sorted(pairs.items()) for pairs in first.static()
        ]


def test_the_command_that_is_printed_leads_back(tmp_path: Path, oscar: Callable[..., Any]) -> None:
    fleet(tmp_path / "one")
    printed = oscar("export", tmp_path / "one", "--out", tmp_path / "tables").out.splitlines()
    assert "4 rows of events, 3 rows of labels" in printed[0]
    words = shlex.split(printed[1])
    assert words[0] == "oscar"
    assert oscar(*words[1:-1], tmp_path / "two").code == 0
    one, two = (read_dataset(tmp_path / name) for name in ("one", "two"))
    assert one.info["digest"] == two.info["digest"]
    assert (tmp_path / "two" / "names.json").read_text() == (tmp_path / "one" / "names.json").read_text()


def test_the_text_of_the_tables(tmp_path: Path) -> None:
    export_tables(fleet(tmp_path / "one"), tmp_path / "tables")
    assert (tmp_path / "tables" / "events.csv").read_text().splitlines() == [
        '"sequence_id","subject_id","time","event","km"',
        '"a","s",5,"A",1',
        '"a","s",6,"B",',
        '"b","s",0,"A",2.5',
        '"c","c",1000000000,"C",',
    ]
    assert (tmp_path / "tables" / "labels.csv").read_text().splitlines() == [
        '"sequence_id","label","labelled"',
        '"a","y",1',
        '"a","z",1',
        '"b",,0',
    ]


def test_columns_give_way_to_channels_of_the_same_name(tmp_path: Path) -> None:
    record = {"sequence_id": "a", "events": ["A"], "times": [0], "time": [4.0], "event": [5.0]}
    schema = sequences_schema(["time", "event"])
    write_dataset(tmp_path / "one", [pa.Table.from_pylist([{**record, "subject_id": "a"}], schema=schema)])
    summary = export_tables(tmp_path / "one", tmp_path / "tables")
    again = import_tables([summary.events], tmp_path / "two", summary.import_options)
    assert again.digest == read_dataset(tmp_path / "one").info["digest"]


def test_a_channel_and_a_static_key_of_the_same_name(tmp_path: Path) -> None:
    row = {"sequence_id": "a", "subject_id": "a", "events": ["A"], "times": [0], "age": [4.0], "static": [("age", "7")]}
    write_dataset(tmp_path / "one", [pa.Table.from_pylist([row], schema=sequences_schema(["age"], static=True))])
    with pytest.raises(DataError, match="'age' as a channel and as a static key"):
        export_tables(tmp_path / "one", tmp_path / "tables")


def test_bad_requests(tmp_path: Path, oscar: Callable[..., Any]) -> None:
    fleet(tmp_path / "one")
    oscar("export", tmp_path / "one", "--out", tmp_path / "t", "--format", "xml").refused("--format", "'xml'")
    oscar("export", tmp_path / "gone", "--out", tmp_path / "t").refused("gone", "dataset.json")
    oscar("export", tmp_path / "one", "--out", tmp_path / "one").refused("exists already")
    assert [item.name for item in tmp_path.iterdir()] == ["one"]
