"""Does the fleet help one sequence? Presence, classical boundaries, interventions, close looks and `fused` compared.

    python scripts/bench_fleet.py --fleet decoy --out docs/results                      # two cores, about 15 minutes
    python scripts/bench_fleet.py --fleet temporal --sequences 200000 --preset base --steps 3000 --pool 3000 \
        --test 1500 --looks 8 --workers 14 --out docs/results                            # one GPU

Cars are split three ways: Tf_x, Tf_y and the classical methods learn from the same training cars; the pool is others,
unseen; every figure is from a third part. Nothing is tuned: all settings are the defaults. `--off-map` keeps one route
of every label with several routes out of the pool and the classical data (not out of Tf_y) and scores only sequences in
which that route fired.
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from oscar_causal.data.rules import EventIndex, Or, event_names, parse, positive_names, read_rules, reasons
from oscar_causal.data.select import Selection, select_sequences
from oscar_causal.data.sequences import Dataset, read_dataset
from oscar_causal.data.subjects import held_out, pack_subjects
from oscar_causal.data.synthetic import preset, write_fleet
from oscar_causal.density.fitting import train
from oscar_causal.density.folds import load_models
from oscar_causal.density.settings import preset_config
from oscar_causal.discovery.classical.features import FeatureConfig
from oscar_causal.discovery.classical.learning import learn_boundaries
from oscar_causal.discovery.classical.methods import BaselineConfig
from oscar_causal.discovery.classical.reading import read_per_sequence
from oscar_causal.discovery.evidence import FleetEvidence, Whereabouts, collect, merge
from oscar_causal.discovery.fleet_prior import Classical, fit_prior, read_prior, write_prior
from oscar_causal.discovery.fused import FusedConfig
from oscar_causal.discovery.intervention import InterventionConfig
from oscar_causal.discovery.local import one_thread_children
from oscar_causal.discovery.oneshot import DiscoveryConfig, discover
from oscar_causal.discovery.results import EVIDENCE_SCHEMA, VERDICT_SCHEMA
from oscar_causal.graph.assembling import raising_features
from oscar_causal.graph.calibration import calibrate, choose_sequences
from oscar_causal.graph.population import boundaries as fleet_boundaries
from oscar_causal.graph.population_folder import candidates_by_label
from oscar_causal.graph.rule_recovery import RuleRecoveryConfig, recover_rules

DECOY = {"temporal_labels": 0.95, "decoys": 0.9, "redundant_causes": 0.05, "near_misses": 0.7, "sequences": 12_000}
"""The demo fleet made like `temporal`: routes, order, windows, counts, and the other routes standing by."""
Pair = tuple[str, str]
Found = dict[Pair, frozenset[str]]
_state: dict[str, Any] = {}


def load(model: str, folder: str, device: str, contexts: int) -> None:
    torch.set_num_threads(1)
    torch.set_float32_matmul_precision("high")
    _state.update(models=load_models(model, device=device), data=read_dataset(folder), contexts=contexts)


def work(task: tuple[str, Any, Any]) -> Any:
    """One chunk: explained pairs as plain rows, or the statistics of close looks."""
    kind, population, chunk = task
    models, data = _state["models"], _state["data"]
    settings = InterventionConfig(contexts=_state["contexts"])
    if kind == "looks":
        return calibrate(models, data, chunk, read_prior(population), (settings, FusedConfig()))
    config = DiscoveryConfig(intervention=settings)
    if kind == "fused":
        config = replace(config, estimator="fused", fused=FusedConfig(population=population))
    indices = data.index_of(chunk)
    return [item for found in discover(models.models[0], data, config, indices=indices) for item in found]


def in_parallel(pool: ProcessPoolExecutor, kind: str, population: str | None, ids: list[str]) -> list[Any]:
    parts = [ids[k : k + 20] for k in range(0, len(ids), 20)]
    return list(pool.map(work, [(kind, population, part) for part in parts]))


def tables(items: Iterable[Any]) -> tuple[pa.Table, pa.Table]:
    items = list(items)
    verdicts = [{name: _plain(getattr(b, name)) for name in VERDICT_SCHEMA.names} for b in items]
    evidence = [
        {"sequence_id": b.sequence_id, "label": b.label}
        | {name: _plain(getattr(e, name)) for name in EVIDENCE_SCHEMA.names if hasattr(e, name)}
        for b in items
        for e in b.evidence
    ]
    return pa.Table.from_pylist(verdicts, schema=VERDICT_SCHEMA), pa.Table.from_pylist(evidence, schema=EVIDENCE_SCHEMA)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def truth_of(folder: Path, pairs: set[Pair]) -> dict[Pair, set[str]]:
    why: dict[Pair, set[str]] = {}
    for path in sorted((folder / "why").glob("*.parquet")):
        table = pq.read_table(path, columns=["sequence_id", "label", "event", "role"]).to_pydict()
        for sequence_id, label, event, role in zip(*table.values(), strict=True):
            if role == "cause" and (not pairs or (sequence_id, label) in pairs):
                why.setdefault((sequence_id, label), set()).add(event)
    return why


def true_rules(folder: Path) -> dict[str, list[Any]]:
    """Every rule of each label, hidden and drifted ones included; graded labels by their causes."""
    rules: dict[str, list[Any]] = {label: [item.rule] for label, item in read_rules(folder / "rules.json").items()}
    generator = json.loads((folder / "dataset.json").read_text())["generator"]
    for hidden in generator["hidden_rules"]:
        rules.setdefault(hidden["label"], []).append(parse(hidden["rule"]))
    return rules


def off_map_events(rules: dict[str, list[Any]]) -> dict[str, frozenset[str]]:
    """For labels with several routes: the events that only the last route has."""
    lost = {}
    for label, (rule, *_) in rules.items():
        if isinstance(rule, Or):
            known = {name for part in rule.items[:-1] for name in event_names(part)}
            lost[label] = frozenset(event_names(rule.items[-1])) - known
    return {label: events for label, events in lost.items() if events}


def precision_recall(found: Found, truth: dict[Pair, set[str]], pairs: list[Pair]) -> np.ndarray:
    rows = []
    for pair in pairs:
        hits = len(found.get(pair, frozenset()) & truth[pair])
        rows.append((hits / max(len(found.get(pair, ())), 1), hits / len(truth[pair])))
    return np.array(rows).reshape(-1, 2)


def f1(scores: np.ndarray) -> float:
    precision, recall = scores.mean(0)
    return float(2 * precision * recall / max(precision + recall, 1e-9))


def compare(first: np.ndarray, second: np.ndarray, rng: np.random.Generator) -> list[float]:
    """F1 of the first minus the second: estimate and the 95 % limits of a paired bootstrap over pairs."""
    draws = rng.integers(0, len(first), (1000, len(first)))
    gaps = [f1(first[rows]) - f1(second[rows]) for rows in draws]
    return [f1(first) - f1(second), *np.quantile(gaps, [0.025, 0.975]).tolist()]


def classical_of(data: Dataset, features: tuple[str, ...], workers: int) -> tuple[list[Any], Classical]:
    learnt = learn_boundaries(data, BaselineConfig(features=FeatureConfig(features)), workers=workers)
    positives = {item.label: item.positives for item in learnt}
    return learnt, Classical("iamb", raising_features(learnt), positives, pack_subjects(data.subject_ids))


def without(items: list[Any], lost: dict[str, frozenset[str]], why: dict[Pair, set[str]]) -> list[Any]:
    """Explained pairs in which no lost route fired."""
    return [b for b in items if not why.get((b.sequence_id, b.label), set()) & lost.get(b.label, frozenset())]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fleet", default="decoy", help="decoy (demo size), demo, small, hard, temporal or paper")
    parser.add_argument("--data", help="a fleet folder made before, with --model")
    parser.add_argument("--model")
    parser.add_argument("--sequences", type=int)
    parser.add_argument("--preset", default="tiny")
    parser.add_argument("--steps", type=int, default=1800)
    parser.add_argument("--validation", type=float, help="share of cars that are not trained on")
    parser.add_argument("--pool", type=int, default=1000)
    parser.add_argument("--test", type=int, default=500)
    parser.add_argument("--looks", type=int, default=40, help="sequences of each label to look at closely")
    parser.add_argument("--contexts", type=int, default=64)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--off-map", action="store_true")
    parser.add_argument("--rules", action="store_true", help="also read the recovered rules in each sequence")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default="docs/results")
    return parser.parse_args()


def make_and_train(args: argparse.Namespace, scratch: str) -> tuple[Path, Path, dict[str, Any]]:
    if args.data:
        return Path(args.data), Path(args.model), {}
    fleet, model = Path(scratch) / "fleet", Path(scratch) / "model"
    knobs = DECOY if args.fleet == "decoy" else {}
    knobs = knobs | ({"sequences": args.sequences} if args.sequences else {})
    write_fleet(
        preset("demo" if args.fleet == "decoy" else args.fleet, **knobs), args.seed, fleet, workers=args.workers
    )
    data = read_dataset(fleet)
    share = args.validation or min(0.25, 2.5 * (args.pool + args.test) / len(data))
    quality = train(data, model, preset_config(args.preset, steps=args.steps, seed=args.seed, validation=share))
    print("labels", {k: round(quality["labels"][k]["f1"], 3) for k in ("weighted", "macro")}, flush=True)
    return fleet, model, {k: quality["labels"][k]["f1"] for k in ("weighted", "macro")}


def split(args: argparse.Namespace, data: Dataset, model: Path) -> tuple[Dataset, list[str], list[str]]:
    """Training cars, and the ids of pool and test sequences, which share no car."""
    seen = load_models(model).seen_in_training(data.subject_ids)
    labelled = data.labels.lengths > 0
    share = args.pool / (args.pool + args.test)
    in_pool = held_out(data.subject_ids, share, seed=args.seed + 77)
    ids = np.array(data.sequence_ids.to_pylist(), dtype=object)
    pool = ids[~seen & labelled & in_pool][: args.pool].tolist()
    return data.take(np.flatnonzero(seen)), pool, ids[~seen & labelled & ~in_pool][: args.test].tolist()


def main() -> None:
    args = arguments()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    clock: dict[str, float] = {"begun": time.time()}
    with tempfile.TemporaryDirectory() as scratch:
        fleet, model, quality = make_and_train(args, scratch)
        clock["trained"] = time.time()
        data = read_dataset(fleet)
        training, pool_ids, test_ids = split(args, data, model)
        small = f"{scratch}/part"
        select_sequences(fleet, small, Selection(ids=tuple(pool_ids + test_ids)))
        rules = true_rules(fleet)
        lost = off_map_events(rules) if args.off_map else {}
        why = truth_of(fleet, set())
        fired = {s for (s, label), events in why.items() if events & lost.get(label, frozenset())}
        training = training.take([k for k, name in enumerate(training.sequence_ids.to_pylist()) if name not in fired])
        presence, _ = classical_of(training, ("presence",), args.workers)
        order, classical = classical_of(training, ("presence", "order"), args.workers)
        clock["classical"] = time.time()
        print("classical boundaries after", round(clock["classical"] - clock["begun"]), "s", flush=True)
        with one_thread_children():
            job = (str(model), small, device, args.contexts)
            with ProcessPoolExecutor(args.workers, get_context("spawn"), initializer=load, initargs=job) as workers:
                pooled = [b for part in in_parallel(workers, "intervention", None, pool_ids) for b in part]
                clock["pooled"] = time.time()
                part = read_dataset(small)
                evidence = population(workers, without(pooled, lost, why), part, classical, args, scratch)
                clock["looked"] = time.time()
                print("population after", round(clock["looked"] - clock["begun"]), "s", flush=True)
                alone = [b for some in in_parallel(workers, "intervention", None, test_ids) for b in some]
                clock["intervention"] = time.time()
                fused = [b for some in in_parallel(workers, "fused", f"{scratch}/population", test_ids) for b in some]
                clock["fused"] = time.time()
        tested = part.take(part.index_of(test_ids))
        found = {
            "presence oracle": _presence(rules, tested),
            "iamb, where present": _accepted(read_per_sequence(presence, tested)),
            "iamb with order": _accepted(read_per_sequence(order, tested)),
            f"intervention, N = {args.contexts}": _accepted(alone),
            "pooled interventions, where present": _pooled(evidence, tested),
            "close look alone (response >= 0.5)": _looked(fused),
            f"fused, N = {args.contexts}": _accepted(fused),
        }
        if args.rules:
            judge = load_models(model, device=device).models[0]
            found["recovered rule, evaluated here"] = _recovered(
                judge, training, evidence, Path(scratch) / "population", tested
            )
        result = {"arguments": vars(args), "label_f1": quality, **figures(found, why, rules, lost, classical, args)}
    result["seconds"] = {name: clock[name] - clock["begun"] for name in clock if name != "begun"}
    machine = torch.cuda.get_device_name() if device == "cuda" else f"{platform.machine()} CPU"
    result |= {"machine": machine, "calibration": calibration(fused, why)}
    Path(args.out).mkdir(parents=True, exist_ok=True)
    name = f"fleet-{args.fleet}-{args.preset}-seed{args.seed}{'-off-map' if args.off_map else ''}.json"
    (Path(args.out) / name).write_text(json.dumps(result, indent=1) + "\n")
    show(result)


def population(
    workers: ProcessPoolExecutor, items: list[Any], data: Dataset, classical: Classical, args: Any, scratch: str
) -> FleetEvidence:
    """The evidence of the pool with close looks, and its prior written where `fused` finds it."""
    verdicts, evidence = tables(items)
    pooled = collect(verdicts, evidence, Whereabouts.of(data))
    folder = Path(scratch) / "population"
    folder.mkdir()
    write_prior(folder, fit_prior(pooled, classical))
    chosen = choose_sequences(verdicts, args.looks)
    print("looking closely at", len(chosen), "sequences", flush=True)
    whole = merge([pooled, *in_parallel(workers, "looks", str(folder), chosen)])
    write_prior(folder, fit_prior(whole, classical))
    return whole


def _accepted(items: Iterable[Any]) -> Found:
    return {(b.sequence_id, b.label): frozenset(e.event for e in b.evidence if e.verdict == "cause") for b in items}


def _looked(items: Iterable[Any]) -> Found:
    return {(b.sequence_id, b.label): frozenset(e.event for e in b.evidence if (e.response or 0) >= 0.5) for b in items}


def _presence(rules: dict[str, list[Any]], data: Dataset) -> Found:
    positive = {label: {n for rule in some for n in positive_names(rule)} for label, some in rules.items()}
    return _presence_of(positive, data)


def _recovered(model: Any, training: Dataset, evidence: FleetEvidence, folder: Path, data: Dataset) -> Found:
    """The recovered rule of each label, evaluated in each sequence: the events that make it hold there."""
    prior = read_prior(folder)
    table = fleet_boundaries(evidence, rates=lambda label, event: prior.rate(label, event, 0))
    mined = training.take(np.arange(min(len(training), 20_000)))
    proposals = recover_rules(model, mined, candidates_by_label(table, prior), RuleRecoveryConfig(seed=1000))
    names = {name: k for k, name in enumerate(data.event_names)}
    index = EventIndex(data.events.offsets, data.events.ids, data.times, names)
    found = {}
    for item in proposals:
        rows = [k for k in range(len(data)) if item.rule and item.label in data.labels_of(k)]
        for k, told in zip(rows, reasons(parse(item.rule), index, rows) if rows else [], strict=True):
            causes = frozenset(reason.event for reason in told if reason.role == "cause")
            found[data.sequence_ids[k].as_py(), item.label] = causes
    return found


def _pooled(evidence: FleetEvidence, data: Dataset) -> Found:
    causes: dict[str, set[str]] = {}
    for row in fleet_boundaries(evidence).to_pylist():
        if row["verdict"] == "cause":
            causes.setdefault(row["label"], set()).add(row["event"])
    return _presence_of(causes, data)


def _presence_of(causes: dict[str, set[str]], data: Dataset) -> Found:
    return {
        (data.sequence_ids[k].as_py(), label): frozenset(causes.get(label, set()) & set(data.events_of(k)))
        for k in range(len(data))
        for label in data.labels_of(k)
    }


def figures(
    found: dict[str, Found], why: Any, rules: Any, lost: dict[str, frozenset[str]], classical: Classical, args: Any
) -> dict[str, Any]:
    fused = next(name for name in found if name.startswith("fused"))
    pairs = sorted(pair for pair in found[fused] if why.get(pair))
    if lost:
        pairs = [pair for pair in pairs if why[pair] & lost.get(pair[1], frozenset())]
    parts = {
        "all": pairs,
        "decoys": [p for p in pairs if found["presence oracle"].get(p, frozenset()) - why[p]],
        "several causes": [p for p in pairs if len(why[p]) > 1],
        "rare labels": [p for p in pairs if classical.positives.get(p[1], 0) < 100],
    }
    rng = np.random.default_rng(args.seed)
    tables_: dict[str, Any] = {}
    for part, chosen in parts.items():
        if len(chosen) < 10:
            continue
        scores = {name: precision_recall(some, why, chosen) for name, some in found.items()}
        tables_[part] = {
            name: {
                "pairs": len(chosen),
                "f1": f1(score),
                "precision": float(score[:, 0].mean()),
                "recall": float(score[:, 1].mean()),
                "fused_minus_this": compare(scores[fused], score, rng),
            }
            for name, score in scores.items()
        }
    return {"tables": tables_}


def calibration(items: Iterable[Any], why: dict[Pair, set[str]]) -> list[dict[str, float]]:
    told = [
        (e.posterior, e.event in why[b.sequence_id, b.label])
        for b in items
        if (b.sequence_id, b.label) in why
        for e in b.evidence
        if e.posterior is not None
    ]
    posterior, true = np.array([p for p, _ in told]), np.array([t for _, t in told])
    rows = []
    for low, high in ((0, 0.05), (0.05, 0.2), (0.2, 0.5), (0.5, 0.8), (0.8, 0.95), (0.95, 1.01)):
        inside = (posterior >= low) & (posterior < high)
        if inside.any():
            said, right = float(posterior[inside].mean()), float(true[inside].mean())
            rows.append({"from": low, "to": min(high, 1.0), "events": int(inside.sum()), "said": said, "true": right})
    return rows


def show(result: dict[str, Any]) -> None:
    print("seconds", {k: round(v) for k, v in result["seconds"].items()})
    for part, table in result["tables"].items():
        print(f"\n{part}: {next(iter(table.values()))['pairs']} pairs")
        for name, row in table.items():
            gap = row["fused_minus_this"]
            print(
                f"  {name:38s} F1 {100 * row['f1']:5.1f} P {100 * row['precision']:5.1f} R {100 * row['recall']:5.1f}"
                f"   fused - this {100 * gap[0]:+.1f} ({100 * gap[1]:+.1f} to {100 * gap[2]:+.1f})"
            )
    print(
        "\nposterior: said, true, events",
        [(round(r["said"], 2), round(r["true"], 2), r["events"]) for r in result["calibration"]],
    )


if __name__ == "__main__":
    main()
