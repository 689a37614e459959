"""Recover the rules of a synthetic fleet and compare them with the true ones; writes a JSON file, prints a short table.

    python scripts/bench_rules.py --dataset FLEET --model MODEL --out docs/results           # a fleet and model at hand
    python scripts/bench_rules.py --fleet hard --sequences 200000 --preset base --steps 3000 --workers 8

Candidates are IAMB boundaries of the mined sequences, completed by rule recovery itself; fidelity is from sequences the
model never saw. A rule is right when it is logically equal to the true one: the positive part (nothing forbidden
occurs), the whole with its blockers, and for temporal rules order and count, windows left aside and compared apart.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch

from oscar_causal.data.rules import Rule, equivalent, event_names, format_rule, negated_names, parse, positive_part
from oscar_causal.data.rules.tree import Then, atoms, chain_steps
from oscar_causal.data.select import Selection, select_sequences
from oscar_causal.data.sequences import Dataset, read_dataset
from oscar_causal.data.synthetic import preset, write_fleet
from oscar_causal.data.synthetic.config import FleetConfig
from oscar_causal.data.synthetic.world import World, make_world
from oscar_causal.density.checkpoint import load_model
from oscar_causal.density.fitting import train
from oscar_causal.density.folds import load_models
from oscar_causal.density.settings import preset_config
from oscar_causal.discovery.classical.learning import learn_boundaries
from oscar_causal.discovery.local import one_thread_children
from oscar_causal.graph.rule_recovery import RuleProposal, RuleRecoveryConfig, calibration, recover_rules
from oscar_causal.graph.rules.proposal import Share

BINS = ((100, 10**9), (30, 100), (10, 30))
SMALL = 8
"""The largest boundary the aims speak about."""
_state: dict[str, Any] = {}


def main() -> None:
    args = arguments()
    clock = {"begun": time.time()}
    with tempfile.TemporaryDirectory() as scratch:
        fleet, model = fleet_and_model(args, Path(scratch), clock)
        clock["trained"] = time.time()
        data = read_dataset(fleet)
        unseen = np.flatnonzero(~load_models(model).seen_in_training(data.subject_ids))
        seen = np.setdiff1d(np.arange(len(data)), unseen)
        mine, held = Path(scratch) / "mine", Path(scratch) / "held"
        for out, rows in ((mine, seen[: args.mine]), (held, unseen)):
            select_sequences(fleet, out, Selection(ids=tuple(data.take(rows).sequence_ids.to_pylist())))
        boundaries = {b.label: list(b.events) for b in learn_boundaries(read_dataset(mine), workers=args.workers)}
        clock["boundaries"] = time.time()
        print(f"{len(boundaries)} boundaries after {clock['boundaries'] - clock['begun']:.0f} s", flush=True)
        proposals = recover(args, model, mine, held, boundaries)
        quality = json.loads((Path(model) / "quality.json").read_text())
    clock["recovered"] = time.time()
    report(args, data, boundaries, proposals, quality, clock)


def fleet_and_model(args: argparse.Namespace, scratch: Path, clock: dict[str, float]) -> tuple[Path, Path]:
    """The folders given, or a new fleet and a model trained on it."""
    fleet = Path(args.dataset) if args.dataset else scratch / "fleet"
    if not args.dataset:
        overrides = {"sequences": args.sequences} if args.sequences else {}
        write_fleet(preset(args.fleet, **overrides), args.seed, fleet, workers=args.workers)
    clock["made"] = time.time()
    if args.model:
        return fleet, Path(args.model)
    data = read_dataset(fleet)
    changes: dict[str, Any] = {"steps": args.steps} if args.steps else {}
    if len(data) > 50_000:
        changes["validation"] = 0.05

    def on_step(step: int, total: int, figures: dict[str, float]) -> None:
        if "held_out_label_loss" in figures:
            print(f"step {step} of {total}: {figures['held_out_label_loss']:.4f}", flush=True)

    train(data, scratch / "model", preset_config(args.preset, seed=args.seed, **changes), on_step=on_step)
    return fleet, scratch / "model"


def recover(
    args: argparse.Namespace, model: Path, mine: Path, held: Path, boundaries: dict[str, list[str]]
) -> list[RuleProposal]:
    """Labels are independent of each other: each worker takes some."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    job = (str(model), str(mine), str(held), device, RuleRecoveryConfig(probes=args.probes, seed=args.seed))
    known = set(load_models(model).vocabulary.labels)
    labels = [label for label in boundaries if label in known]
    parts = [labels[k : k + 8] for k in range(0, len(labels), 8)]
    if args.workers == 1:
        load(*job)
        return [p for part in parts for p in recover_some({label: boundaries[label] for label in part})]
    found: list[RuleProposal] = []
    with (
        one_thread_children(),
        ProcessPoolExecutor(args.workers, get_context("spawn"), initializer=load, initargs=job) as pool,
    ):
        for part in pool.map(recover_some, [{label: boundaries[label] for label in part} for part in parts]):
            found += part
            print(f"{len(found)} of {len(labels)} labels", flush=True)
    return found


def load(model: str, mine: str, held: str, device: str, config: RuleRecoveryConfig) -> None:
    torch.set_num_threads(1)
    torch.set_float32_matmul_precision("high")
    opened = load_model(model, device=device)
    _state.update(model=opened, mine=read_dataset(mine), held=read_dataset(held), config=config)


def recover_some(boundaries: dict[str, list[str]]) -> list[RuleProposal]:
    return recover_rules(_state["model"], _state["mine"], boundaries, _state["config"], held_out=_state["held"])


def world_of(data: Dataset) -> World:
    """The world a fleet was drawn from."""
    told = data.info["generator"]
    sizes = tuple((int(size), weight) for size, weight in told["config"]["boundary_sizes"].items())
    return make_world(FleetConfig(**{**told["config"], "boundary_sizes": sizes}), told["seed"])


def kind_of(world: World, number: int) -> str:
    law = world.laws[number]
    return (
        "graded" if law.graded else "drifting" if world.drifting[number] else "temporal" if law.temporal else "boolean"
    )


def compared(
    world: World, number: int, proposal: RuleProposal, given: list[str], quality: dict[str, Any]
) -> dict[str, Any]:
    """One label: what is true, what was proposed, and in which respects it is right."""
    truth = world.rules[number]
    rule = parse(proposal.rule) if proposal.rule else None
    found = {
        "label": proposal.label,
        "kind": kind_of(world, number),
        "size": len(event_names(truth)),
        "positives": proposal.positives,
        "status": proposal.status,
        "confidence": proposal.confidence,
        "method": proposal.method,
        "label_f1": quality["per_label"].get(proposal.label, {}).get("f1"),
        "truth": format_rule(truth),
        "rule": proposal.rule,
        "candidates_given": given,
        "candidates_missing": sorted(set(event_names(truth)) - {role.event for role in proposal.roles}),
        "reasons": list(proposal.reasons),
        "fidelity": proposal.fidelity.to_json() if proposal.fidelity else None,
        "positive_part": rule is not None and same(positive_part(rule), positive_part(truth)),
        "whole": rule is not None and same(rule, truth),
        "blockers": list(negated_names(truth)),
        "blockers_right": rule is not None and set(negated_names(rule)) == set(negated_names(truth)),
    }
    if found["whole"] and windows(truth):
        found["windows_within_factor_2"] = windows_agree(windows(rule), windows(truth)) if rule else False
    return found


def same(found: Rule | None, truth: Rule | None) -> bool:
    """Logically equal, windows aside."""
    if found is None or truth is None:
        return found is truth
    return equivalent(without_windows(found), without_windows(truth)) is True


def without_windows(rule: Rule) -> Rule:
    return parse(re.sub(r" within [0-9.e+]+s", "", format_rule(rule)))


def windows(rule: Rule | None) -> dict[tuple[str, ...], float | None]:
    chains = [atom for atom, _ in atoms(rule) if isinstance(atom, Then)] if rule is not None else []
    return {chain_steps(chain)[0]: chain.within for chain in chains}


def windows_agree(found: dict[Any, float | None], truth: dict[Any, float | None]) -> bool:
    pairs = [(found.get(key), value) for key, value in truth.items()]
    return all((a is None) == (b is None) and (a is None or b is None or 0.5 <= a / b <= 2) for a, b in pairs)


def by_positives(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    table = []
    for low, high in BINS:
        part = [row for row in rows if low <= row["positives"] < high]
        stated = [row for row in part if row["status"] == "proposed"]
        table.append(
            {
                "positives": f"{low}+" if high == 10**9 else f"{low}-{high - 1}",
                "labels": len(part),
                "positive_part": count(part, lambda row: row["positive_part"]),
                "whole": count(part, lambda row: row["whole"]),
                "blockers": count([r for r in part if r["blockers"]], lambda row: row["blockers_right"]),
                "stated": count(part, lambda row: row["status"] == "proposed"),
                "right_of_stated": count(stated, lambda row: row["whole"]),
            }
        )
    return table


def count(rows: list[dict[str, Any]], hit: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    return Share(sum(bool(hit(row)) for row in rows), len(rows)).to_json()


def report(
    args: argparse.Namespace,
    data: Dataset,
    boundaries: dict[str, list[str]],
    proposals: list[RuleProposal],
    quality: dict[str, Any],
    clock: dict[str, float],
) -> None:
    world = world_of(data)
    number = {name: place for place, name in enumerate(world.label_names)}
    rows = [compared(world, number[p.label], p, boundaries[p.label], quality) for p in proposals]
    steady = [row for row in rows if row["kind"] in ("boolean", "temporal") and row["size"] <= SMALL]
    right = {row["label"]: bool(row["whole"]) for row in rows}
    stages = list(clock)
    result = {
        "arguments": {key: value for key, value in vars(args).items() if key not in ("dataset", "model", "out")},
        "machine": torch.cuda.get_device_name() if torch.cuda.is_available() else f"{platform.machine()} CPU",
        "torch": torch.__version__,
        "labels": quality["labels"],
        "seconds": {b: clock[b] - clock[a] for a, b in zip(stages, stages[1:], strict=False)},
        "steady_up_to_8": by_positives(steady),
        "all": by_positives(rows),
        "by_kind": {kind: by_positives([r for r in rows if r["kind"] == kind]) for kind in {r["kind"] for r in rows}},
        "windows": count([r for r in rows if "windows_within_factor_2" in r], lambda r: r["windows_within_factor_2"]),
        "calibration": calibration(proposals, right),
        "calibration_steady": calibration([p for p in proposals if p.label in {r["label"] for r in steady}], right),
        "rules": rows,
    }
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    name = f"rules-{args.fleet}-{args.preset}-seed{args.seed}.json"
    (out / name).write_text(json.dumps(result, indent=1) + "\n")
    show(result)


def show(result: dict[str, Any]) -> None:
    print("seconds", {key: round(value) for key, value in result["seconds"].items()})
    print("label F1", {key: round(result["labels"][key]["f1"], 3) for key in ("weighted", "macro", "micro")})
    for title in ("steady_up_to_8", "all"):
        print(f"{title:18s} labels  positive part  whole  blockers  stated  right of stated")
        for row in result[title]:
            cells = [row[key] for key in ("positive_part", "whole", "blockers", "stated", "right_of_stated")]
            print(f"{row['positives']:>18s} {row['labels']:6d} ", "  ".join(percent(cell) for cell in cells))
    for title in ("calibration", "calibration_steady"):
        parts = [f"{row['from']:.2f}+: {percent(row['right'])}" for row in result[title]]
        print(title, "  ".join(parts))
    print("windows within a factor of two:", percent(result["windows"]), flush=True)


def percent(share: dict[str, Any]) -> str:
    return f"{100 * share['share']:5.1f} ({share['hits']}/{share['of']})" if share["of"] else "    - (0/0)"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", help="a synthetic fleet; default: make one")
    parser.add_argument("--model", help="its model; default: train one")
    parser.add_argument("--fleet", default="demo")
    parser.add_argument("--sequences", type=int)
    parser.add_argument("--preset", default="tiny")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--mine", type=int, default=40_000, help="sequences to mine, of those seen in training")
    parser.add_argument("--probes", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", default="docs/results")
    return parser.parse_args()


if __name__ == "__main__":
    main()
