"""Input made to harm: bombs, depth, numbers and names beyond all measure, paths that lead elsewhere."""

from __future__ import annotations

import ast
import gzip
import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fuzz_logs import ocel, ocel_xml
from fuzz_worlds import write_sqlite

import oscar_causal
from oscar_causal.data import stream
from oscar_causal.data.folders import read_json
from oscar_causal.data.importers import ImportOptions, import_tables, ocel_log
from oscar_causal.data.importers.text_source import TextSource
from oscar_causal.data.inspect import inspect_dataset
from oscar_causal.data.readers import read_long
from oscar_causal.data.rows import SequenceRows
from oscar_causal.data.rules import parse, read_rules
from oscar_causal.data.sequences import from_records, read_dataset
from oscar_causal.data.writer import write_dataset
from oscar_causal.errors import FolderError, OscarError

HEADER = b"sequence_id,time,event\n"


def packed(path: Path, pieces: int, piece: bytes) -> Path:
    with gzip.open(path, "wb", compresslevel=9) as file:
        file.write(HEADER)
        for _ in range(pieces):
            file.write(piece)
    return path


_MEASURED = """
import re, sys
from pathlib import Path
from oscar_causal.data.importers import ImportOptions, import_tables
from oscar_causal.errors import OscarError
def peak_mb():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) >> 10
before = peak_mb()
try:
    import_tables([sys.argv[1]], sys.argv[2], ImportOptions(format=(sys.argv + [None])[3]))
    print("taken")
except OscarError as error:
    print(error)
print(peak_mb() - before)
"""


STATUS = Path("/proc/self/status")


@pytest.mark.skipif(not STATUS.exists() or "VmHWM" not in STATUS.read_text(), reason="no peak of memory to read")
@pytest.mark.parametrize("piece", [b"A" * (1 << 20), b'"' + b"A" * (1 << 20), b"s,0,A\n" * (1 << 15)], ids=len)
def test_a_gzip_bomb_takes_little_memory(tmp_path: Path, piece: bytes) -> None:
    """256 MB in a few hundred kB, as one endless cell, one endless quotation or rows; less than that is in memory."""
    pieces = 256 if len(piece) > 1 << 19 else 24
    bomb = packed(tmp_path / "bomb.csv.gz", pieces, piece)
    assert bomb.stat().st_size < 1 << 20
    command = [sys.executable, "-c", _MEASURED, str(bomb), str(tmp_path / "out")]
    told, grown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=200).stdout.splitlines()
    assert told == "taken" if piece.endswith(b"\n") else "8 MB" in told
    assert int(grown) < 200, f"{grown} MB"


@pytest.mark.parametrize("limit", ["MOST_ROWS", "MOST_BYTES"])
def test_a_parquet_bomb_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    """Repetition packs well: 24 MB in a few kB. (The limits are lowered, so that the bomb is quick to build.)"""
    monkeypatch.setattr(stream, limit, 50_000)
    whole, count = tmp_path / "fleet", 60_000
    write_dataset(whole, [pa.table({"sequence_id": ["a"], "events": [["A"]], "times": [[0.0]]})])
    (whole / "checksums.json").unlink()
    part = next((whole / "sequences").iterdir())
    rows = {"sequence_id": pa.array(["x" * 400] * count), "events": [["A"]] * count, "times": [[0.0]] * count}
    pq.write_table(pa.table(rows), part, compression="zstd", use_dictionary=False)
    assert part.stat().st_size < 50_000
    for read in (read_dataset, lambda path: SequenceRows(path).take([0]), inspect_dataset):
        with pytest.raises(FolderError, match=r"expected row groups of at most 50,000|expected 1 sequences"):
            read(whole)


def test_starts_that_no_calendar_knows(tmp_path: Path) -> None:
    rows = {
        "sequence_id": ["a"],
        "events": [["A"]],
        "times": [[0.0]],
        "start": pa.array([2**62], pa.timestamp("us", "UTC")),
    }
    with pytest.raises(OscarError, match="years 1 to 9999"):
        write_dataset(tmp_path / "fleet", [pa.table(rows)])


@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 200_000, "9" * 100_000, '{"a": 1e999}', '{"a": "\\udc00"}'])
def test_json_beyond_all_measure(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    for read in (read_json, read_rules):
        with pytest.raises(OscarError) as told:
            read(path)
        assert "\n" not in str(told.value)
        assert len(str(told.value)) < 1000


@pytest.mark.parametrize("rule", ["(" * 100_000 + "A" + ")" * 100_000, "!" * 100_000 + "A", "A & " * 50_000 + "A"])
def test_rules_beyond_all_measure(rule: str) -> None:
    told = ""
    try:
        parse(rule)
    except OscarError as error:
        told = str(error)
    assert len(told) < 1000


VIEW = (
    "ALTER TABLE event RENAME TO event_old; CREATE VIEW event AS WITH RECURSIVE c(x) AS "
    "(SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x ocel_id, 'a' ocel_type FROM c{};"
)


@pytest.mark.parametrize(
    ("statements", "words"),
    [
        (VIEW.format(" WHERE x < 0"), ("'event'", "found none")),
        (VIEW.format(""), ("'event'", "found none")),
        ("DROP TABLE object; CREATE VIRTUAL TABLE object USING fts5(ocel_id, ocel_type);", ("'object'", "found none")),
        ("ALTER TABLE event_place ADD COLUMN x AS (hex(zeroblob(1000000)));", ("'event_place'", "'x'", "computed")),
        ("UPDATE event_place SET channel = zeroblob(9000000);", ("too big",)),
        ("ALTER TABLE event_place DROP COLUMN ocel_id;", ("'event_place'", "'ocel_id'")),
        ("DROP TABLE event_object;", ("'event_object'", "found none")),
    ],
)
def test_sqlite_that_runs_or_hides_something(tmp_path: Path, statements: str, words: tuple[str, ...]) -> None:
    log = tmp_path / "log.sqlite"
    write_sqlite(log, ocel())
    with closing(sqlite3.connect(log)) as base:
        base.executescript(statements)
    with pytest.raises(OscarError, match=".*".join(words)):
        import_tables([log], tmp_path / "out", ImportOptions(object_type="order"))


def test_sqlite_with_a_trigger_is_read(tmp_path: Path) -> None:
    """Nothing fires when a file is only read; names in capitals are the same tables."""
    log = tmp_path / "log.sqlite"
    write_sqlite(log, ocel())
    with closing(sqlite3.connect(log)) as base:
        base.executescript("CREATE TRIGGER t AFTER INSERT ON event BEGIN DELETE FROM object; END;")
        base.executescript("ALTER TABLE object_order RENAME TO x; ALTER TABLE x RENAME TO Object_Order;")
    assert import_tables([log], tmp_path / "out", ImportOptions(object_type="order")).sequences == 2


def test_sqlite_that_takes_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log.sqlite"
    write_sqlite(log, ocel())
    monkeypatch.setattr(ocel_log, "STEPS", 1)
    monkeypatch.setattr(ocel_log, "_countdown", lambda left: lambda: True)
    with pytest.raises(OscarError, match="more work to read"):
        import_tables([log], tmp_path / "out", ImportOptions(object_type="order"))


@pytest.mark.parametrize("form", ["json", "xml", "sqlite"])
def test_a_log_that_is_held_in_memory_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    path = tmp_path / f"log.{form}"
    if form == "sqlite":
        write_sqlite(path, ocel())
    else:
        path.write_text(json.dumps(ocel()) if form == "json" else ocel_xml(ocel()))
    options = ImportOptions(format="ocel", object_type="order")
    assert import_tables([path], tmp_path / "out", options).sequences == 2
    monkeypatch.setattr(ocel_log, "MOST_BYTES", 100)
    with pytest.raises(OscarError, match="at most 0 MB of text, as it is held in memory; cut it"):
        import_tables([path], tmp_path / "again", options)


@pytest.mark.parametrize("begin", [b'<log><trace><string key="concept:name" value="', b"<log><!-- "])
def test_one_endless_tag(tmp_path: Path, begin: bytes) -> None:
    """Packed a few kB; expat would read it again with every piece."""
    path = tmp_path / "log.xes.gz"
    with gzip.open(path, "wb") as file:
        file.write(begin)
        for _ in range(64):
            file.write(b"x" * (1 << 20))
    with pytest.raises(OscarError, match=r"line 1: expected tags and comments of at most 8 MB"):
        import_tables([path], tmp_path / "out")


RECORD = {"time_since_start": [0, 1.5], "type_event": [3, 1], "seq_idx": 0}


@pytest.mark.parametrize("array", [False, True])
def test_easytpp_is_read_record_by_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, array: bool) -> None:
    """However small the blocks, and whether the records stand in an array or in lines."""
    records = [{**RECORD, "seq_idx": k, "type_event": [k, "é"]} for k in range(50)]
    text = json.dumps(records, indent=1) if array else "\n".join(json.dumps(record) for record in records) + "\n"
    (tmp_path / "train.json").write_text(text, encoding="utf-8")
    whole = read_long(tmp_path / "train.json")
    assert whole.sequence_ids.to_pylist() == [f"train-{k}" for k in range(50)]
    assert whole.events_of(7) == ["7", "é"]
    monkeypatch.setattr(TextSource, "read", lambda self, size=97, read=TextSource.read: read(self, min(size, 97)))
    again = read_long(tmp_path / "train.json")
    assert [again.events_of(k) for k in range(50)] == [whole.events_of(k) for k in range(50)]


@pytest.mark.parametrize("text", ['[{"a": 1}', '[{"a": 1} {"a": 1}]', '[{"a": 1}] x', '{"a": 1}\n{"a"', '[{"a": 1},]'])
def test_easytpp_that_is_broken(tmp_path: Path, text: str) -> None:
    (tmp_path / "train.json").write_text(text)
    with pytest.raises(OscarError, match="JSON array of records or one per line"):
        import_tables([tmp_path / "train.json"], tmp_path / "out", ImportOptions(format="easytpp", skip_bad_rows=True))


@pytest.mark.skipif(not STATUS.exists() or "VmHWM" not in STATUS.read_text(), reason="no peak of memory to read")
@pytest.mark.parametrize("endless", [False, True])
def test_an_easytpp_bomb_takes_little_memory(tmp_path: Path, endless: bool) -> None:
    bomb = tmp_path / "train.easytpp.json.gz"
    line = json.dumps({**RECORD, "type_event": [1] * 3000, "time_since_start": [0] * 3000}).encode() + b"\n"
    with gzip.open(bomb, "wb") as file:
        for _ in range(256):
            file.write(b'{"type_event": "' + b"A" * (1 << 20) if endless else line * 10)
    command = [sys.executable, "-c", _MEASURED, str(bomb), str(tmp_path / "out"), "easytpp"]
    told, grown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=200).stdout.splitlines()
    assert "8 MB" in told if endless else "again" in told  # every record has the same index
    assert int(grown) < 200, f"{grown} MB"


NAMES = ["../../escape", "/etc/passwd", "a/b", "..", "con\0trol", "C:\\x", "~root", "$(touch x)", "`id`", "x" * 5000]


def test_names_lead_nowhere(tmp_path: Path, oscar: Callable[..., Any]) -> None:
    """Ids, events and labels are data: no file is named after them."""
    inside = tmp_path / "inside"
    inside.mkdir()
    table = pa.table(
        {
            "sequence_id": NAMES,
            "subject_id": NAMES,
            "events": [[name, "B"] for name in NAMES],
            "times": [[0.0, 1.0]] * len(NAMES),
            "labels": [[name] for name in NAMES],
        }
    )
    write_dataset(inside / "fleet", [table])
    assert oscar("inspect", inside / "fleet").code == 0
    assert oscar("export", inside / "fleet", "--out", inside / "tables").code == 0
    assert oscar("baseline", "iamb", inside / "fleet", "--out", inside / "boundaries").code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["inside"]
    made = {part for path in inside.rglob("*") for part in path.relative_to(inside).parts}
    assert not any(name.strip("./") in part for name in NAMES if name.strip("./") for part in made)


@pytest.mark.parametrize("name", ["\ud800", "a\udfff"])
def test_half_a_surrogate_pair_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(OscarError):
        from_records([{"sequence_id": name, "events": ["A"], "times": [0]}])
    (tmp_path / "t.jsonl").write_text(json.dumps({"id": "s", "time": 0, "event": name}) + "\n")
    with pytest.raises(OscarError, match="surrogate"):
        import_tables([tmp_path / "t.jsonl"], tmp_path / "out", ImportOptions())


SOURCES = [
    path
    for folder in (Path(oscar_causal.__file__).parent, Path(__file__).parents[2] / "scripts")
    for path in folder.rglob("*.py")
]
MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal", "joblib", "code", "pty"}
CALLS = {"eval", "exec", "compile", "__import__", "os.system", "os.popen", "torch.load", "torch.save", "pa.deserialize"}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_no_pickle_no_eval_no_shell(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found = {alias.name for alias in node.names} if isinstance(node, ast.Import) else {node.module or ""}
            assert not {name.split(".")[0] for name in found} & MODULES
        elif isinstance(node, ast.Call):
            assert ast.unparse(node.func) not in CALLS, ast.unparse(node)
            for keyword in node.keywords:
                risky = keyword.arg in ("shell", "allow_pickle", "trust_remote_code")
                assert not risky or ast.unparse(keyword.value) == "False", ast.unparse(node)
