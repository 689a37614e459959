"""Bad input of every kind: one clear line, an exit code, nothing left behind."""

from __future__ import annotations

import gzip
import io
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oscar_causal.data.importers import ImportOptions, import_tables
from oscar_causal.data.sequences import read_dataset
from oscar_causal.errors import OscarError

GOOD = b"seq_id,time,event\ns1,0,A\ns1,1,B\ns2,0,A\n"


def parquet(**columns: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


PARQUET = parquet(seq_id=["s1", "s2"], time=[0.0, 1.0], event=["A", "B"])
NO_ROWS = parquet(id=pa.array([], "string"), t=pa.array([], "double"), code=pa.array([], "string"))
ONE = b'{"id": "s", "t": 0, "code": "A"}\n'
MANY = b"seq_id,time,event\n" + b"".join(b"s%d,%d,E%d\n" % (i % 97, i, i * i % 1009) for i in range(20_000))

CASES: dict[str, tuple[str, bytes, list[str]]] = {
    "missing column": ("a.csv", b"seq_id,when,event\ns,0,A\n", ["a column for the time", "'when'", "--time-column"]),
    "ambiguous column": ("a.csv", b"seq_id,vin,t,event\ns,v,0,A\n", ["one column for the sequence", "'seq_id', 'vin'"]),
    "column twice": ("a.csv", b"seq_id,time,time,event\ns,0,0,A\n", ["'time' twice"]),
    "other delimiter": ("a.csv", b"seq_id:time:event\ns:0:A\n", ["'seq_id:time:event'"]),
    "unparsable time": ("a.csv", GOOD + b"s2,zebra,B\n", ["row 4", "'time'", "a number of seconds", '"zebra"']),
    "first time unparsable": ("a.csv", b"id,t,code\ns,zebra,B\n", ["row 1", "a number or an ISO timestamp", '"zebra"']),
    "infinite time": ("a.csv", GOOD + b"s2,inf,B\n", ["row 4", "'time'", '"inf"']),
    "overflowing time": ("a.csv", GOOD + b"s2,1e400,B\n", ["row 4", "'time'", '"1e400"']),
    "huge time": ("a.csv", GOOD + b"s2,1e300,B\n", ["row 4", "'time'", '"1e300"']),
    "NaN time": ("a.csv", GOOD + b"s2,nan,B\n", ["row 4", "'time'", '"nan"']),
    "no time": ("a.csv", GOOD + b"s2,,B\n", ["row 4", "'time'", "got nothing"]),
    "mixed kinds of time": ("a.csv", GOOD + b"s2,2024-01-01,B\n", ["row 4", "'time'", '"2024-01-01"']),
    "impossible date": ("a.csv", b"id,t,code\ns,2024-01-01,A\ns,2024-02-30,B\n", ["row 2", "ISO", '"2024-02-30"']),
    "no sequence id": ("a.csv", GOOD + b",2,B\n", ["row 4", "'seq_id'", "got nothing"]),
    "no event": ("a.csv", GOOD + b'"s2",2,""\n', ["row 4", "'event'", "got nothing"]),
    "too few cells": ("a.csv", GOOD + b"s2,2\n", ["row 4", "expected 3 cells, got 2"]),
    "too many cells": ("a.csv", GOOD + b"s2,2,B,C\n", ["row 4", "expected 3 cells, got 4"]),
    "ragged and no UTF-8": ("a.csv", GOOD + b"s2,2,\xe9,C\n", ["row 4", "expected 3 cells, got 4"]),
    "Latin-1": ("a.csv", GOOD + b"s2,2,caf\xe9\n", ["row 4", "'event'", "UTF-8", "--encoding"]),
    "Latin-1 header": ("a.csv", b"seq_id,time,\xe9v\xe9nement\n", ["header", "UTF-8", "--encoding"]),
    "UTF-16": ("a.csv", GOOD.decode().encode("utf-16"), ["UTF-16", "--encoding utf-16"]),
    "UTF-16 without mark": ("a.csv", GOOD.decode().encode("utf-16-le"), ["NUL bytes", "UTF-16"]),
    "NUL in a name": ("a.csv", GOOD + b"s2,2,B\0\n", ["row 4", "'event'", "NUL"]),
    "NUL in a time": ("a.csv", GOOD + b"s2,2\0,B\n", ["row 4", "'time'"]),
    "quote never closed": ("a.csv", GOOD + b's2,2,"B\ns2,3,C\n', ["quotation mark", "never"]),
    "quote never closed, ragged": ("a.csv", GOOD + b's2,"2,B\ns2,3,C\n', ["row 4", "quotation mark"]),
    "empty file": ("a.csv", b"", ["an empty file"]),
    "blank lines only": ("a.csv", b"\n\r\n\n", ["an empty file"]),
    "header only": ("a.csv", b"seq_id,time,event\n", ["at least one row"]),
    "header only, no line end": ("a.csv", b"seq_id,time,event", ["at least one row"]),
    "Parquet named CSV": ("a.csv", PARQUET, ["expected UTF-8 text, got a Parquet file"]),
    "a spreadsheet": ("a.csv", b"PK\x03\x04 and so on", ["ZIP archive"]),
    "gzip of nothing": ("a.csv.gz", gzip.compress(b""), ["an empty file"]),
    "truncated gzip": ("a.csv.gz", gzip.compress(MANY)[:-2000], ["cannot read or unpack", "Truncated"]),
    "damaged gzip": ("a.csv.gz", gzip.compress(MANY)[:-3000] + b"\0" * 3000, ["cannot read or unpack"]),
    "gzip cut to its mark": ("a.csv.gz", gzip.compress(MANY)[:5], ["cannot read or unpack"]),
    "truncated Parquet": ("a.parquet", PARQUET[:-40], ["expected a whole Parquet file"]),
    "CSV named Parquet": ("a.parquet", GOOD, ["expected a whole Parquet file"]),
    "empty Parquet": ("a.parquet", b"", ["expected a whole Parquet file"]),
    "Parquet without rows": ("a.parquet", NO_ROWS, ["at least one row"]),
    "Parquet with lists": ("a.parquet", parquet(id=["s"], t=[[0.0]], code=["A"]), ["'t'", "list<"]),
    "Parquet with a null": ("a.parquet", parquet(id=["s", None], t=[0, 1], code=["A", "B"]), ["row 2", "'id'"]),
    "Parquet with NaN": ("a.parquet", parquet(id=["s"], t=[float("nan")], code=["A"]), ["row 1", "'t'", '"nan"']),
    "Parquet with flags": ("a.parquet", parquet(id=["s"], t=[True], code=["A"]), ["row 1", "'t'", '"True"']),
    "JSON array": ("a.jsonl", b'[{"id": "s", "t": 0, "code": "A"}]', ["one JSON object per line", "array"]),
    "broken JSON": ("a.jsonl", ONE + b'\n{"id": "s", "t"\n', ["row 2", "a JSON object"]),
    "JSON that is a number": ("a.jsonl", ONE + b"5\n", ["row 2", "a JSON object", '"5"']),
    "nested JSON": ("a.jsonl", b'{"id": "s", "t": 0, "code": ["A"]}\n', ["row 1", "'code'", "a list"]),
    "JSON with NaN": ("a.jsonl", b'{"id": "s", "t": NaN, "code": "A"}\n', ["JSON object"]),
    "JSON mixed types": ("a.jsonl", ONE + b'{"id": "s", "t": {}, "code": "A"}', ["row 2", "'t'", "an object"]),
    "JSON missing key": ("a.jsonl", ONE + b'{"id": "s", "code": "A"}', ["row 2", "'t'", "nothing"]),
    "JSON half a surrogate": ("a.jsonl", b'{"id": "s", "t": 0, "code": "\\ud83d"}', ["row 1", "'code'", "surrogate"]),
    "JSON endless number": ("a.jsonl", b'{"id": "s", "t": 1' + b"0" * 5000 + b', "code": "A"}', ["JSON object"]),
    "JSON deep": ("a.jsonl", b"[" * 100_000, ["JSON array"]),
    "JSON deep inside": ("a.jsonl", ONE + b'{"id":' + b"[" * 100_000, ["row 2", "JSON object"]),
    "JSON no UTF-8": ("a.jsonl", ONE + b'{"id": "\xe9", "t": 0, "code": "A"}', ["row 2", "UTF-8"]),
    "unknown kind": ("a.xlsx", GOOD, ["a table whose name ends in .csv"]),
    "no kind": ("events", GOOD, ["a table whose name ends in .csv"]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_one_line_and_nothing_left(tmp_path: Path, oscar: Callable[..., Any], case: str) -> None:
    name, data, words = CASES[case]
    (tmp_path / name).write_bytes(data)
    oscar("import", tmp_path / name, "--out", tmp_path / "new" / "fleet").refused(name, *words)
    assert [item.name for item in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    "case", [case for case, (_, data, _) in CASES.items() if data.startswith(GOOD + b"s2") and "never" not in case]
)
def test_the_rest_survives_with_skip_bad_rows(tmp_path: Path, case: str) -> None:
    name, data, _ = CASES[case]
    (tmp_path / name).write_bytes(data)
    summary = import_tables([tmp_path / name], tmp_path / "out", ImportOptions(skip_bad_rows=True))
    assert (summary.events, summary.rejected) == (3, 1)
    assert summary.first_rejected[0].row == 4


def test_a_missing_file_and_a_folder(tmp_path: Path, oscar: Callable[..., Any]) -> None:
    (tmp_path / "dir.csv").mkdir()
    oscar("import", tmp_path / "gone.csv", "--out", tmp_path / "out").refused("gone.csv", "no such file")
    oscar("import", tmp_path / "dir.csv", "--out", tmp_path / "out").refused("dir.csv", "got a folder")
    assert [item.name for item in tmp_path.iterdir()] == ["dir.csv"]


def test_the_same_sequence_under_two_subjects(tmp_path: Path, oscar: Callable[..., Any]) -> None:
    file = tmp_path / "a.csv"
    file.write_text("id,t,code,vin2,age\ns,0,A,v1,7\ns,1,B,,\ns,2,C,v2,8\nq,0,A,v1,\n")
    words = ("row 3", "'vin2'", '"v1"', '"v2"', '"s"')
    oscar("import", file, "--subject-column", "vin2", "--out", tmp_path / "out").refused(*words)
    oscar("import", file, "--static", "age", "--out", tmp_path / "out").refused("row 3", "'age'", '"7"', '"8"')
    options = ImportOptions(subject_column="vin2", static=("age",), skip_bad_rows=True)
    summary = import_tables([file], tmp_path / "out", options)
    data = read_dataset(tmp_path / "out")
    assert (summary.rejected, summary.events, summary.subjects) == (1, 3, 1)
    assert data.subject_ids.to_pylist() == ["v1", "v1"]
    assert data.static() == [{"age": "7"}, {}]


def test_a_contradiction_between_two_files(tmp_path: Path, oscar: Callable[..., Any]) -> None:
    (tmp_path / "a.csv").write_text("id,t,code,subject_id\ns,0,A,v1\ns,1,A,v1\n")
    (tmp_path / "b.csv").write_text("id,t,code,subject_id\ns,2,A,v2\n")
    oscar("import", tmp_path / "a.csv", tmp_path / "b.csv", "--out", tmp_path / "out").refused("b.csv: row 1,", '"v2"')


def test_a_sequence_without_a_subject(tmp_path: Path, oscar: Callable[..., Any]) -> None:
    file = tmp_path / "a.csv"
    file.write_text("id,t,code,subject_id\ns,0,A,v1\nq,1,B,\n")
    oscar("import", file, "--out", tmp_path / "out").refused("row 2", "'subject_id'", "a subject for sequence")


def test_a_byte_order_mark_and_other_encodings(tmp_path: Path) -> None:
    text = "seq_id,time,event\ns1,0,café\n"
    digests = set()
    for name, data, encoding in (
        ("bom.csv", text.encode("utf-8-sig"), "utf-8"),
        ("plain.csv", text.encode(), "utf-8"),
        ("latin.csv", text.encode("latin-1"), "latin-1"),
        ("utf16.csv", text.encode("utf-16"), "utf-16"),
    ):
        (tmp_path / name).write_bytes(data)
        digests.add(import_tables([tmp_path / name], tmp_path / f"{name}.out", ImportOptions(encoding=encoding)).digest)
    assert len(digests) == 1


def test_bytes_that_are_not_the_encoding_that_was_named(tmp_path: Path, oscar: Callable[..., Any]) -> None:
    (tmp_path / "a.csv").write_bytes(GOOD + b"s2,2,\xff\n")
    oscar("import", tmp_path / "a.csv", "--encoding", "ascii", "--out", tmp_path / "o").refused("a.csv", "--encoding")
    oscar("import", tmp_path / "a.csv", "--encoding", "klingon", "--out", tmp_path / "o").refused(
        "--encoding", "klingon"
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--time-unit", "weeks"), "--time-unit"),
        (("--gap", "-1", "--labels", "x.csv"), "--gap"),
        (("--gap", "5"), "--gap"),
        (("--delimiter", "ab"), "--delimiter"),
        (("--label-column", "y"), "--labels"),
        (("--static", "nowhere"), "'nowhere'"),
        (("--channels", "nowhere"), "'nowhere'"),
        (("--channels", "times"), "taken by the dataset format"),
        (("--channels", "event"), "'event'"),
        (("--event-column", "time"), "at once"),
        (("--names", "gone.json"), "gone.json"),
        (("--labels", "gone.csv"), "gone.csv"),
        (("--start-column", "event"), "ISO timestamp"),
    ],
)
def test_options_that_cannot_be(
    tmp_path: Path, oscar: Callable[..., Any], words: tuple[str, ...], expected: str
) -> None:
    (tmp_path / "a.csv").write_bytes(GOOD)
    oscar("import", tmp_path / "a.csv", "--out", tmp_path / "out", *words).refused(expected)
    assert [item.name for item in tmp_path.iterdir()] == ["a.csv"]


def test_an_existing_out_is_kept(tmp_path: Path, oscar: Callable[..., Any]) -> None:
    (tmp_path / "a.csv").write_bytes(GOOD)
    (tmp_path / "b.csv").write_bytes(GOOD + b"s1,x,A\n")
    first = import_tables([tmp_path / "a.csv"], tmp_path / "out")
    oscar("import", tmp_path / "a.csv", "--out", tmp_path / "out").refused("exists already", "--force")
    oscar("import", tmp_path / "b.csv", "--out", tmp_path / "out", "--force").refused("row 4")
    assert read_dataset(tmp_path / "out").info["digest"] == first.digest
    assert sorted(item.name for item in tmp_path.iterdir()) == ["a.csv", "b.csv", "out"]


LARGE = {
    "a.csv": MANY[:3000],
    "a.csv.gz": gzip.compress(MANY[:30_000]),
    "a.parquet": parquet(
        seq_id=[f"s{i % 7}" for i in range(300)], time=list(range(300)), event=[f"E{i % 50}" for i in range(300)]
    ),
    "a.jsonl": b"".join(b'{"seq_id": "s%d", "time": %d, "event": "A"}\n' % (i % 5, i) for i in range(60)),
}  # fmt: skip


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(name=st.sampled_from(sorted(LARGE)), data=st.data())
def test_damage_anywhere_is_an_import_or_one_line(name: str, data: st.DataObject) -> None:
    """Whatever bytes a file is made of: an OscarError of one line, or a dataset that can be read; nothing else left."""
    whole = LARGE[name]
    at = data.draw(st.integers(0, len(whole)))
    kind = data.draw(st.sampled_from(["cut", "flip", "insert", "drop"]))
    noise = data.draw(st.binary(min_size=1, max_size=8))
    damaged = {
        "cut": whole[:at],
        "flip": whole[:at] + bytes(b ^ 0x55 for b in whole[at : at + 3]) + whole[at + 3 :],
        "insert": whole[:at] + noise + whole[at:],
        "drop": whole[:at] + whole[at + len(noise) :],
    }[kind]
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder) / name, Path(folder) / "out"
        file.write_bytes(damaged)
        line = f"{name} was taken"
        try:
            import_tables([file], out, ImportOptions(skip_bad_rows=data.draw(st.booleans())))
            assert len(read_dataset(out)) > 0
        except OscarError as error:
            line = str(error)
        assert name in line
        assert "\n" not in line
        assert {item.name for item in Path(folder).iterdir()} == {name, *(["out"] if "taken" in line else [])}
