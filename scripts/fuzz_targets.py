"""What is fuzzed: every reader of files, each with valid seeds and one function that reads damaged bytes.

A reader may take the input or refuse it with an OscarError of one line. Anything else is a finding.
"""

from __future__ import annotations

import gzip
import io
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from mutations import Rng, mutate_bytes, mutate_json, mutate_table

from oscar_causal.errors import OscarError

RECORDS: list[dict[str, Any]] = [
    {
        "sequence_id": f"car {k}",
        "subject_id": f"owner {k // 2}",
        "events": ["A", "B", "C x", "A"][: 2 + k % 3],
        "times": [0.0, 1.0, 1.0, 3600.5][: 2 + k % 3],
        "mileage": [1.0, None, 3.0, 4.0][: 2 + k % 3],
        "static": [("variant", "x")],
        "labels": ["fault", "é"][: k % 3],
        "label_times": [5.0, 6.0][: k % 3],
    }
    for k in range(9)
]
RULES = ["A & (B | C) & !D", "A then B within 3600s", 'A >= 3 | !("x y" & B)', "!(A then B then C)", "(((A)))"]


@dataclass(frozen=True)
class Target:
    """One reader."""

    name: str
    seeds: Sequence[bytes]
    read: Callable[[bytes], Any]
    share: int
    """How many of 100 inputs of the campaign are for this reader."""
    kind: str = "bytes"
    """json and parquet: half of the inputs are changed as values, not as bytes."""
    quick: Callable[[bytes], Any] | None = None
    """Reads the damaged file alone, where `read` goes on to use it: for many inputs in little time."""

    def make(self, rng: Rng) -> bytes:
        """One input."""
        seed = self.seeds[int(rng.integers(len(self.seeds)))]
        if self.kind == "json" and rng.random() < 0.6:
            return mutate_json(seed, rng)
        if self.kind == "parquet" and rng.random() < 0.5:
            return mutate_table(seed, rng)
        return mutate_bytes(seed, rng, self.seeds)

    def finding(self, data: bytes, *, quick: bool = False) -> str | None:
        """What is wrong with how this input is read; None when it is taken, or refused in one line."""
        try:
            (self.quick if quick and self.quick else self.read)(data)
        except OscarError as error:
            return "more than one line: " + repr(error) if "\n" in str(error) or not str(error) else None
        except Exception as error:  # noqa: BLE001 - this is what we look for
            return f"{type(error).__name__}: {error}"[:500]
        return None


def targets(folder: Path) -> list[Target]:
    """All readers; they work in `folder`, which is made."""
    folder.mkdir(parents=True)
    world = _make_world(folder / "whole")
    return [
        *_tables(folder),
        Target("rule", [rule.encode() for rule in RULES], _read_rule, 24),
        _file(
            folder, "rules.json", _json({"fault": RULES[0], "x": {"rule": RULES[1], "from": "2024-01-01"}}), _rules, 8
        ),
        _file(folder, "names.json", _json({"A": "a thing", "B": "é"}), _names, 4),
        _file(folder, "ids.json", _json(["car 1", "car 2"]), _ids, 2),
        _file(
            folder, "knowledge.json", _json({"forbidden": ["A"], "labels": {"x": {"required": ["B"]}}}), _knowledge, 2
        ),
        *[_inside(folder, world / "fleet", *file, _dataset, _read_dataset) for file in DATASET_FILES],
        *[_inside(folder, world / "model", *file, _model, quick) for *file, quick in MODEL_FILES],
        _inside(folder, world / "folds", "folds.json", "json", 3, _model, _read_folds),
        *[_inside(folder, world / "results", *file, _results, quick) for *file, quick in RESULT_FILES],
        *[_inside(folder, world / "run", *file, _checkpoint) for file in CHECKPOINT_FILES],
    ]


NAMES = (
    "import table.csv", "import table.csv.gz", "import table.jsonl", "import table.parquet", "rule", "rules.json",
    "names.json", "ids.json", "knowledge.json", "fleet/dataset.json", "fleet/sequences/part-00000.parquet",
    "model/config.json", "model/vocabulary.json", "model/quality.json", "model/training.json",
    "model/model.safetensors", "folds/folds.json", "results/run.json", "results/verdicts/part-00000.parquet",
    "results/causes/part-00000.parquet",
    "run/checkpoint-000000002/state.json", "run/checkpoint-000000002/state.safetensors",
)  # fmt: skip
"""Of all targets."""


def _read_config(folder: Path) -> None:
    from oscar_causal.density.checkpoint import _read_config

    _read_config(folder / "config.json")


def _read_vocabulary(folder: Path) -> None:
    from oscar_causal.data.folders import read_json
    from oscar_causal.data.vocabulary import Vocabulary

    Vocabulary.from_json(read_json(folder / "vocabulary.json"))


def _read_quality(folder: Path) -> None:
    from oscar_causal.density.checkpoint import read_quality

    read_quality(folder, labels=2)


def _read_subjects(folder: Path) -> None:
    from oscar_causal.density.folds import read_subjects

    read_subjects(folder)


def _read_weights(folder: Path) -> None:
    from oscar_causal.density.checkpoint import load_tensors

    load_tensors(folder / "model.safetensors")


def _read_folds(folder: Path) -> None:
    from oscar_causal.density.folds import _read_plan

    _read_plan(folder / "folds.json")


def _read_run(folder: Path) -> None:
    from oscar_causal.discovery.results import read_run

    read_run(folder)


def _read_verdicts(folder: Path) -> None:
    from oscar_causal.discovery.results import read_table

    read_table(folder, "verdicts").to_pylist()


def _read_causes(folder: Path) -> None:
    from oscar_causal.discovery.results import read_table

    read_table(folder, "causes").to_pylist()


def _read_dataset(folder: Path) -> None:
    from oscar_causal.data.sequences import read_dataset

    read_dataset(folder)


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _tables(folder: Path) -> list[Target]:
    csv = b"sequence_id,time,event,mileage\n" + b"".join(b"s%d,%d,E%d,%d\n" % (i % 3, i, i % 4, i) for i in range(20))
    quoted = b'id;timestamp;code\n1;2024-01-01T00:00:00Z;"a ""b"""\n1;2024-01-02;"c\nd"\n'.replace(b";", b",")
    lines = b"".join(b'{"id": "s%d", "t": %d.5, "event": "E%d", "labels": null}\n' % (i % 3, i, i) for i in range(12))
    long = pa.table({"seq_id": ["a", "b"] * 4, "time": list(range(8)), "event": ["X", "Y", "Z", "X"] * 2})
    sink = io.BytesIO()
    pq.write_table(long, sink)
    return [
        _importer(folder, "table.csv", [csv, quoted], 4),
        _importer(folder, "table.csv.gz", [gzip.compress(csv, mtime=0)], 2),
        _importer(folder, "table.jsonl", [lines], 4),
        _importer(folder, "table.parquet", [sink.getvalue()], 4, kind="parquet"),
    ]


def _importer(folder: Path, name: str, seeds: Sequence[bytes], share: int, kind: str = "bytes") -> Target:
    from oscar_causal.data.importers import ImportOptions, import_tables
    from oscar_causal.data.importers.long_table import open_table

    place = folder / f"import-{name}"
    place.mkdir()

    def read(data: bytes) -> None:
        (place / name).write_bytes(data)
        try:
            import_tables([place / name], place / "out", ImportOptions(skip_bad_rows=len(data) % 2 == 0), force=True)
            _dataset(place / "out")
        finally:
            left = [path.name for path in place.iterdir() if path.name not in (name, "out")]
            shutil.rmtree(place / "out", ignore_errors=True)
        if left:
            raise AssertionError(f"left behind: {left}")

    def quick(data: bytes) -> None:
        (place / name).write_bytes(data)
        table = open_table(place / name)
        for _ in table.batches(table.header):
            pass

    return Target(f"import {name}", seeds, read, share, kind, quick)


def _file(folder: Path, name: str, seed: bytes, read: Callable[[Path], Any], share: int) -> Target:
    path = folder / name

    def read_bytes(data: bytes) -> None:
        path.write_bytes(data)
        read(path)

    return Target(name, [seed], read_bytes, share, "json")


Read = Callable[[Path], Any]


def _inside(  # noqa: PLR0913
    folder: Path, whole: Path, name: str, kind: str, share: int, read: Read, quick: Read | None = None
) -> Target:
    """One file of a folder is damaged, the others are whole."""
    place = folder / f"{whole.name}-{name.replace('/', '-')}"
    shutil.copytree(whole, place)

    def read_bytes(data: bytes) -> None:
        (place / name).write_bytes(data)
        read(place)

    def quick_bytes(data: bytes) -> None:
        (place / name).write_bytes(data)
        (quick or read)(place)

    return Target(f"{whole.name}/{name}", [(whole / name).read_bytes()], read_bytes, share, kind, quick_bytes)


def _read_rule(data: bytes) -> None:
    from oscar_causal.data.rules import format_rule, parse

    rule = parse(data.decode("utf-8", "surrogateescape" if len(data) % 2 else "replace"))
    if parse(format_rule(rule)) != rule:
        raise AssertionError(f"canonical text is another rule: {format_rule(rule)[:200]}")


def _rules(path: Path) -> None:
    from oscar_causal.data.rules import read_rules, write_rules

    write_rules(path.with_name("rules-again.json"), read_rules(path))


def _names(path: Path) -> None:
    from oscar_causal.data.importers.names import read_names

    pa.array(list(read_names(path).items()) or [("", "")])


def _knowledge(path: Path) -> None:
    from oscar_causal.discovery.knowledge import read_knowledge

    str(read_knowledge(path)).encode()


def _ids(path: Path) -> None:
    from oscar_causal.data.select import read_ids

    pa.array(read_ids(path), pa.string())


def _dataset(path: Path) -> None:
    from oscar_causal.data.inspect import inspect_dataset
    from oscar_causal.data.rows import SequenceRows
    from oscar_causal.data.sequences import read_dataset

    data = read_dataset(path)
    _ = data.times, data.static(), data.label_times(), [data.channel(name) for name in data.channels]
    SequenceRows(path).take([0])
    inspect_dataset(path)


def _model(path: Path) -> None:
    from oscar_causal.data.sequences import from_table
    from oscar_causal.density.folds import load_models
    from oscar_causal.discovery.oneshot import DiscoveryConfig, discover
    from oscar_causal.discovery.prefix import PrefixConfig

    models = load_models(path)
    data = from_table(pa.Table.from_pylist(RECORDS[:1], schema=_SCHEMA))
    config = DiscoveryConfig(estimator="prefix", prefix=PrefixConfig(context=1, contexts=2), labels="predicted")
    for boundaries in discover(models.mean, data, config):
        str([models.trusted(item.label) for item in boundaries]).encode()
    models.seen_in_training(data.subject_ids)


def _results(path: Path) -> None:
    from oscar_causal.discovery.results import read_run, read_table
    from oscar_causal.verbs.discover import summarise_results

    json.dumps(read_run(path), ensure_ascii=False).encode()
    for name in ("verdicts", "evidence", "causes"):
        read_table(path, name)
    summarise_results(path)


def _checkpoint(path: Path) -> None:
    from oscar_causal.density.checkpoint import load_checkpoint

    load_checkpoint(path)


def _make_world(folder: Path) -> Path:
    """A dataset, a model, two folds, a checkpoint and results, as small as can be."""
    from oscar_causal.data.sequences import from_table
    from oscar_causal.data.writer import write_dataset
    from oscar_causal.density.fitting import train
    from oscar_causal.density.settings import TrainConfig
    from oscar_causal.discovery.local import discover_folder

    table = pa.Table.from_pylist(RECORDS, schema=_SCHEMA)
    write_dataset(folder / "fleet", [table])
    config = TrainConfig(steps=2, batch_tokens=64, min_context=1, max_length=8, validation=0.4, checkpoint_seconds=0.0)
    data = from_table(table)
    train(data, folder / "model", config)
    train(data, folder / "folds", config, folds=2)
    _save_checkpoint(folder / "run")
    discover_folder(folder / "model", folder / "fleet", folder / "results")
    return folder


def _save_checkpoint(folder: Path) -> None:
    import torch

    from oscar_causal.density.checkpoint import save_checkpoint

    folder.mkdir(exist_ok=True)
    state = {"run": {"step": 2, "best_loss": 1.0, "history": []}, "config": {"steps": 2}}
    save_checkpoint(folder, 2, {"network.weight": torch.zeros(3, 4)}, state)


_SCHEMA = pa.schema(
    [
        ("sequence_id", pa.string()),
        ("subject_id", pa.string()),
        ("events", pa.list_(pa.string())),
        ("times", pa.list_(pa.float64())),
        ("mileage", pa.list_(pa.float32())),
        ("static", pa.map_(pa.string(), pa.string())),
        ("labels", pa.list_(pa.string())),
        ("label_times", pa.list_(pa.float64())),
    ]
)

DATASET_FILES = (("dataset.json", "json", 4), ("sequences/part-00000.parquet", "parquet", 8))
MODEL_FILES = (
    ("config.json", "json", 5, _read_config),
    ("vocabulary.json", "json", 4, _read_vocabulary),
    ("quality.json", "json", 5, _read_quality),
    ("training.json", "json", 3, _read_subjects),
    ("model.safetensors", "bytes", 4, _read_weights),
)
RESULT_FILES = (
    ("run.json", "json", 4, _read_run),
    ("verdicts/part-00000.parquet", "parquet", 3, _read_verdicts),
    ("causes/part-00000.parquet", "parquet", 3, _read_causes),
)
CHECKPOINT_FILES = (
    ("checkpoint-000000002/state.json", "json", 2),
    ("checkpoint-000000002/state.safetensors", "bytes", 2),
)
