"""Does the fleet help one sequence? Presence, classical boundaries, interventions, rules and `fused` compared.

    python scripts/bench_fleet.py --fleet decoy --work demo-fleet --off-map       # two cores, about 20 minutes
    python scripts/bench_fleet.py --fleet temporal --work W --pool 1000 --test 9000 --looks 4 --workers 14 --off-map

The second line takes fleet and model that `bench_discovery.py --fleet temporal --work W` made, on a GPU, and is to be
told the same --sequences, --preset and --seed; without them it makes its own. Cars are split: Tf_x, Tf_y and the
classical methods learn from the same training cars (IAMB in processes of its own, while the model trains); pool,
validation and test are others, unseen. All settings are the defaults; validation chooses a threshold for one row and
for the unseen route. `--off-map` takes every sequence in which the last route of a label fired out of the pool and the
classical data (not out of Tf_y) and judges pairs in which it fired.

Every sequence meets the model once: its one-shot evidence with N contexts serves all rows (`fleet_workers`), `fused`
adds 20 contexts for close looks. Test sequences are explained block by block, figures written after each.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import fleet_making
import fleet_workers
import numpy as np
import torch
from fleet_classical import ORDER, PRESENCE, Background, Learnt, Plan
from fleet_figures import (
    Method,
    at_posterior,
    best_posterior,
    compare,
    judged,
    parts_of,
    posterior_calibration,
    show,
    unseen_route,
)
from fleet_making import Run, held_out_share, made_fleet, made_model
from fleet_truth import Lost, causes_of, fired_last_routes, last_routes, true_rules, where_present
from fleet_workers import ALONE, Judged, Task, own_of, tables

from oscar_causal.data.folders import write_json
from oscar_causal.data.rules import Rule, parse, positive_names
from oscar_causal.data.select import Selection, select_sequences
from oscar_causal.data.sequences import Dataset, read_dataset
from oscar_causal.data.subjects import subject_hashes
from oscar_causal.density.folds import load_models
from oscar_causal.discovery.boundary import Boundary
from oscar_causal.discovery.classical.reading import read_per_sequence
from oscar_causal.discovery.evidence import FleetEvidence, Whereabouts, collect, merge
from oscar_causal.discovery.fleet_prior import features_by_label, fit_prior
from oscar_causal.discovery.fused import FusedConfig
from oscar_causal.discovery.prior_files import read_prior, write_prior
from oscar_causal.discovery.reading import count_patterns, not_counted
from oscar_causal.discovery.workers import one_thread_children
from oscar_causal.graph.calibration import choose_sequences
from oscar_causal.graph.population import boundaries as fleet_boundaries
from oscar_causal.graph.population_folder import candidates_by_label
from oscar_causal.score.matching import Sets

CHUNK, BLOCK = 60, 1500
"""Sequences of one task, and of one block of the test."""
DRAWS = 1000
ON, OFF = "population", "population-off-map"


@dataclass(frozen=True)
class Split:
    """Sequence ids of the parts, which share no car."""

    pool: list[str]
    validation: list[str]
    test: list[str]


def split(args: argparse.Namespace, data: Dataset, model: Path) -> tuple[Dataset, Split]:
    """Training sequences, and unseen labelled ones dealt to pool, validation and test by a hash of the car."""
    seen = load_models(model).seen_in_training(data.subject_ids)
    free = np.flatnonzero(~seen & (data.labels.lengths > 0))
    sizes = np.array([args.pool, args.validation, args.test])
    luck = subject_hashes(data.subject_ids, seed=args.seed + 77)[free] / float(2**64)
    part = np.searchsorted(np.cumsum(sizes)[:-1] / sizes.sum(), luck, side="right")
    ids = np.array(data.sequence_ids.to_pylist(), dtype=object)
    named = [ids[free[part == k]][: sizes[k]].tolist() for k in range(3)]
    return data.take(np.flatnonzero(seen)), Split(*named)


@dataclass
class Bench:
    """Everything the parts of the benchmark share."""

    run: Run
    scratch: Path
    training: Dataset
    split: Split
    part: Dataset
    """Pool, validation and test."""
    rules: dict[str, list[Rule]]
    truth: Sets
    workers: ProcessPoolExecutor
    learning: dict[str, Future[Learnt]]
    """Classical boundaries: `presence`, `order`, `off map`."""
    pooled: list[Boundary] = field(default_factory=list)

    @cached_property
    def lost(self) -> Lost:
        """What the last routes alone have."""
        return last_routes(self.rules)

    @cached_property
    def fired(self) -> frozenset[str]:
        """The sequences, training ones included, in which a last route fired."""
        return fired_last_routes(self.rules, self.truth)

    @property
    def fired_here(self) -> frozenset[str]:
        """Those that are judged off the map."""
        return self.fired if self.run.args.off_map else frozenset()

    @property
    def chunk(self) -> int:
        """Sequences of one task: enough for launches that are full, few enough for all workers."""
        return CHUNK if torch.cuda.is_available() else CHUNK // 3

    def explain(self, ids: Sequence[str], *populations: str) -> Judged:
        """What the workers make of these sequences: alone, and with each population."""
        chunks = [tuple(ids[k : k + self.chunk]) for k in range(0, len(ids), self.chunk)]
        parts = list(self.workers.map(fleet_workers.explain, [Task(chunk, populations) for chunk in chunks]))
        return {name: [b for part in parts for b in part[name]] for name in (ALONE, *populations)}

    def population(self, name: str, known: Learnt, without: frozenset[str]) -> None:
        """The pool's evidence with close looks; its prior is written where `fused` finds it."""
        pool = [item for item in self.pooled if item.sequence_id not in without]
        verdicts, evidence = tables(pool)
        pooled = merge([collect(verdicts, evidence, Whereabouts.of(self.part)), known.patterns])
        folder = self.scratch / name
        folder.mkdir()
        write_prior(folder, fit_prior(pooled, known.classical))
        chosen = choose_sequences(verdicts, self.run.args.looks)
        self.run.say("looking closely at", len(chosen), "sequences")
        own, ids = own_of(pool), list(chosen)
        parts = [ids[k : k + self.chunk] for k in range(0, len(ids), self.chunk)]
        tasks = [(name, {i: chosen[i] for i in part}, {i: own[i] for i in part}) for part in parts]
        whole = merge([pooled, *self.workers.map(fleet_workers.look, tasks)])
        write_prior(folder, fit_prior(whole, known.classical))
        if self.run.args.rules and not without:
            rules = self.recover_rules(folder, whole)
            news = not_counted(whole.patterns, features_by_label(known.classical, rules))
            counted = count_patterns(self.training, news)
            write_prior(folder, fit_prior(merge([whole, counted]), known.classical, rules))

    def recover_rules(self, folder: Path, evidence: FleetEvidence) -> dict[str, Rule]:
        """Rules from the training cars, written beside the prior."""
        self.run.done("looks")
        prior = read_prior(folder)
        table = fleet_boundaries(evidence, rates=lambda label, event: prior.rate(label, event, 0))
        candidates = candidates_by_label(table, prior)
        write_json(folder / "candidates.json", candidates)
        tasks = [Task((label,), (folder.name,)) for label in candidates]
        found = [proposal for part in self.workers.map(fleet_workers.recover, tasks) for proposal in part]
        rules = {item.label: item.rule for item in found if item.status == "proposed" and item.rule is not None}
        write_json(folder / "rules.json", rules)
        self.run.say(len(rules), "rules of", len(candidates), "labels")
        return {label: parse(text) for label, text in rules.items()}

    @cached_property
    def pooled_causes(self) -> dict[str, set[str]]:
        """Label -> what the pool's interventions find on average."""
        pooled = collect(*tables(self.pooled), Whereabouts.of(self.part))
        causes: dict[str, set[str]] = {}
        for row in fleet_boundaries(pooled).to_pylist():
            if row["verdict"] == "cause":
                causes.setdefault(row["label"], set()).add(row["event"])
        return causes


@dataclass
class Found:
    """What is known of the test sequences so far, and of the validation sequences."""

    known: Learnt
    order_off_map: list[Any]
    validation: Judged
    test: Judged
    least: float
    """Posterior from validation."""


def prepare(bench: Bench) -> Found:
    """Boundaries, pool and populations, on the map and off it; then validation."""
    run, args = bench.run, bench.run.args
    bench.pooled += bench.explain(bench.split.pool)[ALONE]
    run.done("pool", pool_pairs=len(bench.pooled))
    known = bench.learning[ON].result()
    if known.sequences != len(bench.training):
        raise SystemExit(
            f"classical methods learnt from {known.sequences} sequences, the model from {len(bench.training)}"
        )
    run.done("classical")
    bench.population(ON, known, frozenset())
    run.done("population")
    off_map = bench.learning[OFF].result() if args.off_map else None
    if off_map:
        bench.population(OFF, off_map, bench.fired)
        run.done("population off map", left_out=len(bench.fired))
    validation = judge(bench, bench.split.validation)
    least = best_posterior(validation[ON], bench.truth)
    run.done("validation", posterior_from_validation=least)
    return Found(known, off_map.boundaries[ORDER] if off_map else [], validation, {}, least)


def judge(bench: Bench, ids: Sequence[str]) -> Judged:
    """These sequences on the map; those in which a last route fired also off it."""
    parts = [bench.explain([s for s in ids if s not in bench.fired_here], ON)]
    fired = [s for s in ids if s in bench.fired_here]
    parts.append(bench.explain(fired, *((ON, OFF) if bench.run.args.off_map else (ON,))))
    return {name: [b for part in parts for b in part.get(name, [])] for name in (ALONE, ON, OFF)}


def test_all(bench: Bench, found: Found) -> None:
    """The test sequences block by block: tables after each, with bounds after the last."""
    run, ids = bench.run, bench.split.test
    for begin in range(0, len(ids), BLOCK):
        for name, items in judge(bench, ids[begin : begin + BLOCK]).items():
            found.test.setdefault(name, []).extend(items)
        done = min(begin + BLOCK, len(ids))
        last = run.late() or done == len(ids)
        figures = on_the_map(bench, found, ids[:done], DRAWS if last else 0)
        if run.args.off_map and last:
            figures |= off_the_map(bench, found)
        run.done(f"test {done}", **figures)
        if last:
            break


def on_the_map(bench: Bench, found: Found, ids: Sequence[str], draws: int) -> dict[str, Any]:
    """Everything known to everybody: the main tables."""
    args, alone, fused = bench.run.args, found.test[ALONE], found.test[ON]
    tested = bench.part.take(bench.part.index_of(ids))
    positive = {label: {n for rule in some for n in positive_names(rule)} for label, some in bench.rules.items()}
    more = f"N = {args.contexts} + {FusedConfig().looks}"
    methods = {
        "presence oracle": Method(where_present(positive, tested)),
        "iamb, where present": judged(read_per_sequence(found.known.boundaries[PRESENCE], tested), "p_value"),
        "iamb with counts and order": judged(read_per_sequence(found.known.boundaries[ORDER], tested), "p_value"),
        f"intervention, N = {args.contexts}": judged(alone, "q_value"),
        "pooled interventions, where present": Method(where_present(bench.pooled_causes, tested)),
        "close look alone (response >= 0.5)": Method(_looked(fused)),
        f"fused, {more}": judged(fused, "posterior"),
        f"fused, posterior >= {found.least} from validation": at_posterior(fused, found.least),
    }
    if any(item.rule is not None for b in fused for item in b.evidence):
        methods["recovered rule, evaluated here"] = Method(_by_rule(fused))
    pairs = sorted(pair for pair in methods[f"fused, {more}"].found if pair in bench.truth)
    parts = parts_of(pairs, bench.truth, methods["presence oracle"].found, found.known.classical.positives)
    subjects = dict(zip(tested.sequence_ids.to_pylist(), tested.subject_ids.to_pylist(), strict=True))
    return {
        "tables": compare(methods, f"fused, {more}", bench.truth, parts, subjects, draws=draws, seed=args.seed),
        "test_sequences": len(tested),
        "calibration": posterior_calibration(fused, bench.truth),
    }


def off_the_map(bench: Bench, found: Found) -> dict[str, Any]:
    """A route that pool and classical data have never seen: is it found where it fired?"""
    lost, known = bench.lost, frozenset(bench.split.validation)
    alone, fused = ([*found.validation[name], *found.test[name]] for name in (ALONE, OFF))
    asked = bench.part.take(bench.part.index_of(sorted({b.sequence_id for b in fused})))
    methods = {
        "iamb with counts and order": judged(read_per_sequence(found.order_off_map, asked), "p_value"),
        f"intervention, N = {bench.run.args.contexts}": judged(
            [*found.validation[ALONE], *found.test[ALONE]], "q_value"
        ),
        f"fused, N = {bench.run.args.contexts} + {FusedConfig().looks}": judged(fused, "posterior"),
    }
    every = sorted((b.sequence_id, b.label) for b in fused)
    pairs = [pair for pair in every if bench.truth.get(pair, frozenset()) & lost.get(pair[1], frozenset())]
    rows = unseen_route(
        methods, bench.truth, lost, [p for p in pairs if p[0] in known], [p for p in pairs if p[0] not in known]
    )
    return {"unseen_route": rows, "calibration_off_map": posterior_calibration(fused, bench.truth)}


def _looked(items: Iterable[Boundary]) -> Sets:
    return {(b.sequence_id, b.label): frozenset(e.event for e in b.evidence if (e.response or 0) >= 0.5) for b in items}


def _by_rule(items: Iterable[Boundary]) -> Sets:
    return {(b.sequence_id, b.label): frozenset(e.event for e in b.evidence if e.rule) for b in items}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    fleet_making.add_arguments(parser)
    parser.add_argument("--pool", type=int, default=1000)
    parser.add_argument("--validation", type=int, default=250, help="sequences for the threshold of the unseen route")
    parser.add_argument("--test", type=int, default=500)
    parser.add_argument("--looks", type=int, default=40, help="sequences of each label to look at closely")
    parser.add_argument("--contexts", type=int, default=64)
    parser.add_argument("--off-map", action="store_true")
    parser.add_argument("--rules", action="store_true", help="recover rules too, and read them in each sequence")
    parser.add_argument("--mine", type=int, default=20_000, help="training sequences to recover rules from")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    run = Run(args, f"fleet-{args.fleet}-{args.preset}-seed{args.seed}")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        scratch = Path(name)
        folder = Path(args.work or name)
        fleet = made_fleet(run, folder)
        few = max(1, args.workers // 3)  # with all cores taken, training beside it took half as long again
        plan = Plan(str(fleet), held_out_share(args, fleet, folder / "model"), args.seed, few)
        background = stack.enter_context(Background(plan))
        learning = {ON: background.ask(PRESENCE, ORDER)}
        learning |= {OFF: background.ask(ORDER, off_map=True)} if args.off_map else {}
        model = made_model(run, folder)
        data = read_dataset(fleet)
        training, parts = split(args, data, model)
        ids = (*parts.pool, *parts.validation, *parts.test)
        select_sequences(fleet, scratch / "part", Selection(ids=ids))
        if args.rules:
            mined = training.sequence_ids.to_pylist()[: args.mine]
            select_sequences(fleet, scratch / "mined", Selection(ids=tuple(mined)))
        part = read_dataset(scratch / "part")
        truth = causes_of(data)
        run.say(len(training), "training sequences;", *map(len, (parts.pool, parts.validation, parts.test)), "others")
        job = (str(model), str(scratch), device, args.contexts)
        stack.enter_context(one_thread_children())
        pool = ProcessPoolExecutor(args.workers, get_context("spawn"), initializer=fleet_workers.load, initargs=job)
        bench = Bench(
            run, scratch, training, parts, part, true_rules(fleet), truth, stack.enter_context(pool), learning
        )
        test_all(bench, prepare(bench))
    run.done("all", complete=True)
    show(run.result)


if __name__ == "__main__":
    main()
