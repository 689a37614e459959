"""MEDS: what a small cohort becomes, checked by a literal reading of its rows, and what is refused."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import meds
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oscar_causal.data.importers import ImportOptions, import_tables
from oscar_causal.data.readers import read_meds
from oscar_causal.errors import DataError

DAY0 = datetime(2020, 1, 1)


def moment(day: float) -> datetime:
    return DAY0 + timedelta(days=day)


ROWS: list[dict[str, Any]] = [
    {"subject_id": 1, "time": None, "code": "GENDER//F"},
    {"subject_id": 1, "time": None, "code": "HEIGHT", "numeric_value": 171.0},
    {"subject_id": 1, "time": moment(0), "code": "ADMISSION"},
    {"subject_id": 1, "time": moment(1), "code": "LAB//LACTATE", "numeric_value": 4.5},
    {"subject_id": 1, "time": moment(1), "code": "NOTE", "text_value": "pale"},
    {"subject_id": 1, "time": moment(3), "code": "DISCHARGE"},
    {"subject_id": 2, "time": moment(0.5), "code": "ADMISSION"},
    {"subject_id": 2, "time": moment(2), "code": "LAB//LACTATE", "numeric_value": 1.0},
    {"subject_id": 3, "time": None, "code": "GENDER//M", "text_value": "male"},
    {"subject_id": 3, "time": moment(9), "code": "ADMISSION"},
]


def table(schema: Any, rows: list[dict[str, Any]]) -> pa.Table:
    """Rows in a schema of MEDS, as its own package sees it."""
    wanted = schema.schema()
    names = [name for name in wanted.names if any(name in row for row in rows)]
    found = pa.Table.from_pylist(rows, schema=pa.schema([wanted.field(name) for name in names]))
    schema.validate(found)
    return found


def write(path: Path, rows: pa.Table) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, path)


@pytest.fixture
def cohort(tmp_path: Path) -> Path:
    """Three subjects in two shards, descriptions, splits and the task `sepsis`."""
    root = tmp_path / "cohort"
    write(root / "data" / "train" / "0.parquet", table(meds.DataSchema, ROWS[:8]))
    write(root / "data" / "held_out" / "0.parquet", table(meds.DataSchema, ROWS[8:]))
    codes = [{"code": "ADMISSION", "description": "came in"}, {"code": "NOTE", "description": None}]
    write(root / meds.code_metadata_filepath, table(meds.CodeMetadataSchema, codes))
    splits = [{"subject_id": s, "split": "train" if s < 3 else "held_out"} for s in (1, 2, 3)]
    write(root / meds.subject_splits_filepath, table(meds.SubjectSplitSchema, splits))
    asked = [(1, 1.0, True), (1, 2.5, False), (3, 9.0, True)]
    labels = [{"subject_id": s, "prediction_time": moment(d), "boolean_value": value} for s, d, value in asked]
    write(tmp_path / "sepsis" / "train" / "0.parquet", table(meds.LabelSchema, labels[:2]))
    write(tmp_path / "sepsis" / "held_out" / "0.parquet", table(meds.LabelSchema, labels[2:]))
    return root


def test_without_labels_a_subject_is_a_sequence(cohort: Path) -> None:
    data = read_meds(cohort)
    found = {data.sequence_ids[i].as_py(): data.events_of(i) for i in range(len(data))}
    assert found == {
        str(subject): [row["code"] for row in ROWS if row["subject_id"] == subject and row["time"] is not None]
        for subject in (1, 2, 3)
    }
    one = data.sequence_ids.to_pylist().index("1")
    begin, end = data.events.offsets[one : one + 2]
    assert data.times[begin:end].tolist() == [0, 86400, 86400, 3 * 86400]
    assert np.array_equal(data.channel("numeric_value")[begin:end], [np.nan, 4.5, np.nan, np.nan], equal_nan=True)
    statics = dict(zip(data.sequence_ids.to_pylist(), data.static(), strict=True))
    assert statics["1"] == {"GENDER//F": "yes", "HEIGHT": "171", "split": "train"}
    assert statics["3"] == {"GENDER//M": "male", "split": "held_out"}
    assert not data.labelled.any()


def test_with_labels_events_end_at_the_prediction_time(cohort: Path) -> None:
    data = read_meds(cohort, labels=cohort.parent / "sepsis")
    expected = {  # events at or before the prediction time, by the words of the schema
        "1@2020-01-02T00:00:00": (["ADMISSION", "LAB//LACTATE", "NOTE"], ["sepsis"], "1"),
        "1@2020-01-03T12:00:00": (["ADMISSION", "LAB//LACTATE", "NOTE"], [], "1"),
        "3@2020-01-10T00:00:00": (["ADMISSION"], ["sepsis"], "3"),
    }
    found = {
        data.sequence_ids[i].as_py(): (data.events_of(i), data.labels_of(i), data.subject_ids[i].as_py())
        for i in range(len(data))
    }
    assert found == expected  # subject 2 was not asked about
    assert data.labelled.all()


def test_many_random_prediction_times_against_a_literal_reading(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    rows = [
        {"subject_id": int(s), "time": moment(float(d)), "code": f"C{k}"}
        for s in range(12)
        for k, d in enumerate(np.sort(draw.integers(0, 6, draw.integers(1, 9))))
    ]
    asked = {(int(draw.integers(0, 14)), int(draw.integers(-1, 7))) for _ in range(60)}
    labels = [{"subject_id": s, "prediction_time": moment(d), "integer_value": d % 3} for s, d in sorted(asked)]
    write(tmp_path / "m" / "data" / "0.parquet", table(meds.DataSchema, rows))
    write(tmp_path / "stage.parquet", table(meds.LabelSchema, labels))
    truth = {}
    for s, d in asked:
        events = [row["code"] for row in rows if row["subject_id"] == s and row["time"] <= moment(d)]
        if events:
            truth[f"{s}@{moment(d).isoformat()}"] = (events, [f"stage={d % 3}"])
    options = ImportOptions(skip_bad_rows=True)
    data = read_meds(tmp_path / "m", labels=tmp_path / "stage.parquet", options=options)
    found = {data.sequence_ids[i].as_py(): (data.events_of(i), data.labels_of(i)) for i in range(len(data))}
    assert found == truth
    assert data.info["imported"]["rejected"] == len(asked) - len(truth)  # nothing had happened yet


def test_several_tasks_need_a_value_each(cohort: Path, oscar: Callable[..., Any], tmp_path: Path) -> None:
    tasks = tmp_path / "tasks"
    for name, asked in {"death": [(1, 1.0, False), (3, 9.0, False)], "sepsis": [(1, 1.0, True)]}.items():
        rows = [{"subject_id": s, "prediction_time": moment(d), "boolean_value": v} for s, d, v in asked]
        write(tasks / name / "0.parquet", table(meds.LabelSchema, rows))
    words = ("import", cohort, "--labels", tasks, "--out", tmp_path / "o")
    oscar(*words).refused("death", "row 2", "task 'sepsis'", "3@2020-01-10")
    assert oscar(*words, "--skip-bad-rows").code == 0
    data = read_meds(cohort, labels=tasks, options=ImportOptions(skip_bad_rows=True))
    assert (data.sequence_ids.to_pylist(), data.labels_of(0)) == (["1@2020-01-02T00:00:00"], ["sepsis"])


def test_one_split_and_descriptions(cohort: Path, tmp_path: Path, oscar: Callable[..., Any]) -> None:
    data = read_meds(cohort, labels=cohort.parent / "sepsis", split="held_out")
    assert data.sequence_ids.to_pylist() == ["3@2020-01-10T00:00:00"]
    oscar("import", cohort, "--split", "dev", "--out", tmp_path / "o").refused("'dev'", "held_out, train")
    import_tables([cohort], tmp_path / "o", ImportOptions())
    assert "came in" in (tmp_path / "o" / "names.json").read_text()


def test_labels_may_be_a_plain_table(cohort: Path, tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("sequence_id,label\n1,died\n")
    data = read_meds(cohort, labels=tmp_path / "labels.csv")
    assert dict(zip(data.sequence_ids.to_pylist(), map(data.labels_of, range(3)), strict=True))["1"] == ["died"]


BAD_ROWS = {
    "no code": ({"subject_id": 1, "time": moment(4), "code": None}, ("row 9", "'code'", "nothing")),
    "no subject": ({"subject_id": None, "time": moment(4), "code": "X"}, ("row 9", "nothing")),
    "two heights": (
        {"subject_id": 1, "time": None, "code": "HEIGHT", "numeric_value": 99.0},
        ("row 9", "'code'", '"171"', '"99"'),
    ),
    "a code of nobody": ({"subject_id": None, "time": None, "code": "X"}, ("row 9", "'subject_id'")),
}


@pytest.mark.parametrize("case", BAD_ROWS)
def test_bad_rows(cohort: Path, tmp_path: Path, oscar: Callable[..., Any], case: str) -> None:
    row, words = BAD_ROWS[case]
    rows = pa.Table.from_pylist([*ROWS[:8], row], schema=meds.DataSchema.schema())
    write(cohort / "data" / "train" / "0.parquet", rows)
    oscar("import", cohort, "--out", tmp_path / "o").refused("train/0.parquet", *words)
    summary = import_tables([cohort], tmp_path / "o", ImportOptions(skip_bad_rows=True))
    assert (summary.events, summary.rejected) == (7, 1)
    if case != "no code":  # after the last prediction time nobody looks at it
        words = (cohort, "--labels", cohort.parent / "sepsis", "--out", tmp_path / "p")
        oscar("import", *words).refused("train/0.parquet", "row 9")


LABELS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "no value": ({"boolean_value": [True, None]}, ("row 2", "'boolean_value'")),
    "a number with a point": ({"float_value": [0.5, 1.5]}, ("float_value", "came or not")),
    "two kinds": ({"boolean_value": [True, True], "integer_value": [1, 2]}, ("one kind",)),
    "no values at all": ({}, ("a column with values",)),
    "text for a number": ({"integer_value": ["a", "b"]}, ("'integer_value'", "int64")),
}


@pytest.mark.parametrize("case", LABELS)
def test_bad_labels(cohort: Path, tmp_path: Path, oscar: Callable[..., Any], case: str) -> None:
    values, words = LABELS[case]
    times = pa.array([moment(1), moment(2)], pa.timestamp("us"))
    write(tmp_path / "task.parquet", pa.table({"subject_id": [1, 1], "prediction_time": times, **values}))
    oscar("import", cohort, "--labels", tmp_path / "task.parquet", "--out", tmp_path / "o").refused(
        "task.parquet", *words
    )


def test_a_value_twice(cohort: Path, tmp_path: Path, oscar: Callable[..., Any]) -> None:
    rows = [{"subject_id": 1, "prediction_time": moment(1), "boolean_value": value} for value in (True, False)]
    write(tmp_path / "task.parquet", table(meds.LabelSchema, rows))
    oscar("import", cohort, "--labels", tmp_path / "task.parquet", "--out", tmp_path / "o").refused("row 2", "another")


def test_damaged_and_missing_files(cohort: Path, tmp_path: Path, oscar: Callable[..., Any]) -> None:
    shard = cohort / "data" / "held_out" / "0.parquet"
    write(shard, pa.table({"subject_id": [1], "time": pa.array([moment(1)], pa.timestamp("us"))}))
    oscar("import", cohort, "--format", "meds", "--out", tmp_path / "o").refused("held_out/0.parquet", "'code'")
    shard.write_bytes(b"nonsense")
    oscar("import", cohort, "--format", "meds", "--out", tmp_path / "o").refused("held_out/0.parquet", "Parquet")
    (tmp_path / "empty").mkdir()
    oscar("import", tmp_path / "empty", "--format", "meds", "--out", tmp_path / "o").refused("data/*.parquet")
    oscar("import", tmp_path / "empty", "--format", "mads", "--out", tmp_path / "o").refused("--format", "'mads'")


def test_too_many_static_codes_must_be_chosen_from(cohort: Path) -> None:
    rows = [{"subject_id": 1, "time": None, "code": f"S{k}"} for k in range(101)]
    rows.append({"subject_id": 1, "time": moment(0), "code": "A"})
    write(cohort / "data" / "train" / "0.parquet", table(meds.DataSchema, rows))
    with pytest.raises(Exception, match="--static"):
        read_meds(cohort)
    data = read_meds(cohort, options=ImportOptions(static=("S7",)))
    assert {"S7": "yes", "split": "train"} in data.static()


def test_without_the_package_one_line_says_so(
    cohort: Path, tmp_path: Path, oscar: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "meds", None)
    ran = oscar("import", cohort, "--out", tmp_path / "o")
    assert ran.code == 5
    ran.refused("oscar-causal[meds]")


def test_the_wrong_time_zone_is_no_other_moment(cohort: Path) -> None:
    shard = cohort / "data" / "train" / "0.parquet"
    stored = pq.read_table(shard)
    zoned = stored["time"].cast(pa.timestamp("ms", "UTC")).cast(pa.timestamp("ms", "Europe/Berlin"))
    before = read_meds(cohort).info["digest"]
    write(shard, stored.set_column(1, "time", zoned))
    assert read_meds(cohort).info["digest"] == before


def test_types_that_are_not_those_of_meds(cohort: Path) -> None:
    shard = cohort / "data" / "train" / "0.parquet"
    stored = pq.read_table(shard)
    write(shard, stored.set_column(0, "subject_id", pa.array([f"p{s}" for s in stored["subject_id"].to_pylist()])))
    with pytest.raises(DataError, match="'subject_id': expected int64"):
        read_meds(cohort)
