"""Make a fleet, train, check, discover and score in one command; writes one JSON file and prints a short table.

    python scripts/bench_discovery.py --fleet hard --sequences 300000 --preset base --steps 4000 --out docs/results

Thresholds (k and c of `prefix`, alpha and delta of `intervention`) are chosen on validation sequences; every figure is
from other, test sequences. Neither were seen in training.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch

from oscar_causal.data.batches import encode
from oscar_causal.data.select import Selection, select_sequences
from oscar_causal.data.sequences import read_dataset
from oscar_causal.data.subjects import held_out
from oscar_causal.data.synthetic import preset, write_fleet
from oscar_causal.density.checkpoint import load_model
from oscar_causal.density.fitting import train
from oscar_causal.density.model import sequence_contexts
from oscar_causal.density.settings import preset_config
from oscar_causal.discovery import prefix
from oscar_causal.discovery.finalists import WORTH, rank
from oscar_causal.discovery.intervention import FALL, InterventionConfig, measured_fall
from oscar_causal.discovery.oneshot import DiscoveryConfig, discover
from oscar_causal.discovery.subject import prepare, respond
from oscar_causal.discovery.workers import one_thread_children
from oscar_causal.score.matching import match, summarise, truth_of

K_GRID = (0.5, 1.0, 1.5, 2.0, 2.75, 3.5, 5.0)
C_GRID = (4, 15)
ALPHAS = (0.01, 0.05, 0.1, 0.2, 0.4)
DELTAS = (0.02, 0.05, 0.1, 0.2, 0.3)
Found = dict[tuple[str, str], frozenset[str]]
_state: dict[str, Any] = {}


def load(model: str, folder: str, chosen: np.ndarray, device: str) -> None:
    torch.set_num_threads(1)
    torch.set_float32_matmul_precision("high")
    loaded = load_model(model, device=device)
    data = read_dataset(folder).take(chosen)
    _state.update(model=loaded, data=data, encoded=encode(data, loaded.vocabulary, max_length=loaded.max_length))


def explain(task: tuple[str, int, np.ndarray]) -> list[Any]:
    """Boundaries (intervention) or rows of (pair, k, events) for every k (prefix) of some sequences."""
    kind, size, indices = task
    model, data, encoded = _state["model"], _state["data"], _state["encoded"]
    if kind == "intervention":
        config = DiscoveryConfig(intervention=InterventionConfig(contexts=size))
        rows = []
        for boundaries in discover(model, data, config, indices=indices):
            for item in boundaries:
                tested = [
                    (
                        e.event,
                        e.q_value,
                        max(e.alone or -1.0, e.effect),
                        e.share or 0.0,
                        measured_fall(item.probability or 0.0, e.effect, e.alone, e.jointly),
                    )
                    for e in item.evidence
                    if e.q_value is not None
                ]
                rows.append(((item.sequence_id, item.label), tested))
        return rows
    if kind == "ranking":
        return [row for index in indices for row in ranked(model, encoded, data, int(index), budget=size)]
    config = prefix.PrefixConfig(context=size, contexts=64)
    rows = []
    for index in indices:
        sequence = sequence_contexts(encoded, int(index))
        labels = np.sort(encoded.labels[int(index)]).astype(np.int64)
        sequence_id = data.sequence_ids[int(index)].as_py()
        if not len(labels):
            continue
        if sequence.event_ids.shape[1] <= size:
            rows += [((sequence_id, model.vocabulary.labels[j]), k, frozenset()) for j in labels for k in K_GRID]
            continue
        pasts = prefix.sample_pasts(model, sequence, config, seed=0, sequence_id=sequence_id)
        curves = prefix.prefix_curves(model, sequence, pasts, labels, size)
        names = [model.vocabulary.name(int(event)) for event in sequence.event_ids[0]]
        for column, label in enumerate(labels):
            for k in K_GRID:
                found = prefix.prefix_evidence(
                    curves, column, names, sequence.times.numpy(), replace(config, threshold=k)
                )
                events = frozenset(e.event for e in found if e.verdict == "cause")
                rows.append(((sequence_id, model.vocabulary.labels[int(label)]), k, events))
    return rows


def ranked(model: Any, encoded: Any, data: Any, index: int, *, budget: int) -> list[Any]:
    """The guessed boundary of each label after a ranking worth `budget` passes, and the passes; no test is made."""
    labels = np.sort(encoded.labels[index]).astype(np.int64)
    if not len(labels):
        return []
    sequence, sequence_id = sequence_contexts(encoded, index), data.sequence_ids[index].as_py()
    subject = prepare(model, sequence, sequence_id=sequence_id, seed=0, shuffle=True)
    reference = respond(model, subject, np.zeros((1, len(subject.types)), bool), labels, "reference")[0]
    ranking = rank(model, subject, labels, reference, budget=budget, screen_contexts=budget - 1, screen_rate=0.15)
    names = np.array([model.vocabulary.name(int(t)) for t in subject.types])
    rows = []
    for j, (label, order, size) in enumerate(zip(labels, ranking.orders, ranking.sizes, strict=True)):
        towards = order if ranking.pull is None else order[ranking.pull[order, j] > 0]
        pair = sequence_id, model.vocabulary.labels[int(label)]
        rows.append((pair, ranking.spent + 1, frozenset(names[towards[: round(size)]])))
    return rows


def measure_ranking(pool: Any, budget: int, test: np.ndarray, truth: Any) -> dict[str, Any]:
    """Boundaries guessed by the ranking alone: nothing is chosen on validation sequences."""
    rows, seconds = run_tasks(pool, "ranking", budget, test)
    found = {pair: events for pair, _, events in rows}
    spent = {pair[0]: passes for pair, passes, _ in rows}
    return {
        "contexts": budget,
        "passes_spent": float(np.mean(list(spent.values()))),
        "most_passes_spent": max(spent.values()),
        "seconds": seconds,
        "scores": scored(found, truth),
        "by_causes": by_causes(found, truth["why"]),
    }


def run_tasks(pool: ProcessPoolExecutor, kind: str, size: int, indices: np.ndarray) -> tuple[list[Any], float]:
    begun = time.time()
    parts = np.array_split(indices, max(1, len(indices) // 20))
    rows = [row for part in pool.map(explain, [(kind, size, part) for part in parts]) for row in part]
    return rows, time.time() - begun


def scored(found: Found, truth: dict[str, Any]) -> dict[str, Any]:
    return {name: summarise(match(found, part)) for name, part in truth.items()}


def headline(scores: dict[str, Any]) -> float:
    return float(scores["why"]["sample"]["f1_of_means"])


def by_causes(found: Found, why: Any) -> dict[str, Any]:
    """Sample scores by number of present causes."""
    result = {}
    for size in (1, 2, 3, 4, 5, 6):
        part = {p: e for p, e in why.items() if (len(e) == size if size < 6 else len(e) >= 6)}
        summary = summarise(match(found, part))
        result[f"{size}{'+' if size == 6 else ''}"] = {"pairs": summary["pairs"], **summary["sample"]}
    return result


def accept(rows: list[Any], alpha: float, delta: float, *, tested_only: bool = False) -> Found:
    """Accepted by test, or by score: the rule of the estimator at other thresholds."""

    def accepted(q: float, strength: float, share: float, fall: float) -> bool:
        return (q <= alpha and strength >= delta) or (not tested_only and share >= WORTH and fall >= FALL)

    return {pair: frozenset(event for event, *rest in tested if accepted(*rest)) for pair, tested in rows}


def measure_intervention(pool: Any, size: int, validation: np.ndarray, test: np.ndarray, truth: Any) -> dict[str, Any]:
    tuning, _ = run_tasks(pool, "intervention", size, validation)
    grid = {
        (alpha, delta): headline(scored(accept(tuning, alpha, delta), truth)) for alpha in ALPHAS for delta in DELTAS
    }
    alpha, delta = max(grid, key=lambda key: grid[key])
    rows, seconds = run_tasks(pool, "intervention", size, test)
    chosen, default = accept(rows, alpha, delta), accept(rows, 0.05, 0.05)
    return {
        "contexts": size,
        "alpha": alpha,
        "delta": delta,
        "seconds": seconds,
        "scores": scored(chosen, truth),
        "at_default_thresholds": scored(default, truth),
        "tested_only": scored(accept(rows, alpha, delta, tested_only=True), truth),
        "finalist_recall": scored({p: frozenset(t[0] for t in e) for p, e in rows}, truth)["why"]["sample"]["recall"],
        "by_causes": by_causes(chosen, truth["why"]),
    }


def measure_prefix(pool: Any, validation: np.ndarray, test: np.ndarray, truth: Any) -> dict[str, Any]:
    grid: dict[tuple[int, float], float] = {}
    for c in C_GRID:
        rows, _ = run_tasks(pool, "prefix", c, validation)
        for k in K_GRID:
            grid[c, k] = headline(scored({pair: events for pair, at, events in rows if at == k}, truth))
    c, k = max(grid, key=lambda key: grid[key])
    rows, seconds = run_tasks(pool, "prefix", c, test)
    found = {pair: events for pair, at, events in rows if at == k}
    paper = {pair: events for pair, at, events in rows if at == 2.75}
    return {
        "c": c,
        "k": k,
        "contexts": 64,
        "seconds": seconds,
        "scores": scored(found, truth),
        "at_paper_k": scored(paper, truth),
        "by_causes": by_causes(found, truth["why"]),
    }


def commit() -> str:
    try:
        return subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fleet", default="demo")
    parser.add_argument("--sequences", type=int)
    parser.add_argument("--preset", default="tiny")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--validation", type=int, default=300, help="sequences to choose thresholds on")
    parser.add_argument("--test", type=int, default=700, help="sequences to score on")
    parser.add_argument("--contexts", default="64,256")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--commit", default=None)
    parser.add_argument("--label-form", default="shared")
    parser.add_argument("--scheme", default="joint")
    parser.add_argument("--set", dest="settings", default="{}", help="further training settings as JSON")
    parser.add_argument("--work", help="folder whose fleet/ and model/ are used, or made there and kept")
    parser.add_argument("--out", default="docs/results")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    clock = {"begun": time.time()}
    with tempfile.TemporaryDirectory() as temporary:
        scratch = args.work or temporary
        fleet, model = f"{scratch}/fleet", f"{scratch}/model"
        overrides = {"sequences": args.sequences} if args.sequences else {}
        if not Path(fleet).exists():
            write_fleet(preset(args.fleet, **overrides), args.seed, fleet, workers=max(1, args.workers))
        info = json.loads((Path(fleet) / "dataset.json").read_text())
        clock["made"] = time.time()
        changes = {"seed": args.seed, "label_form": args.label_form, "scheme": args.scheme, **json.loads(args.settings)}
        changes |= {"steps": args.steps} if args.steps else {}
        data = read_dataset(fleet)
        if len(data) > 50_000:
            changes.setdefault("validation", 0.03)
        config = preset_config(args.preset, **changes)
        log: list[Any] = []

        def on_step(step: int, total: int, figures: dict[str, float]) -> None:
            if "held_out_label_loss" in figures:
                log.append({"step": step, "seconds": time.time() - clock["made"], **figures})
                print(json.dumps(log[-1]), flush=True)

        if not Path(model).exists():
            train(data, model, config, workers=args.workers, on_step=on_step)
        quality = json.loads((Path(model) / "quality.json").read_text())
        clock["trained"] = time.time()
        print("labels", {k: round(quality["labels"][k]["f1"], 4) for k in ("weighted", "macro", "micro")}, flush=True)
        outside = np.flatnonzero(held_out(data.subject_ids, config.validation, seed=config.seed))
        outside = outside[data.labels.lengths[outside] > 0][: args.validation + args.test]
        part = data.take(outside)
        pairs = [(part.sequence_ids[i].as_py(), label) for i in range(len(part)) for label in part.labels_of(i)]
        truth = {k: v for k, v in truth_of(part, pairs).items() if k in ("why", "rule_present", "rule_all")}
        validation = np.arange(min(args.validation, len(outside) // 2))
        test = np.arange(len(validation), len(outside))
        small = f"{scratch}/part"  # workers open the few sequences to explain, not the whole fleet
        ids = tuple(part.sequence_ids.to_pylist())
        select_sequences(fleet, small, Selection(ids=ids))
        chosen = read_dataset(small).index_of(ids)
        print("explaining", len(ids), "sequences after", round(time.time() - clock["begun"]), "s", flush=True)
        training = json.loads((Path(model) / "training.json").read_text())
        presence = {pair: frozenset(events) for pair, events in truth["rule_present"].items()}
        result = {
            "arguments": {key: value for key, value in vars(args).items() if key not in ("out", "work")},
            "machine": torch.cuda.get_device_name() if device == "cuda" else f"{platform.machine()} CPU",
            "torch": torch.__version__,
            "commit": args.commit or commit(),
            "fleet": {"bayes": info["bayes"], "presence_oracle": info["presence_oracle"]},
            "labels": quality["labels"],
            "training": {key: training[key] for key in ("steps", "tokens", "tokens_per_s", "seconds")},
            "log": log,
            "validation_sequences": len(validation),
            "test_sequences": len(test),
            "presence_of_rule_on_test": scored(presence, truth)["why"]["sample"],
            "seconds": {"make": clock["made"] - clock["begun"], "train_and_check": clock["trained"] - clock["made"]},
            "methods": {},
        }
        out = Path(args.out)
        out.mkdir(parents=True, exist_ok=True)
        path = out / f"discovery-{args.fleet}-{args.preset}-seed{args.seed}.json"
        with one_thread_children():
            pool = ProcessPoolExecutor(
                args.workers, get_context("spawn"), initializer=load, initargs=(model, small, chosen, device)
            )
            with pool:
                sizes = [int(text) for text in args.contexts.split(",")]
                parts: dict[str, Callable[[], dict[str, Any]]] = {
                    f"intervention_{n}": partial(measure_intervention, pool, n, validation, test, truth) for n in sizes
                }
                parts["ranking_16"] = partial(measure_ranking, pool, 16, test, truth)
                parts["prefix"] = partial(measure_prefix, pool, validation, test, truth)
                for name, measured in parts.items():
                    result["methods"][name] = measured()
                    result["seconds"]["discover"] = time.time() - clock["trained"]
                    path.write_text(json.dumps(result, indent=1) + "\n")  # whatever comes after may be cut short
                    print_method(name, result["methods"][name])
    print_summary(result)


def print_summary(result: dict[str, Any]) -> None:
    print("seconds", {k: round(v) for k, v in result["seconds"].items()}, "bayes", result["fleet"]["bayes"])
    for name, part in (("labels", result["labels"]), ("at own thresholds", result["labels"]["at_own_thresholds"])):
        print(name, {k: round(part[k]["f1"], 4) for k in ("weighted", "macro", "micro")})
    print("presence of the rule's events:", {k: round(v, 3) for k, v in result["presence_of_rule_on_test"].items()})
    for name, part in result["methods"].items():
        print_method(name, part)


def print_method(name: str, part: dict[str, Any]) -> None:
    why = part["scores"]["why"]
    chosen = {key: part[key] for key in ("c", "k", "alpha", "delta", "finalist_recall", "passes_spent") if key in part}
    sample = why["sample"]
    print(
        f"{name:18s} F1 {100 * sample['f1_of_means']:.1f} (P {100 * sample['precision']:.1f} "
        f"R {100 * sample['recall']:.1f}) micro {100 * why['micro']['f1']:.1f} macro {100 * why['macro']['f1']:.1f} "
        f"pairs {why['pairs']} {part['seconds']:.0f} s {chosen}"
    )
    counts = {k: (v["pairs"], round(100 * v["f1_of_means"], 1)) for k, v in part["by_causes"].items()}
    print("   by causes", counts, flush=True)


if __name__ == "__main__":
    main()
