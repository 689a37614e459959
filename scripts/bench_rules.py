"""Recover the rules of a synthetic fleet and compare them with the true ones; writes a JSON file, prints a short table.

    python scripts/bench_rules.py --fleet demo --work demo-fleet --out docs/results            # two cores
    python scripts/bench_rules.py --fleet hard --sequences 200000 --preset base --steps 2000 --held-out 0.05 \
        --mine 100000 --workers 14 --out results                                           # one GPU, below 10 minutes

Candidates are boundaries of the mined sequences (IAMB's, refined), completed by rule recovery itself; fidelity is from
sequences the model never saw. A rule is right when it is logically equal to the true one: the positive part (nothing
forbidden occurs), the whole with its blockers, and for temporal rules order and count, windows compared apart.
`net` counts a wrong rule that is stated with confidence double against the right ones. Labels are taken in a random
order, a few at a time, and figures are written after each few: what `--until` leaves out is left out at random.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import fleet_making
import numpy as np
import torch
from fleet_classical import ORDER, PRESENCE, learn_from
from fleet_making import Run, fleet_and_model

from oscar_causal.data.rules import Rule, equivalent, event_names, format_rule, negated_names, parse, positive_part
from oscar_causal.data.rules.tree import Then, atoms, chain_steps
from oscar_causal.data.select import Selection, select_sequences
from oscar_causal.data.sequences import Dataset, read_dataset
from oscar_causal.data.synthetic.config import FleetConfig
from oscar_causal.data.synthetic.world import World, make_world
from oscar_causal.density.checkpoint import load_model
from oscar_causal.density.folds import load_models
from oscar_causal.discovery.fleet_prior import features_by_label
from oscar_causal.discovery.reading import Features
from oscar_causal.discovery.workers import one_thread_children
from oscar_causal.graph.rule_recovery import RuleProposal, RuleRecoveryConfig, calibration, recover_rules
from oscar_causal.graph.rules.proposal import Share

BINS = ((100, 10**9), (30, 100), (10, 30))
SMALL = 8
"""The largest boundary the aims speak about."""
TOGETHER = 8
"""Labels of one task."""
CONFIDENT = 0.8
_state: dict[str, Any] = {}


def main() -> None:
    args = arguments()
    run = Run(args, f"rules-{args.fleet}-{args.preset}-seed{args.seed}")
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        fleet, model = fleet_and_model(run, Path(args.work or name))
        data = read_dataset(fleet)
        unseen = np.flatnonzero(~load_models(model).seen_in_training(data.subject_ids))
        seen = np.setdiff1d(np.arange(len(data)), unseen)
        for out, rows in (("mine", seen[: args.mine]), ("held", unseen[: args.judge])):
            select_sequences(fleet, scratch / out, Selection(ids=tuple(data.take(rows).sequence_ids.to_pylist())))
        mined = read_dataset(scratch / "mine")
        features = features_by_label(learn_from(mined, (PRESENCE, ORDER), args.workers).classical)
        boundaries = {
            label: sorted({name for names in part.names for name in names}) for label, part in features.items()
        }
        run.done("boundaries", mined=min(args.mine, len(seen)), held_out=min(args.judge, len(unseen)))
        recover(run, model, scratch, Truth.of(data, model, boundaries), features)
    run.done("all", complete=True)
    show(run.result)


def recover(run: Run, model: Path, scratch: Path, judge: Truth, features: dict[str, Features]) -> None:
    """Labels are independent of each other: each worker takes a few; figures after each few that are done."""
    args = run.args
    device = "cuda" if torch.cuda.is_available() else "cpu"
    config = RuleRecoveryConfig(probes=args.probes, seed=args.seed)
    job = (str(model), str(scratch / "mine"), str(scratch / "held"), device, config)
    known = set(load_models(model).vocabulary.labels)
    labels = sorted(label for label in judge.boundaries if label in known)
    order = np.random.default_rng(args.seed).permutation(len(labels))
    parts = [[labels[k] for k in order[begin : begin + TOGETHER]] for begin in range(0, len(labels), TOGETHER)]
    found: list[RuleProposal] = []
    with (
        one_thread_children(),
        ProcessPoolExecutor(args.workers, get_context("spawn"), initializer=load, initargs=job) as pool,
    ):
        waiting = [
            pool.submit(recover_some, {x: judge.boundaries[x] for x in part}, {x: features[x] for x in part})
            for part in parts
        ]
        for future in as_completed(waiting):
            if future.cancelled():
                continue
            found += future.result()
            run.done(
                f"{len(found)} of {len(labels)} labels", **judge.figures(found), labels_left=len(labels) - len(found)
            )
            if run.late():
                for other in waiting:
                    other.cancel()


def load(model: str, mine: str, held: str, device: str, config: RuleRecoveryConfig) -> None:
    torch.set_num_threads(1)
    torch.set_float32_matmul_precision("high")
    opened = load_model(model, device=device)
    opened = opened.compiled(torch.bfloat16) if device.startswith("cuda") else opened
    _state.update(model=opened, mine=read_dataset(mine), held=read_dataset(held), config=config)


def recover_some(boundaries: dict[str, list[str]], features: dict[str, Features]) -> list[RuleProposal]:
    model, mine, held = _state["model"], _state["mine"], _state["held"]
    return recover_rules(model, mine, boundaries, _state["config"], held_out=held, features=features)


@dataclass(frozen=True)
class Truth:
    """What proposals are compared with."""

    world: World
    boundaries: dict[str, list[str]]
    quality: dict[str, Any]

    @classmethod
    def of(cls, data: Dataset, model: Path, boundaries: dict[str, list[str]]) -> Truth:
        return cls(world_of(data), boundaries, json.loads((model / "quality.json").read_text()))

    def figures(self, proposals: Sequence[RuleProposal]) -> dict[str, Any]:
        """All tables."""
        number = {name: place for place, name in enumerate(self.world.label_names)}
        rows = [
            compared(self.world, number[p.label], p, self.boundaries[p.label], self.quality)
            for p in sorted(proposals, key=lambda p: p.label)
        ]
        steady = [row for row in rows if row["kind"] in ("boolean", "temporal") and row["size"] <= SMALL]
        right = {row["label"]: bool(row["whole"]) for row in rows}
        positive = {row["label"]: bool(row["positive_part"]) for row in rows}
        small = [p for p in proposals if p.label in {row["label"] for row in steady}]
        windowed = [row for row in rows if "windows_within_factor_2" in row]
        kinds = sorted({row["kind"] for row in rows})
        return {
            "steady_up_to_8": by_positives(steady),
            "all": by_positives(rows),
            "by_kind": {kind: by_positives([r for r in rows if r["kind"] == kind]) for kind in kinds},
            "windows": count(windowed, lambda row: row["windows_within_factor_2"]),
            "calibration": calibration(proposals, right),
            "calibration_steady": calibration(small, right),
            "calibration_steady_positive_part": calibration(small, positive),
            "confidence": {"all": confidence(rows), "steady_up_to_8": confidence(steady)},
            "rules": rows,
        }


def confidence(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Do stated rules keep what their confidence says? A wrong one stated with confidence counts double in `net`."""
    stated = [row for row in rows if row["status"] == "proposed"]
    sure = [row for row in stated if row["confidence"] >= CONFIDENT]
    hits, wrong = sum(row["whole"] for row in stated), sum(not row["whole"] for row in sure)
    gaps = [row["confidence"] - row["whole"] for row in stated]
    return {
        "stated": len(stated),
        "right": hits,
        "confident": count(sure, lambda row: row["whole"]),
        "confident_and_wrong": wrong,
        "net": (hits - 2 * wrong) / len(rows) if rows else None,
        "brier": float(np.mean(np.square(gaps))) if gaps else None,
        "said_minus_true": float(np.mean(gaps)) if gaps else None,
        "wrong": [row["label"] for row in sure if not row["whole"]],
    }


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


def compared_rules(world: World, number: int, rule: Rule | None) -> dict[str, Any]:
    """In which respects a rule is right."""
    truth = world.rules[number]
    return {
        "kind": kind_of(world, number),
        "size": len(event_names(truth)),
        "truth": format_rule(truth),
        "positive_part": rule is not None and same(positive_part(rule), positive_part(truth)),
        "whole": rule is not None and same(rule, truth),
        "blockers": list(negated_names(truth)),
        "blockers_right": rule is not None and set(negated_names(rule)) == set(negated_names(truth)),
    }


def compared(
    world: World, number: int, proposal: RuleProposal, given: list[str], quality: dict[str, Any]
) -> dict[str, Any]:
    """One label: what is true, what was proposed, and in which respects it is right."""
    truth = world.rules[number]
    rule = parse(proposal.rule) if proposal.rule else None
    found = {
        "label": proposal.label,
        **compared_rules(world, number, rule),
        "positives": proposal.positives,
        "status": proposal.status,
        "confidence": proposal.confidence,
        "method": proposal.method,
        "label_f1": quality["per_label"].get(proposal.label, {}).get("f1"),
        "rule": proposal.rule,
        "candidates_given": given,
        "candidates_missing": sorted(set(event_names(truth)) - {role.event for role in proposal.roles}),
        "reasons": list(proposal.reasons),
        "fidelity": proposal.fidelity.to_json() if proposal.fidelity else None,
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


def show(result: dict[str, Any]) -> None:
    """The closing table."""
    print("seconds", {key: round(value) for key, value in result["seconds"].items() if "labels" not in key})
    print("label F1", {key: round(result["labels"][key]["f1"], 3) for key in ("weighted", "macro", "micro")})
    if "all" not in result:
        return
    show_rules(result)
    for title in ("calibration", "calibration_steady", "calibration_steady_positive_part"):
        parts = [f"{row['from']:.2f}+: {percent(row['right'])}" for row in result[title]]
        print(title, "  ".join(parts))
    for title, row in result["confidence"].items():
        told = {key: round(row[key], 3) for key in ("net", "brier", "said_minus_true") if row[key] is not None}
        print(f"{title}: of those stated with 0.8 or more {percent(row['confident'])} right;", told)
    print("windows within a factor of two:", percent(result["windows"]), flush=True)


def show_rules(result: dict[str, Any]) -> None:
    """How many are right, by positives."""
    for title in ("steady_up_to_8", "all"):
        print(f"{title:18s} labels  positive part  whole  blockers  stated  right of stated")
        for row in result[title]:
            cells = [row[key] for key in ("positive_part", "whole", "blockers", "stated", "right_of_stated")]
            print(f"{row['positives']:>18s} {row['labels']:6d} ", "  ".join(percent(cell) for cell in cells))


def percent(share: dict[str, Any]) -> str:
    return f"{100 * share['share']:5.1f} ({share['hits']}/{share['of']})" if share["of"] else "    - (0/0)"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    fleet_making.add_arguments(parser)
    parser.add_argument("--mine", type=int, default=40_000, help="sequences to mine, of those seen in training")
    parser.add_argument("--judge", type=int, default=10_000, help="unseen sequences to measure fidelity on")
    parser.add_argument("--probes", type=int, default=16)
    return parser.parse_args()


if __name__ == "__main__":
    main()
