"""Does the fleet help one sequence? Presence, classical boundaries, interventions, rules and `fused` compared.

    python scripts/bench_fleet.py --fleet decoy --work demo-fleet --off-map       # two cores, about 20 minutes
    python scripts/bench_fleet.py --fleet temporal --sequences 200000 --preset base --steps 2000 --pool 2000 \
        --test 2500 --looks 4 --workers 14 --off-map --out results                          # one GPU, below 10 minutes

Cars are split: Tf_x, Tf_y and the classical methods learn from the same training cars; pool, validation and test are
others, unseen. All settings are the defaults; validation chooses a threshold for one row and for the unseen route.
`--off-map` takes every sequence in which the last route of a label fired out of the pool and the classical data (not
out of Tf_y) and judges pairs in which it fired. Test sequences are explained block by block, figures written after
each.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import fleet_making
import numpy as np
import pyarrow as pa
import torch
from fleet_figures import (
    Method,
    at_alpha,
    best_alpha,
    compare,
    judged,
    parts_of,
    posterior_calibration,
    show,
    unseen_route,
)
from fleet_making import Run, fleet_and_model

from oscar_causal.data.folders import read_json, write_json
from oscar_causal.data.rules import Or, Rule, event_names, parse, positive_names, read_rules
from oscar_causal.data.select import Selection, select_sequences
from oscar_causal.data.sequences import Dataset, read_dataset
from oscar_causal.data.subjects import pack_subjects, subject_hashes
from oscar_causal.density.folds import load_models
from oscar_causal.discovery.boundary import Boundary
from oscar_causal.discovery.choosing import best_classical
from oscar_causal.discovery.classical.features import FeatureConfig
from oscar_causal.discovery.classical.learning import learn_boundaries
from oscar_causal.discovery.classical.methods import BaselineConfig
from oscar_causal.discovery.classical.reading import read_per_sequence
from oscar_causal.discovery.evidence import FleetEvidence, Whereabouts, collect, merge
from oscar_causal.discovery.fleet_prior import Classical, features_by_label, fit_prior
from oscar_causal.discovery.fused import FusedConfig
from oscar_causal.discovery.intervention import InterventionConfig
from oscar_causal.discovery.local import one_thread_children
from oscar_causal.discovery.oneshot import DiscoveryConfig, discover
from oscar_causal.discovery.prior_files import read_prior, write_prior
from oscar_causal.discovery.reading import count_patterns, not_counted
from oscar_causal.discovery.results import EVIDENCE_SCHEMA, VERDICT_SCHEMA
from oscar_causal.graph.assembling import classical_of
from oscar_causal.graph.calibration import calibrate, choose_sequences
from oscar_causal.graph.population import boundaries as fleet_boundaries
from oscar_causal.graph.population_folder import candidates_by_label
from oscar_causal.graph.rule_recovery import recover_rules
from oscar_causal.score.matching import Sets, why_roles

CHUNK, BLOCK = 20, 500
"""Sequences of one task, and of one block of the test."""
DRAWS = 1000
Lost = dict[str, frozenset[str]]
_state: dict[str, Any] = {}


def load(model: str, scratch: str, device: str, contexts: int) -> None:
    torch.set_num_threads(1)
    torch.set_float32_matmul_precision("high")
    data = read_dataset(f"{scratch}/part")
    _state.update(models=load_models(model, device=device), data=data, contexts=contexts, scratch=scratch)


def work(task: tuple[str, str | None, list[str]]) -> Any:
    """One chunk: explained pairs of sequences, the statistics of close looks at them, or the rules of labels."""
    kind, population, chunk = task
    models, data = _state["models"], _state["data"]
    if kind == "rules":
        if "mined" not in _state:
            _state["mined"] = read_dataset(f"{_state['scratch']}/mined")
        candidates = read_json(Path(str(population)) / "candidates.json")
        return recover_rules(models.models[0], _state["mined"], {label: candidates[label] for label in chunk})
    settings = InterventionConfig(contexts=_state["contexts"])
    if kind == "looks":
        return calibrate(models, data, chunk, read_prior(str(population)), (settings, FusedConfig()))
    config = DiscoveryConfig(intervention=settings)
    if kind == "fused":
        config = replace(config, estimator="fused", fused=FusedConfig(population=population))
    found = discover(models.models[0], data, config, indices=data.index_of(chunk))
    return [item for boundaries in found for item in boundaries]


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
    pooled: list[Boundary] = field(default_factory=list)

    def explain(self, kind: str, population: Path | None, ids: Sequence[str]) -> list[Any]:
        """What the workers make of these sequences."""
        place = None if population is None else str(population)
        chunks = [list(ids[k : k + CHUNK]) for k in range(0, len(ids), CHUNK)]
        return list(self.workers.map(work, [(kind, place, chunk) for chunk in chunks]))

    def boundaries(self, kind: str, population: Path | None, ids: Sequence[str]) -> list[Boundary]:
        """The explained pairs of these sequences."""
        return [item for part in self.explain(kind, population, ids) for item in part]

    def classical(self, kinds: tuple[Any, ...], without: frozenset[str]) -> tuple[list[Any], Classical]:
        """IAMB on the training cars, sequences in `without` left out."""
        names = self.training.sequence_ids.to_pylist()
        data = self.training.take([k for k, name in enumerate(names) if name not in without])
        config = BaselineConfig(features=FeatureConfig(kinds))
        learnt = learn_boundaries(data, config, workers=self.run.args.workers)
        return learnt, classical_of("iamb", learnt, pack_subjects(data.subject_ids))

    def population(self, name: str, classical: Classical, without: frozenset[str]) -> Path:
        """The pool's evidence with close looks; its prior is written where `fused` finds it."""
        verdicts, evidence = tables(item for item in self.pooled if item.sequence_id not in without)
        pooled = merge([collect(verdicts, evidence, Whereabouts.of(self.part)), self.patterns(classical, without)])
        folder = self.scratch / name
        folder.mkdir()
        write_prior(folder, fit_prior(pooled, classical))
        chosen = choose_sequences(verdicts, self.run.args.looks)
        self.run.say("looking closely at", len(chosen), "sequences")
        whole = merge([pooled, *self.explain("looks", folder, chosen)])
        write_prior(folder, fit_prior(whole, classical))
        if self.run.args.rules and not without:
            rules = self.recover_rules(folder, whole)
            news = not_counted(whole.patterns, features_by_label(classical, rules))
            counted = count_patterns(self.training, news)
            write_prior(folder, fit_prior(merge([whole, counted]), classical, rules))
        return folder

    def patterns(self, classical: Classical, without: frozenset[str]) -> FleetEvidence:
        """What observed labels of the training cars say of the boundaries."""
        names = self.training.sequence_ids.to_pylist()
        data = self.training.take([k for k, name in enumerate(names) if name not in without])
        return count_patterns(data, features_by_label(classical))

    def recover_rules(self, folder: Path, evidence: FleetEvidence) -> dict[str, Rule]:
        """Rules from the training cars, written beside the prior."""
        self.run.done("looks")
        prior = read_prior(folder)
        table = fleet_boundaries(evidence, rates=lambda label, event: prior.rate(label, event, 0))
        candidates = candidates_by_label(table, prior)
        write_json(folder / "candidates.json", candidates)
        chunks = [[label] for label in candidates]
        found = [p for part in self.workers.map(work, [("rules", str(folder), part) for part in chunks]) for p in part]
        rules = {item.label: item.rule for item in found if item.status == "proposed" and item.rule is not None}
        write_json(folder / "rules.json", rules)
        self.run.say(len(rules), "rules of", len(candidates), "labels")
        return {label: parse(text) for label, text in rules.items()}

    def pooled_causes(self) -> dict[str, set[str]]:
        """Label -> what the pool's interventions find on average."""
        pooled = collect(*tables(self.pooled), Whereabouts.of(self.part))
        causes: dict[str, set[str]] = {}
        for row in fleet_boundaries(pooled).to_pylist():
            if row["verdict"] == "cause":
                causes.setdefault(row["label"], set()).add(row["event"])
        return causes


def tables(items: Iterable[Boundary]) -> tuple[pa.Table, pa.Table]:
    listed = list(items)
    verdicts = [{name: _plain(getattr(b, name)) for name in VERDICT_SCHEMA.names} for b in listed]
    evidence = [
        {"sequence_id": b.sequence_id, "label": b.label}
        | {name: _plain(getattr(e, name)) for name in EVIDENCE_SCHEMA.names if hasattr(e, name)}
        for b in listed
        for e in b.evidence
    ]
    return pa.Table.from_pylist(verdicts, schema=VERDICT_SCHEMA), pa.Table.from_pylist(evidence, schema=EVIDENCE_SCHEMA)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def causes_of(data: Dataset) -> Sets:
    """Every (sequence, label) of the fleet that has causes, with them."""
    ids = data.sequence_ids.to_pylist()
    roles = why_roles(data, [(ids[k], label) for k in range(len(data)) for label in data.labels_of(k)]) or {}
    causes = {pair: frozenset(e for e, (role, _) in told.items() if role == "cause") for pair, told in roles.items()}
    return {pair: events for pair, events in causes.items() if events}


def true_rules(folder: Path) -> dict[str, list[Rule]]:
    """Every rule of each label, hidden and drifted ones included; graded labels by their causes."""
    rules = {label: [item.rule] for label, item in read_rules(folder / "rules.json").items()}
    for hidden in json.loads((folder / "dataset.json").read_text())["generator"]["hidden_rules"]:
        rules.setdefault(hidden["label"], []).append(parse(hidden["rule"]))
    return rules


def last_routes(rules: dict[str, list[Rule]]) -> Lost:
    """For labels with several routes: the events that only the last route has."""
    lost = {}
    for label, (rule, *_) in rules.items():
        if isinstance(rule, Or):
            known = {name for part in rule.items[:-1] for name in event_names(part)}
            lost[label] = frozenset(event_names(rule.items[-1])) - known
    return {label: events for label, events in lost.items() if events}


def where_present(causes: dict[str, set[str]], data: Dataset) -> Sets:
    return {
        (data.sequence_ids[k].as_py(), label): frozenset(causes.get(label, set()) & set(data.events_of(k)))
        for k in range(len(data))
        for label in data.labels_of(k)
    }


def on_the_map(bench: Bench) -> None:
    """Everything known to everybody: the main tables, after each block of test sequences."""
    run, args = bench.run, bench.run.args
    presence, plain = bench.classical(("presence",), frozenset())
    run.say("boundaries by presence")
    order, ordered = bench.classical(("presence", "counts", "order"), frozenset())
    classical = best_classical([plain, ordered], [bench.training])
    run.done("classical")
    bench.pooled += bench.boundaries("intervention", None, bench.split.pool)
    run.done("pool", pool_pairs=len(bench.pooled))
    population = bench.population("population", classical, frozenset())
    run.done("population")
    on_average = bench.pooled_causes()
    positive = {label: {n for rule in some for n in positive_names(rule)} for label, some in bench.rules.items()}
    alpha = best_alpha(bench.boundaries("fused", population, bench.split.validation), bench.truth)
    run.done("validation", alpha_from_validation=alpha)
    alone: list[Boundary] = []
    fused: list[Boundary] = []
    for begin in range(0, len(bench.split.test), BLOCK):
        ids = bench.split.test[begin : begin + BLOCK]
        alone += bench.boundaries("intervention", None, ids)
        fused += bench.boundaries("fused", population, ids)
        tested = bench.part.take(bench.part.index_of(bench.split.test[: begin + BLOCK]))
        methods = {
            "presence oracle": Method(where_present(positive, tested)),
            "iamb, where present": judged(read_per_sequence(presence, tested), "p_value"),
            "iamb with counts and order": judged(read_per_sequence(order, tested), "p_value"),
            f"intervention, N = {args.contexts}": judged(alone, "q_value"),
            "pooled interventions, where present": Method(where_present(on_average, tested)),
            "close look alone (response >= 0.5)": Method(_looked(fused)),
            "fused": judged(fused, "posterior"),
            f"fused, alpha = {alpha} from validation": at_alpha(fused, alpha),
        }
        if any(item.rule is not None for b in fused for item in b.evidence):
            methods["recovered rule, evaluated here"] = Method(_by_rule(fused))
        pairs = sorted(pair for pair in methods["fused"].found if pair in bench.truth)
        parts = parts_of(pairs, bench.truth, methods["presence oracle"].found, classical.positives)
        subjects = dict(zip(tested.sequence_ids.to_pylist(), tested.subject_ids.to_pylist(), strict=True))
        last = run.late() or begin + BLOCK >= len(bench.split.test)
        draws = DRAWS if last else 0
        run.done(
            f"test {len(tested)}",
            tables=compare(methods, "fused", bench.truth, parts, subjects, draws=draws, seed=args.seed),
            test_sequences=len(tested),
            calibration=posterior_calibration(fused, bench.truth),
        )
        if last:
            break


def off_the_map(bench: Bench) -> None:
    """A route that pool and classical data have never seen: is it found where it fired?"""
    run, lost = bench.run, last_routes(bench.rules)
    fired = frozenset(s for (s, label), events in bench.truth.items() if events & lost.get(label, frozenset()))
    order, classical = bench.classical(("presence", "counts", "order"), fired)
    population = bench.population("population-off-map", classical, fired)
    run.say("population without the last routes:", len(fired), "sequences left out")
    validation, test = ([s for s in ids if s in fired] for ids in (bench.split.validation, bench.split.test))
    fused: list[Boundary] = []
    alone: list[Boundary] = []
    for ids in (validation, test):
        fused += bench.boundaries("fused", population, ids)
        alone += bench.boundaries("intervention", None, ids)
    asked = bench.part.take(bench.part.index_of([*validation, *test]))
    methods = {
        "iamb with counts and order": judged(read_per_sequence(order, asked), "p_value"),
        f"intervention, N = {run.args.contexts}": judged(alone, "q_value"),
        "fused": judged(fused, "posterior"),
    }
    pairs = [p for p in sorted(methods["fused"].found) if bench.truth.get(p, frozenset()) & lost.get(p[1], frozenset())]
    known = frozenset(validation)
    found = unseen_route(
        methods, bench.truth, lost, [p for p in pairs if p[0] in known], [p for p in pairs if p[0] not in known]
    )
    run.done("off map", unseen_route=found, calibration_off_map=posterior_calibration(fused, bench.truth))


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
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        fleet, model = fleet_and_model(run, Path(args.work or name))
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
        with (
            one_thread_children(),
            ProcessPoolExecutor(args.workers, get_context("spawn"), initializer=load, initargs=job) as workers,
        ):
            bench = Bench(run, scratch, training, parts, part, true_rules(fleet), truth, workers)
            on_the_map(bench)
            if args.off_map and run.late():
                run.say("late: off-map part left out")
            elif args.off_map:
                off_the_map(bench)
    run.done("all", complete=True)
    show(run.result)


if __name__ == "__main__":
    main()
