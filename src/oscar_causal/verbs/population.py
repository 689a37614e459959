"""`oscar population`: from one car to the fleet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oscar_causal.verbs.discover import fastest_device
from oscar_causal.verbs.output import Force, Json, print_json, print_lines, print_note, print_table, progress_bar

if TYPE_CHECKING:
    from oscar_causal.data.sequences import Dataset
    from oscar_causal.graph.assembling import Source
    from oscar_causal.graph.population_folder import Population
    from oscar_causal.graph.rule_recovery import RuleProposal

SHOWN = 25


def run(
    results: Annotated[
        list[Path], typer.Argument(help="Results of `oscar discover`, any number; or populations of other shards.")
    ],
    out: Annotated[Path, typer.Option(help="Population folder to write.")],
    classical: Annotated[
        list[Path] | None,
        typer.Option(help="Results of `oscar baseline`, best learnt from other cars; of several, each label's best."),
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
    dataset: Annotated[Path | None, typer.Option(help="Dataset folder; by default the one of the run.")] = None,
    model: Annotated[Path | None, typer.Option(help="Model folder; by default the one of the run.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda; the fastest there is by default.")] = None,
    seed: Annotated[int, typer.Option(help="Decides samples and draws.")] = 0,
    force: Force = False,
    json: Json = False,
) -> None:
    """Merge one-shot evidence of many sequences into each label's boundary, its rule, and a prior for `discover`."""
    from oscar_causal.data.folders import refuse_existing
    from oscar_causal.discovery.choosing import best_classical
    from oscar_causal.discovery.intervention import InterventionConfig
    from oscar_causal.graph.assembling import AssemblyConfig, assemble, open_source, read_classical, split_inputs
    from oscar_causal.graph.population import PopulationConfig
    from oscar_causal.graph.population_folder import write_population
    from oscar_causal.graph.variants import with_variants

    refuse_existing(out, force=force)
    config = AssemblyConfig(
        PopulationConfig(alpha, delta), window, looks, InterventionConfig(contexts=contexts), seed=seed
    )
    folders, populations = split_inputs(results)
    asked = bool(looks or rules or world)
    place = device or fastest_device()
    sources = [open_source(path, dataset=dataset, model=model, device=place, with_model=asked) for path in folders]
    datasets = [source.dataset for source in sources]
    known = best_classical([read_classical(path) for path in classical], datasets) if classical else None
    with progress_bar("looking closely", "sequences") as show:
        found = assemble(sources, config, populations=populations, classical=known, on_progress=show)
    found = with_variants(found, list({data.info.get("digest") or str(data.path): data for data in datasets}.values()))
    if rules and sources:
        found = _with_rules(found, sources, seed)
    if world and sources:
        found = _with_world_tests(found, sources, world, seed)
    write_population(out, found, force=force)
    summary = summarise(found)
    if json:
        print_json({"population": str(out), **summary})
        return
    _show(found, out, summary)


def _with_rules(found: Population, sources: Sequence[Source], seed: int) -> Population:
    """Rules and label interplay from the first results folder's model and dataset."""
    from oscar_causal.graph.assembling import with_read_rules, with_rule_drift, with_rules
    from oscar_causal.graph.interplay import InterplayConfig, label_interplay
    from oscar_causal.graph.population_folder import candidates_by_label
    from oscar_causal.graph.rule_recovery import RuleRecoveryConfig, recover_rules

    source = sources[0]
    if source.models is None:
        return found
    model, data = source.models, source.dataset
    if not data.labelled.any():
        print_note("no rules: they are judged by recorded labels, and the dataset has none")
        return found
    unseen = ~source.models.seen_in_training(data.subject_ids)
    held_out = data.take(unseen) if unseen.any() and not unseen.all() else None
    candidates = candidates_by_label(found.boundaries, found.prior)
    with progress_bar("recovering rules", "labels") as show:
        proposals = recover_rules(
            model, data, candidates, RuleRecoveryConfig(seed=seed), held_out=held_out, on_progress=show
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


def _with_world_tests(found: Population, sources: Sequence[Source], most: int, seed: int) -> Population:
    from oscar_causal.graph.world_test import strongest_pairs, with_world_p_values

    pairs = strongest_pairs(found.boundaries, most)
    with progress_bar("testing the world", "pairs") as show:
        return with_world_p_values(found, sources[0], pairs, seed=seed, on_progress=show)


def summarise(found: Population) -> dict[str, Any]:
    """Counts for people and machines."""
    from oscar_causal.graph.rule_drift import changed_rules

    verdicts = found.boundaries["verdict"].to_pylist()
    return {
        "sequences": found.info["sequences"],
        "unlabelled": found.info["unlabelled"],
        "absent": found.info["absent"],
        "labels": len(found.labels),
        "pairs": len(verdicts),
        **{name.replace(" ", "_"): verdicts.count(name) for name in ("cause", "inhibitor", "undecided", "too few")},
        "never_without": sum(bool(others) for others in found.boundaries["never_without"].to_pylist()),
        "rules": len(found.rules),
        "prior": found.prior is not None,
        "changes": 0 if found.drift is None else sum(found.drift["changed"].to_pylist()),
        "changed_rules": 0 if found.rule_drift is None else len(changed_rules(found.rule_drift)),
    }


def _doubtful(summary: dict[str, Any]) -> list[str]:
    """What the counts rest on besides recorded labels."""
    lines = []
    if summary["unlabelled"]:
        lines.append(
            f"{summary['unlabelled']:,} of them without recorded labels: there the model alone says that it came"
        )
    if summary["absent"]:
        lines.append(f"{summary['absent']:,} more left out: explained, but recorded not to have come")
    if summary["never_without"]:
        lines.append(
            f"{summary['never_without']:,} events without which another of the boundary was never seen (never_without)"
        )
    return lines


def _show(found: Population, out: Path, summary: dict[str, Any]) -> None:
    rows = [
        [row["label"], row["sequences"], ", ".join(row["causes"]) or "-", found.rules.get(row["label"], "-")]
        for row in sorted(found.labels.to_pylist(), key=lambda row: -row["sequences"])[:SHOWN]
    ]
    print_table(["label", "sequences", "causes", "proposed rule"], rows, title="most frequent labels")
    lines = [
        f"{out}: {summary['sequences']:,} (sequence, label) pairs of {summary['labels']:,} labels",
        f"{summary['cause']:,} causes, {summary['inhibitor']:,} inhibitors, {summary['undecided']:,} undecided, "
        f"{summary['too_few']:,} events tested in too few cars",
    ]
    lines += _doubtful(summary)
    if found.drift is not None:
        lines.append(f"{summary['changes']:,} changes of effects between windows (drift.parquet)")
    if found.rule_drift is not None:
        lines.append(f"{summary['changed_rules']:,} labels whose rule changes between windows (rule_drift.parquet)")
    if found.prior is None:
        lines.append("no prior: `discover --population` needs a model and --looks above 0 here")
    print_lines(lines)
