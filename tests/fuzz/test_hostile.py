"""Input made to harm: bombs, depth, numbers and names beyond all measure, paths that lead elsewhere."""

from __future__ import annotations

import ast
import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import oscar_causal
from oscar_causal.data import stream
from oscar_causal.data.folders import read_json
from oscar_causal.data.importers import ImportOptions, import_tables
from oscar_causal.data.inspect import inspect_dataset
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
from oscar_causal.data.importers import import_tables
from oscar_causal.errors import OscarError
def peak_mb():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) >> 10
before = peak_mb()
try:
    import_tables([sys.argv[1]], sys.argv[2])
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
