"""What is fuzzed: the readers of files. `fuzz_logs` has the formats of others, `fuzz_fleet` populations."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import fuzz_fleet
import fuzz_logs
import pyarrow as pa
import pyarrow.parquet as pq
from fuzz_target import Target, file_target, forget_checksums, importer, inside, use_dataset

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


def targets(folder: Path) -> list[Target]:
    """All readers; they work in `folder`, which is made."""
    folder.mkdir(parents=True)
    world = _make_world(folder / "whole")
    return [
        *_tables(folder),
        Target("rule", [rule.encode() for rule in RULES], _read_rule, 24),
        file_target(
            folder, "rules.json", _json({"fault": RULES[0], "x": {"rule": RULES[1], "from": "2024-01-01"}}), _rules, 8
        ),
        file_target(folder, "names.json", _json({"A": "a thing", "B": "é"}), _names, 4),
        file_target(folder, "ids.json", _json(["car 1", "car 2"]), _ids, 2),
        file_target(
            folder, "knowledge.json", _json({"forbidden": ["A"], "labels": {"x": {"required": ["B"]}}}), _knowledge, 2
        ),
        *[inside(folder, world / "fleet", *file, use_dataset, _read_dataset) for file in DATASET_FILES],
        *[inside(folder, world / "model", *file, _model, quick) for *file, quick in MODEL_FILES],
        inside(folder, world / "folds", "folds.json", "json", 3, _model, _read_folds),
        *[inside(folder, world / "results", *file, _results, quick) for *file, quick in RESULT_FILES],
        *[inside(folder, world / "run", *file, _checkpoint) for file in CHECKPOINT_FILES],
        *fuzz_logs.log_targets(folder),
        *fuzz_fleet.fleet_targets(folder, world),
    ]


NAMES = (
    "import table.csv", "import table.csv.gz", "import table.jsonl", "import table.parquet", "rule", "rules.json",
    "names.json", "ids.json", "knowledge.json", "fleet/dataset.json", "fleet/sequences/part-00000.parquet",
    "model/config.json", "model/vocabulary.json", "model/quality.json", "model/training.json",
    "model/model.safetensors", "folds/folds.json", "results/run.json", "results/verdicts/part-00000.parquet",
    "results/causes/part-00000.parquet", "results/evidence/part-00000.parquet",
    "run/checkpoint-000000002/state.json", "run/checkpoint-000000002/state.safetensors",
    *fuzz_logs.NAMES, *fuzz_fleet.NAMES,
)  # fmt: skip
"""Of all targets."""


def _open_config(folder: Path) -> None:
    from oscar_causal.density.checkpoint import read_config

    read_config(folder / "config.json")


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


def _read_evidence(folder: Path) -> None:
    from oscar_causal.data.sequences import from_table
    from oscar_causal.discovery.evidence import Whereabouts, collect_results, merge

    data = from_table(pa.Table.from_pylist(RECORDS, schema=_SCHEMA))
    merge(collect_results(folder, Whereabouts.of(data)))


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
        importer(folder, "table.csv", [csv, quoted], 4),
        importer(folder, "table.csv.gz", [gzip.compress(csv, mtime=0)], 2),
        importer(folder, "table.jsonl", [lines], 4),
        importer(folder, "table.parquet", [sink.getvalue()], 4, kind="parquet"),
    ]


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
    forget_checksums(folder)
    _forget_rows(folder / "results" / "run.json")
    return folder


def _forget_rows(run: Path) -> None:
    """As earlier versions wrote it: with the number of rows at hand, most damaged tables would not be read at all."""
    told = json.loads(run.read_text())
    del told["rows"]
    run.write_text(json.dumps(told))


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
    ("config.json", "json", 5, _open_config),
    ("vocabulary.json", "json", 4, _read_vocabulary),
    ("quality.json", "json", 5, _read_quality),
    ("training.json", "json", 3, _read_subjects),
    ("model.safetensors", "bytes", 4, _read_weights),
)
RESULT_FILES = (
    ("run.json", "json", 4, _read_run),
    ("verdicts/part-00000.parquet", "parquet", 3, _read_verdicts),
    ("causes/part-00000.parquet", "parquet", 3, _read_causes),
    ("evidence/part-00000.parquet", "parquet", 3, _read_evidence),
)
CHECKPOINT_FILES = (
    ("checkpoint-000000002/state.json", "json", 2),
    ("checkpoint-000000002/state.safetensors", "bytes", 2),
)
