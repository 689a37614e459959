"""`oscar population`: from one car to the fleet."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oscar_causal.verbs.discover import fastest_device
from oscar_causal.verbs.output import Force, Json, print_json, print_note, progress_bar
from oscar_causal.verbs.population_words import show_population, summarise

if TYPE_CHECKING:
    from oscar_causal.data.rules import PublishedRule
    from oscar_causal.data.sequences import Dataset
    from oscar_causal.graph.assembling import Source
    from oscar_causal.graph.population_folder import Population
    from oscar_causal.graph.rule_recovery import RuleProposal

    Experts = tuple[str, Mapping[str, PublishedRule]]
    """What an expert's rules are called, and the rule of each label."""


def run(
    results: Annotated[
        list[Path], typer.Argument(help="Results of `oscar discover`, any number; or populations of other shards.")
    ],
    out: Annotated[Path, typer.Option(help="Population folder to write.")],
    classical: Annotated[
        list[Path] | None,
        typer.Option(help="Results of `oscar baseline`, best learnt from other cars; of several, all are made use of."),
    ] = None,
    alpha: Annotated[float, typer.Option(help="False discovery rate over all (label, event) pairs.")] = 0.05,
    delta: Annotated[float, typer.Option(help="Smallest mean effect on P(label) that counts.")] = 0.05,
    window: Annotated[
        float | None, typer.Option(help="Days of a window of `start`: look for changes between windows.")
    ] = None,
    looks: Annotated[
        int, typer.Option(help="Sequences of each label to look at closely (for `discover --population`); 0 = none.")
    ] = 40,
    contexts: Annotated[int, typer.Option(help="Contexts (N) that `discover --population` will use.")] = 64,
    rules: Annotated[bool, typer.Option("--rules/--no-rules", help="Recover the rule behind each label.")] = True,
    world: Annotated[
        int, typer.Option(help="Test so many of the strongest pairs on observed labels of held-out sequences.")
    ] = 0,
    expert: Annotated[
        Path | None, typer.Option(help="rules.json of an expert to compare with; by default the dataset's own.")
    ] = None,
    dataset: Annotated[Path | None, typer.Option(help="Dataset folder; by default the one of the run.")] = None,
    model: Annotated[Path | None, typer.Option(help="Model folder; by default the one of the run.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda; the fastest there is by default.")] = None,
    seed: Annotated[int, typer.Option(help="Decides samples and draws.")] = 0,
    force: Force = False,
    json: Json = False,
) -> None:
    """Merge one-shot evidence of many sequences into each label's boundary, its rule, and a prior for `discover`."""
    from oscar_causal.data.folders import refuse_existing
    from oscar_causal.discovery.intervention import InterventionConfig
    from oscar_causal.discovery.local import check_device
    from oscar_causal.discovery.refining import refined
    from oscar_causal.graph.assembling import (
        AssemblyConfig,
        assemble,
        learnt_from,
        open_source,
        read_classical,
        split_inputs,
    )
    from oscar_causal.graph.population import PopulationConfig
    from oscar_causal.graph.population_folder import write_population
    from oscar_causal.graph.variants import with_variants

    refuse_existing(out, force=force)
    config = AssemblyConfig(
        PopulationConfig(alpha, delta), window, looks, InterventionConfig(contexts=contexts), seed=seed
    )
    experts = _read_experts(expert, rules=rules)
    folders, populations = split_inputs(results)
    _refuse_without_results(folders, world=world, expert=expert)
    asked = bool(looks or rules or world)
    place = device or fastest_device()
    check_device(place)
    sources = [open_source(path, dataset=dataset, model=model, device=place, with_model=asked) for path in folders]
    datasets = [source.dataset for source in sources]
    known = None
    if classical:
        with progress_bar("refining classical boundaries", "labels") as show:
            learnt = [data for data in map(learnt_from, classical) if data is not None]
            boundaries = [read_classical(path) for path in classical]
            places = _each_once(learnt or datasets)
            known = refined(boundaries, places, workers=os.cpu_count() or 1, on_progress=show)
    with progress_bar("looking closely", "sequences") as show:
        found = assemble(sources, config, populations=populations, classical=known, on_progress=show)
    _tell_what_is_left_out(folders, populations, rules=rules, world=world)
    found = with_variants(found, _each_once(datasets))
    if rules and sources:
        found = _with_expert(_with_rules(found, sources, seed), sources[0].dataset, experts)
    if world and sources:
        found = _with_world_tests(found, sources, world, seed)
    write_population(out, found, force=force)
    summary = summarise(found)
    if json:
        print_json({"population": str(out), **summary})
        return
    show_population(found, out, summary)


def _each_once(datasets: Sequence[Dataset]) -> list[Dataset]:
    return list({data.info.get("digest") or str(data.path): data for data in datasets}.values())


def _refuse_without_results(folders: Sequence[Path], *, world: int, expert: Path | None) -> None:
    from oscar_causal.errors import UsageError

    if world < 0:
        raise UsageError(f"--world: expected 0 or more pairs to test, got {world}")
    for name, given in (("--world", world), ("--expert", expert)):
        if given and not folders:
            raise UsageError(f"{name}: expected a results folder, whose model is asked, got populations alone")


def _tell_what_is_left_out(folders: Sequence[Path], populations: Sequence[Path], *, rules: bool, world: int) -> None:
    """Rules, label interplay and world tests come from one results folder, with its model and dataset."""
    if populations:
        how = f"those here are from {folders[0]}" if folders else "name a results folder to have some"
        print_note(f"rules, label interplay and world tests of populations are not merged: {how}")
    if len(folders) > 1 and (rules or world):
        what = " and ".join([*["rules and label interplay"] * rules, *["world tests"] * bool(world)])
        print_note(f"{what}: from {folders[0]} alone, the first of {len(folders)} results folders")


def _with_rules(found: Population, sources: Sequence[Source], seed: int) -> Population:
    """Rules and label interplay from the first results folder's model and dataset."""
    from oscar_causal.discovery.fleet_prior import features_by_label
    from oscar_causal.graph.assembling import with_read_rules, with_rule_drift, with_rules
    from oscar_causal.graph.interplay import InterplayConfig, label_interplay
    from oscar_causal.graph.population_folder import candidates_by_label
    from oscar_causal.graph.rule_recovery import RuleRecoveryConfig, recover_rules

    source = sources[0]
    if source.models is None:
        print_note(f"no rules: {source.results} names no model that could be asked")
        return found
    model, data = source.models, source.dataset
    if not data.labelled.any():
        print_note("no rules: they are judged by recorded labels, and the dataset has none")
        return found
    unseen = ~source.models.seen_in_training(data.subject_ids)
    held_out = data.take(unseen) if unseen.any() and not unseen.all() else None
    candidates = candidates_by_label(found.boundaries, found.prior)
    features = features_by_label(found.prior.classical) if found.prior is not None else {}
    with progress_bar("recovering rules", "labels") as show:
        proposals = recover_rules(
            model,
            data,
            candidates,
            RuleRecoveryConfig(seed=seed),
            held_out=held_out,
            features=features,
            on_progress=show,
        )
    whole = with_rules(found, proposals)
    causes = dict(zip(found.labels["label"].to_pylist(), found.labels["causes"].to_pylist(), strict=True))
    with progress_bar("label interplay", "pairs of labels") as show:
        rows = label_interplay(model, data, causes, InterplayConfig(seed=seed), rules=whole.rules, on_progress=show)
    whole = with_rules(found, proposals, {"pairs": [row.to_json() for row in rows]})

    def recover(part: Dataset, label: str) -> RuleProposal:
        config = RuleRecoveryConfig(seed=seed)
        return recover_rules(model, part, {label: candidates[label]}, config, held_out=part)[0]

    return with_rule_drift(with_read_rules(whole, sources), data, recover)


def _read_experts(file: Path | None, *, rules: bool) -> Experts | None:
    """The rules of `--expert`, read before long work begins."""
    from oscar_causal.data.rules import read_rules
    from oscar_causal.errors import UsageError

    if file is None:
        return None
    if not rules:
        raise UsageError("--expert: there is nothing to compare with under --no-rules")
    return file.name, read_rules(file)


def _with_expert(found: Population, data: Dataset, experts: Experts | None) -> Population:
    """Proposed rules beside those of `--expert`, or of the dataset where it publishes some."""
    from oscar_causal.data.rules import read_rules
    from oscar_causal.graph.rules.expert import with_expert

    if not found.proposals:
        return found
    own = None if data.path is None else data.path / "rules.json"
    if experts is None and own is not None and own.exists():
        experts = f"{own.name} of the dataset", read_rules(own)
    return found if experts is None else with_expert(found, data, experts[1], file=experts[0])


def _with_world_tests(found: Population, sources: Sequence[Source], most: int, seed: int) -> Population:
    from oscar_causal.graph.world_test import strongest_pairs, with_world_p_values

    pairs = strongest_pairs(found.boundaries, most)
    with progress_bar("testing the world", "pairs") as show:
        return with_world_p_values(found, sources[0], pairs, seed=seed, on_progress=show)
