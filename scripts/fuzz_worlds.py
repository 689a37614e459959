"""What `fuzz.py` changes: a small sound world, and which verbs read which of its files.

Datasets, models, results and populations are the golden folders of the tests, without digests and row counts: with
them most changed tables would be refused before they are read.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sqlite3
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fuzz_logs
import pyarrow as pa
from fuzz_target import forget_checksums

GOLDEN = Path(__file__).parents[1] / "tests" / "golden"


@dataclass(frozen=True)
class Case:
    """A verb's words, and the file that is changed before it runs; paths are relative to the world."""

    words: tuple[str, ...]
    file: str
    kind: str
    share: float


def make_world(folder: Path) -> None:
    """Write everything the cases name."""
    folder.mkdir(parents=True)
    for name in ("dataset-1", "model-1", "folds-1", "results-1", "population-2"):
        shutil.copytree(GOLDEN / name, folder / name.rsplit("-", 1)[0])
    _forget(folder / "dataset" / "dataset.json", "digest")
    _forget(folder / "results" / "run.json", "rows", dataset={"path": "dataset"}, model={"path": "model"})
    (folder / "knowledge.json").write_text(json.dumps(KNOWLEDGE))
    (folder / "sequence.json").write_text(json.dumps(SEQUENCE))
    (folder / "ids.json").write_text(json.dumps(["drive 003", "drive 004", "drive 150"]))
    _verb(folder, "select", "dataset", "--last", "6", "--out", "few")
    _forget(folder / "few" / "dataset.json", "digest")
    forget_checksums(folder / "few")
    _verb(folder, "export", "dataset", "--out", "tables")
    _verb(folder, "export", "dataset", "--out", "flat", "--format", "parquet")
    _verb(folder, "baseline", "iamb", "dataset", "--out", "classical", "--workers", "1")
    forget_checksums(folder / "classical")
    _write_logs(folder)


KNOWLEDGE = {"excluded": ["B1000"], "labels": {"steering degraded": {"forbidden": ["U0428"], "required": ["C0051"]}}}
SEQUENCE = {"events": ["B1000", "C0051", "U0126", "P0300"], "times": [0, 30.5, 30.5, 61], "mileage": [1, 2, None, 4]}


def _forget(path: Path, *keys: str, **new: Any) -> None:
    told = json.loads(path.read_text())
    path.write_text(json.dumps({**{key: value for key, value in told.items() if key not in keys}, **new}))


def _verb(folder: Path, *words: str) -> None:
    from oscar_causal.cli import main

    os.chdir(folder)
    sys.argv = ["oscar", *words, "--quiet"]
    try:
        main()
    except SystemExit as ended:
        if ended.code:
            raise RuntimeError(f"oscar {' '.join(words)}: exit {ended.code}") from ended


def _write_logs(folder: Path) -> None:
    logs, ocel = folder / "logs", fuzz_logs.ocel()
    logs.mkdir()
    lines = [{"id": f"s{k % 3}", "t": k + 0.5, "event": f"E{k % 4}", "labels": None} for k in range(12)]
    for name, text in {
        "events.jsonl": "".join(json.dumps(line) + "\n" for line in lines),
        "log.xes": fuzz_logs.xes(),
        "log.jsonocel": json.dumps(ocel),
        "log.xmlocel": fuzz_logs.ocel_xml(ocel),
        "easytpp.json": json.dumps(fuzz_logs.easytpp()),
    }.items():
        (logs / name).write_text(text)
    write_sqlite(logs / "log.sqlite", ocel)
    fuzz_logs.make_meds(folder / "meds")
    _write_hugging_face(folder / "hf")


def write_sqlite(path: Path, log: dict[str, Any]) -> None:
    base = sqlite3.connect(path)
    tables = {
        "event": ("ocel_id, ocel_type", [(e["id"], e["type"]) for e in log["events"]]),
        "object": ("ocel_id, ocel_type", [(o["id"], o["type"]) for o in log["objects"]]),
        "event_object": (
            "ocel_event_id, ocel_object_id, ocel_qualifier",
            [(e["id"], to["objectId"], "of") for e in log["events"] for to in e["relationships"]],
        ),
        "event_map_type": ("ocel_type, ocel_type_map", [("place", "place"), ("send", "send")]),
        "object_map_type": ("ocel_type, ocel_type_map", [("order", "order")]),
        **{
            f"event_{kind}": (
                "ocel_id, ocel_time, channel",
                [(e["id"], e["time"], "web") for e in log["events"] if e["type"] == kind],
            )
            for kind in ("place", "send")
        },
        "object_order": (
            "ocel_id, ocel_time, ocel_changed_field, price",
            [("o1", "1970-01-01", None, 5), ("o2", "2024-05-01T10:00:00Z", "price", 7)],
        ),
    }
    for name, (columns, rows) in tables.items():
        base.execute(f"CREATE TABLE {name} ({columns})")
        base.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns.split(',')))})", rows)
    base.commit()
    base.close()


def _write_hugging_face(folder: Path) -> None:
    table = pa.table({"sequence_id": ["a", "b"], "events": [["X", "Y"], ["Y"]], "times": [[0.0, 1.0], [0.5]]})
    (folder / "train").mkdir(parents=True)
    (folder / "dataset_dict.json").write_text(json.dumps({"splits": ["train"]}))
    state = {"_data_files": [{"filename": "data.arrow"}], "_fingerprint": "0", "_split": "train"}
    (folder / "train" / "state.json").write_text(json.dumps(state))
    with pa.OSFile(str(folder / "train" / "data.arrow"), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)


def _cases(words: str, share: float, *files: str) -> list[Case]:
    """The same words with each of the files changed; together they get this share."""
    kinds = {".json": "json", ".jsonocel": "json", ".jsonl": "lines", ".parquet": "parquet", ".sqlite": "sqlite"}
    return [
        Case(tuple(shlex.split(words)), name, kinds.get(Path(name).suffix, "bytes"), share / len(files))
        for name in files
    ]


_PART = "sequences/part-00000.parquet"
_DATASET = ("dataset/dataset.json", f"dataset/{_PART}", f"dataset/{_PART}", "dataset/names.json", "dataset/rules.json")
_WHY = "dataset/why/part-00000.parquet"
_MODEL = tuple(f"model/{name}.json" for name in ("config", "vocabulary", "quality", "training"))
_FOLDS = ("folds/folds.json", "folds/fold-1/config.json", "folds/fold-0/quality.json", "folds/fold-1/training.json")
_RESULTS = (
    "results/run.json",
    "results/run.json",
    *(f"results/{t}/part-00000.parquet" for t in ("verdicts", "causes")),
)
_EVIDENCE = "results/evidence/part-00000.parquet"
_PRIOR = tuple(f"population/{name}" for name in ("population.json", "prior.json", "prior.parquet"))
_SUMS = tuple(f"population/statistics/{name}.parquet" for name in ("pairs", "cells", "labels", "patterns"))
_FLEET = ("population/boundaries.parquet", "population/labels.parquet", "population/rules.json")

CASES = [
    *_cases(
        "import tables/events.csv --out out --labels tables/labels.csv", 2, "tables/events.csv", "tables/labels.csv"
    ),
    *_cases("import flat/events.parquet --out out --labels flat/labels.parquet", 8, "flat/events.parquet"),
    *_cases("import flat/events.parquet --out out --labels flat/labels.parquet", 4, "flat/labels.parquet"),
    *_cases("import tables/events.csv --out out --names dataset/names.json", 1, "dataset/names.json"),
    *_cases("import logs/events.jsonl --out out --skip-bad-rows", 1, "logs/events.jsonl"),
    *_cases("import logs/log.xes --out out", 1, "logs/log.xes"),
    *_cases("import logs/log.jsonocel --out out --object-type order", 3, "logs/log.jsonocel"),
    *_cases("import logs/log.xmlocel --out out --object-type order", 1, "logs/log.xmlocel"),
    *_cases("import logs/log.sqlite --out out --object-type order", 6, "logs/log.sqlite"),
    *_cases("import logs/easytpp.json --out out", 3, "logs/easytpp.json"),
    *_cases("import meds --out out", 4, "meds/data/0.parquet", "meds/metadata/subject_splits.parquet"),
    *_cases("import hf --out out", 2, "hf/dataset_dict.json", "hf/train/state.json"),
    *_cases("inspect dataset", 8, *_DATASET, _WHY),
    *_cases("export dataset --out out", 8, *_DATASET),
    *_cases("export dataset --out out --format parquet", 3, *_DATASET),
    *_cases("export dataset --out out --format meds", 3, *_DATASET),
    *_cases("select dataset --out out --last 5", 3, *_DATASET, _WHY),
    *_cases("select dataset --out out --ids ids.json", 2, "ids.json", f"dataset/{_PART}"),
    *_cases("select dataset --out out --fraction 0.5", 2, f"dataset/{_PART}", _WHY),
    *_cases("baseline iamb few --out out --workers 1", 3, f"few/{_PART}", "few/dataset.json"),
    *_cases("check model few", 6, *_MODEL, f"few/{_PART}"),
    *_cases("check folds few", 2, *_FOLDS),
    *_cases("discover model few --out out --contexts 36", 6, *_MODEL, f"few/{_PART}", "few/dataset.json"),
    *_cases("discover folds few --out out --contexts 36", 2, *_FOLDS),
    *_cases("discover model few --out out --contexts 36 --knowledge knowledge.json", 1, "knowledge.json"),
    *_cases("discover model few --out out --contexts 36 --population population", 3, *_PRIOR),
    *_cases("explain model sequence.json --contexts 36", 5, "sequence.json", *_MODEL),
    *_cases("explain model 'drive 155' --dataset few --contexts 36", 2, f"few/{_PART}"),
    *_cases("report results --out out.html", 8, *_RESULTS, _EVIDENCE, f"dataset/{_PART}", "dataset/rules.json", _WHY),
    *_cases("report results --out out.html", 2, "model/quality.json", "model/config.json", "dataset/names.json"),
    *_cases("report results --out out.html --population population", 3, "population/population.json", *_FLEET),
    *_cases("graph results --out out.json", 4, *_RESULTS),
    *_cases("graph results --out out.graphml", 2, *_RESULTS[2:]),
    *_cases("graph population --population --out out.csv", 2, "population/population.json", _FLEET[0]),
    *_cases("score results --details", 6, *_RESULTS, _EVIDENCE, f"dataset/{_PART}", "dataset/rules.json", _WHY),
    *_cases("explain-run results", 6, *_RESULTS, "model/quality.json", "model/training.json", "model/config.json"),
    *_cases("population results --out out --looks 0", 3, *_RESULTS, _EVIDENCE),
    *_cases("population results --out out --looks 0 --classical classical", 2, "classical/boundaries.jsonl"),
    *_cases("population population --out out --looks 0", 3, "population/population.json", *_SUMS),
]
