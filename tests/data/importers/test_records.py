"""Records with lists: EasyTPP's JSON and folders of Hugging Face datasets (the sample was saved by that library)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oscar_causal.data.importers import ImportOptions, import_tables
from oscar_causal.data.importers.formats import guess_format
from oscar_causal.data.readers import read_long

SAMPLES = Path(__file__).parent / "samples"
TRAIN, DEV = SAMPLES / "easytpp" / "train.json", SAMPLES / "easytpp" / "dev.json"
SAVED = SAMPLES / "hf_saved"


def test_easytpp_array_and_lines() -> None:
    data = read_long([TRAIN, DEV])
    assert data.sequence_ids.to_pylist() == ["train-0", "train-1", "dev-0"]
    assert [data.events_of(i) for i in range(3)] == [["2", "0", "2"], ["1", "1"], ["1"]]
    assert data.times.tolist() == [0, 1.5, 4, 0.25, 0.75, 0]  # time_since_start stays as it is
    assert [item["split"] for item in data.static()] == ["train", "train", "dev"]
    assert not data.labelled.any()


def record(**changes: Any) -> dict[str, Any]:
    return {"seq_idx": 1, "time_since_start": [0, 1], "type_event": [0, 1]} | changes


BAD_RECORDS = {
    "lists of two lengths": (record(type_event=[1]), ("row 2", "'type_event'", "(2)", "got 1")),
    "a time that is none": (record(time_since_start=[0, "zebra"]), ("row 2", "'time_since_start'", "zebra")),
    "infinite": (record(time_since_start=[0, float("inf")]), ("row 2", "Infinity")),
    "half an event type": (record(type_event=[0, 1.5]), ("row 2", "'type_event'", "1.5")),
    "no list": (record(type_event=None), ("row 2", "'type_event'", "null")),
    "no events": (record(time_since_start=[], type_event=[]), ("row 2", "empty list")),
    "no record": ([1, 2], ("row 2", "record")),
    "an id again": (record(seq_idx=0), ("row 2", "'sequence_id'", "again")),
    "before the start": (record(time_since_start=[-1, 1]), ("row 2", "'time_since_start'", "0 or more")),
}


@pytest.mark.parametrize("case", BAD_RECORDS)
def test_bad_records_have_a_row(tmp_path: Path, oscar: Callable[..., Any], case: str) -> None:
    bad, words = BAD_RECORDS[case]
    file = tmp_path / "train.json"
    file.write_text(json.dumps([record(seq_idx=0), bad, record(seq_idx=2)]))
    oscar("import", file, "--out", tmp_path / "o").refused("train.json", *words, "--skip-bad-rows")
    summary = import_tables([file], tmp_path / "o", ImportOptions(skip_bad_rows=True))
    assert (summary.sequences, summary.rejected) == (3 if case == "before the start" else 2, 1)


def test_easytpp_files_that_are_refused(tmp_path: Path, oscar: Callable[..., Any]) -> None:
    for text, words in (("[", "JSON array"), ("[]", "empty array"), ("[3]", "row 1")):
        (tmp_path / "train.json").write_text(text)
        file = tmp_path / "train.json"
        oscar("import", file, "--format", "easytpp", "--out", tmp_path / "o").refused("train.json", words)


def test_a_saved_dataset_with_splits_classes_and_labels() -> None:
    data = read_long(SAVED, ImportOptions(labels=SAVED, label_column="labels", static=("host",)))
    assert data.sequence_ids.to_pylist() == ["n1", "n2", "n3", "n4"]
    assert [data.events_of(i) for i in (0, 3)] == [["boot", "disk slow", "io error"], ["io error", "io error"]]
    assert [data.labels_of(i) for i in range(4)] == [["outage"], [], [], ["outage", "slow"]]
    assert data.labelled.tolist() == [True, True, False, True]  # n3 has null for its labels
    assert [item["split"] for item in data.static()] == ["train", "train", "train", "test"]
    assert data.static()[1]["host"] == "b"


def test_one_split_only(oscar: Callable[..., Any], tmp_path: Path) -> None:
    data = read_long(SAVED, ImportOptions(split="test", keep_origin=True))
    assert (data.sequence_ids.to_pylist(), data.times.tolist()) == (["n4"], [3.0, 4.0])
    oscar("import", SAVED, "--split", "dev", "--out", tmp_path / "o").refused("'dev'", "train, test")


def test_a_hub_folder_of_parquet_files_with_long_rows(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    rows = {"case_id": ["a", "a", "b"], "time": [0, 1, 0], "event": ["X", "Y", "X"]}
    pq.write_table(pa.table(rows), tmp_path / "data" / "train-00000-of-00002.parquet")
    pq.write_table(pa.table(rows).slice(1, 1), tmp_path / "data" / "train-00001-of-00002.parquet")
    assert guess_format(tmp_path) == "hf"
    data = read_long(tmp_path)
    assert {data.sequence_ids[i].as_py(): data.events_of(i) for i in range(2)} == {"a": ["X", "Y", "Y"], "b": ["X"]}


def test_records_of_one_id_are_not_merged(tmp_path: Path, oscar: Callable[..., Any]) -> None:
    rows = {"id": ["a", "b", "a"], "events": [["X"], ["X"], ["Y"]], "times": [[0.0], [0.0], [0.0]]}
    pq.write_table(pa.table(rows), tmp_path / "part.parquet")
    oscar("import", tmp_path, "--out", tmp_path / "o").refused("part.parquet: row 3", "'id'", '"a" again')


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda folder: (folder / "train" / "state.json").unlink(), ("state.json",)),
        (lambda folder: (folder / "train" / "state.json").write_text("[]"), ("state.json", "JSON object")),
        (
            lambda folder: (folder / "train" / "state.json").write_text('{"_data_files": [{"filename": "../x"}]}'),
            ("../x",),
        ),
        (lambda folder: (folder / "train" / "data-00000-of-00001.arrow").write_bytes(b"nonsense"), ("whole Arrow",)),
        (lambda folder: (folder / "dataset_dict.json").write_text('{"splits": 3}'), ("list of splits",)),
    ],
)
def test_damaged_folders(
    tmp_path: Path, oscar: Callable[..., Any], damage: Callable[[Path], Any], words: tuple[str, ...]
) -> None:
    shutil.copytree(SAVED, tmp_path / "saved")
    damage(tmp_path / "saved")
    oscar("import", tmp_path / "saved", "--out", tmp_path / "o").refused(*words)


def test_nested_columns_are_refused(tmp_path: Path, oscar: Callable[..., Any]) -> None:
    pq.write_table(pa.table({"id": ["a"], "time": [0], "event": [[{"x": 1}]]}), tmp_path / "part.parquet")
    oscar("import", tmp_path, "--out", tmp_path / "o").refused("'event'", "struct")


def test_a_class_that_does_not_exist(tmp_path: Path, oscar: Callable[..., Any]) -> None:
    features = {"info": {"features": {"event": {"names": ["A"], "_type": "ClassLabel"}}}}
    table = pa.table({"id": ["a"], "time": [0], "event": [7]}).replace_schema_metadata(
        {"huggingface": json.dumps(features)}
    )
    pq.write_table(table, tmp_path / "part.parquet")
    oscar("import", tmp_path, "--out", tmp_path / "o").refused("'event'", "classes 0 to 0", "7")
