"""A dataset as MEDS: valid by the schemas of the `meds` package, and the same dataset when it comes back."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import meds
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oscar_causal.data.export_meds import export_meds
from oscar_causal.data.importers import ImportOptions, import_tables
from oscar_causal.data.schema import sequences_schema
from oscar_causal.data.sequences import from_table, read_dataset
from oscar_causal.data.writer import write_dataset
from oscar_causal.errors import DataError

START = datetime(2021, 5, 1, 12, tzinfo=UTC)


def sequence(name: str, **changes: Any) -> dict[str, Any]:
    row = {"sequence_id": name, "subject_id": "s", "start": START, "events": ["A", "B"], "times": [0.5, 2.000001]}
    return {**row, "km": [1.0, None], "static": [("site", "Kiel"), ("split", "train")], "labels": ["y"], **changes}


ROWS = [
    sequence("a"),
    sequence("b", labels=[], static=[("split", "held_out")]),
    sequence("c", subject_id="t", events=["C"], times=[0.0], km=[None], labels=["y", "z/z"], static=[]),
]


def fleet(path: Path, rows: list[dict[str, Any]]) -> Path:
    schema = sequences_schema(["km"], static=True)
    write_dataset(path, [pa.Table.from_pylist(rows, schema=schema)], names={"A": "first letter"})
    return path


def test_what_is_written_is_meds(tmp_path: Path) -> None:
    summary = export_meds(fleet(tmp_path / "one", ROWS), tmp_path / "out")
    assert (summary.event_rows, summary.label_rows) == (5, 6)
    rows = pq.read_table(tmp_path / "out" / "data" / "0.parquet")
    meds.DataSchema.validate(rows)
    subjects, times = rows["subject_id"].to_pylist(), rows["time"].to_pylist()
    assert subjects == sorted(subjects)  # contiguous, in order of time, facts without a time first
    assert [t for s, t in zip(subjects, times, strict=True) if s == 0] == [
        None,
        datetime(2021, 5, 1, 12, 0, 0, 500_000),
        datetime(2021, 5, 1, 12, 0, 2, 1),
    ]
    meds.CodeMetadataSchema.validate(pq.read_table(tmp_path / "out" / meds.code_metadata_filepath))
    splits = pq.read_table(tmp_path / "out" / meds.subject_splits_filepath)
    meds.SubjectSplitSchema.validate(splits)
    assert splits["split"].to_pylist() == ["train", "held_out"]
    task = pq.read_table(tmp_path / "out" / "labels" / "z%2Fz" / "0.parquet")
    meds.LabelSchema.validate(task)
    assert task["boolean_value"].to_pylist() == [False, False, True]
    assert task["prediction_time"].to_pylist()[0] == datetime(2021, 5, 1, 12, 0, 2, 1)


def test_the_command_that_is_printed_leads_back(tmp_path: Path, oscar: Callable[..., Any]) -> None:
    fleet(tmp_path / "one", ROWS)
    printed = oscar("export", tmp_path / "one", "--format", "meds", "--out", tmp_path / "meds").out.splitlines()
    words = shlex.split(printed[1])
    assert oscar(*words[1:-1], tmp_path / "two", "--channels", "km").code == 0
    one, two = (read_dataset(tmp_path / name) for name in ("one", "two"))
    assert one.info["digest"] == two.info["digest"]
    assert (tmp_path / "two" / "names.json").exists()


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_round_trip_of_whatever_meds_can_say(data: st.DataObject, table_strategy: st.SearchStrategy[pa.Table]) -> None:
    """Labelled sequences with a start, times in whole microseconds and sorted labels come back exactly."""
    table = data.draw(table_strategy)
    channels = from_table(table).channels
    rows = [_sayable(row) for row in table.to_pylist()]
    schema = sequences_schema(channels, static="static" in table.column_names)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_dataset(folder / "one", [pa.Table.from_pylist(rows, schema=schema)])
        try:
            summary = export_meds(folder / "one", folder / "meds")
        except DataError as error:
            assert "unlike the columns of MEDS" in str(error)  # noqa: PT017
            return
        options = ImportOptions(labels=summary.labels, channels=channels)
        if summary.labels is None:  # no label anywhere: nothing says that the sequences are labelled
            rows = [{**row, "labels": None} for row in rows]
            write_dataset(folder / "bare", [pa.Table.from_pylist(rows, schema=schema)])
        before = read_dataset(folder / ("one" if summary.labels else "bare"))
        try:
            again = import_tables([folder / "meds"], folder / "two", options)
        except DataError as error:
            assert "unlike the columns of MEDS" in str(error)  # noqa: PT017
            return
        after = read_dataset(folder / "two")
        assert after.sequence_ids.to_pylist() == before.sequence_ids.to_pylist()
        assert [after.events_of(i) for i in range(len(after))] == [before.events_of(i) for i in range(len(before))]
        assert again.digest == before.info["digest"]


def _sayable(row: dict[str, Any]) -> dict[str, Any]:
    start = row["start"] or datetime(1999, 1, 1, tzinfo=UTC)
    times = [min(round(time, 6), 3e9) for time in row["times"]]
    labels = sorted(row["labels"] or [])
    return {**row, "start": start, "times": [float(int(time)) for time in times], "labels": labels}


def test_a_second_prediction_time_has_no_name(tmp_path: Path, oscar: Callable[..., Any]) -> None:
    export_meds(fleet(tmp_path / "one", ROWS), tmp_path / "meds")
    times = pa.array([START.replace(tzinfo=None), START.replace(tzinfo=None, year=2022)], pa.timestamp("us"))
    task = pa.table({"subject_id": [0, 0], "prediction_time": times, "boolean_value": [True, False]})
    pq.write_table(task, tmp_path / "task.parquet")
    words = ("import", tmp_path / "meds", "--labels", tmp_path / "task.parquet", "--out", tmp_path / "o")
    oscar(*words).refused("task.parquet", "several for subject 0")


def test_what_cannot_be_said(tmp_path: Path, oscar: Callable[..., Any]) -> None:
    row = {"sequence_id": "a", "subject_id": "a", "events": ["A"], "times": [1e15], "labels": []}
    write_dataset(tmp_path / "far", [pa.Table.from_pylist([row], schema=sequences_schema())])
    oscar("export", tmp_path / "far", "--format", "meds", "--out", tmp_path / "o").refused("timestamp")
    schema = sequences_schema(["text_value"])
    write_dataset(
        tmp_path / "clash", [pa.Table.from_pylist([{**row, "times": [0], "text_value": [1.0]}], schema=schema)]
    )
    with pytest.raises(DataError, match="'text_value'"):
        export_meds(tmp_path / "clash", tmp_path / "o")
    assert sorted(item.name for item in tmp_path.iterdir()) == ["clash", "far"]
