"""`oscar discover`: boundaries for every sequence of a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from oscar_causal.verbs.output import Force, Json, print_json, print_lines, print_note, progress_bar


def run(
    model: Annotated[Path, typer.Argument(help="Model folder.")],
    dataset: Annotated[Path, typer.Argument(help="Dataset folder.")],
    out: Annotated[Path, typer.Option(help="Results folder to write.")],
    estimator: Annotated[
        str | None,
        typer.Option(
            help="intervention (default), fused (default with --population), prefix (the paper's), or module:function."
        ),
    ] = None,
    population: Annotated[
        Path | None, typer.Option(help="Population folder (`oscar population`): the fleet as prior, estimator fused.")
    ] = None,
    contexts: Annotated[int | None, typer.Option(help="Most contexts for one sequence (N).")] = None,
    alpha: Annotated[
        float | None, typer.Option(help="False discovery rate within one sequence and label.  [default: 0.05]")
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="Smallest effect on P(label) that counts.  [default: 0.05]")
    ] = None,
    tested_only: Annotated[
        bool, typer.Option("--tested-only", help="Accept what a test has shown, nothing by its score.")
    ] = False,
    threshold: Annotated[float | None, typer.Option(help="prefix: k of mean + k * sd.  [default: 2.75]")] = None,
    context: Annotated[
        int | None, typer.Option(help="prefix: the first c events are resampled.  [default: the model's c]")
    ] = None,
    sampler: Annotated[str | None, typer.Option(help="prefix: top-k, permutation or none.  [default: top-k]")] = None,
    top_k: Annotated[
        int | None, typer.Option(help="prefix, sampler top-k: draw from so many likely events.  [default: 35]")
    ] = None,
    top_p: Annotated[
        float | None, typer.Option(help="prefix, sampler top-k: draw from this share of P.  [default: 0.8]")
    ] = None,
    temperature: Annotated[
        float | None, typer.Option(help="prefix, sampler top-k: above 1 flatter, below 1 steeper.  [default: 1.0]")
    ] = None,
    max_lag: Annotated[float | None, typer.Option(help="prefix: oldest event tested, in seconds.")] = None,
    label: Annotated[
        list[str] | None, typer.Option(help="Explain this label in every sequence; may be repeated.")
    ] = None,
    predicted: Annotated[
        bool, typer.Option("--predicted", help="Explain labels with P > 0.5, recorded or not.")
    ] = False,
    exclude: Annotated[list[str] | None, typer.Option(help="Event never to be tested; may be repeated.")] = None,
    knowledge: Annotated[
        Path | None, typer.Option(help="JSON file: events excluded, forbidden or required, for all labels or for one.")
    ] = None,
    replacement: Annotated[
        str,
        typer.Option(
            help="What stands where an event was: model (Tf_x), marginal, donors, delete, or module:function."
        ),
    ] = "model",
    also: Annotated[
        list[Path] | None, typer.Option(help="Another model whose agreement is recorded; may be repeated.")
    ] = None,
    held_out: Annotated[bool, typer.Option("--held-out", help="Only sequences the model has not seen.")] = False,
    seed: Annotated[int, typer.Option(help="Decides masks and draws.")] = 0,
    engine: Annotated[str, typer.Option(help="local, or ray (the cluster at RAY_ADDRESS).")] = "local",
    workers: Annotated[
        int | None, typer.Option(help="Processes: 1 by default; with ray as many as the cluster has room for.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda; the fastest there is by default.")] = None,
    memory: Annotated[
        float | None, typer.Option(help="Most memory of one process in GiB; by default a share of what is free.")
    ] = None,
    precision: Annotated[
        str | None, typer.Option(help="On a GPU, of the label model: tf32 (default) or bf16 (faster).")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on after an interruption.")] = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Find, for every sequence and each of its labels, the events with a direct effect on it."""
    from oscar_causal.discovery.workers import begin_early

    if engine == "local":
        begin_early(workers, device)  # while this process imports the rest
    from oscar_causal.discovery.fused import FusedConfig
    from oscar_causal.discovery.knowledge import Knowledge, read_knowledge
    from oscar_causal.discovery.local import discover_folder, unseen_indices
    from oscar_causal.discovery.oneshot import DiscoveryConfig
    from oscar_causal.discovery.ranks import join_ranks
    from oscar_causal.errors import UsageError

    if label and predicted:
        raise UsageError("--predicted: expected it or --label, got both")
    estimator = estimator or ("intervention" if population is None else "fused")
    if contexts is not None and ":" in estimator:
        raise UsageError(f"--contexts: {estimator} decides itself how many contexts it asks about")
    if estimator == "prefix" and context is None:
        context = _trained_context(model)
    tests = {"alpha": alpha, "delta": delta, "tested_only": tested_only or None}
    draws = {"top_k": top_k, "top_p": top_p, "temperature": temperature}
    paper = {"threshold": threshold, "context": context, "sampler": sampler, "max_lag": max_lag, **draws}
    config = DiscoveryConfig(
        estimator=estimator,
        **estimator_settings(estimator, contexts, tests=tests, paper=paper),
        fused=FusedConfig(population=None if population is None else str(population.resolve())),
        labels=tuple(label) if label else ("predicted" if predicted else "observed"),
        excluded=tuple(exclude or ()),
        knowledge=Knowledge() if knowledge is None else read_knowledge(knowledge),
        replacement=replacement,
        seed=seed,
    )
    with progress_bar("discovering", "sequences") as show:
        run_info = discover_folder(
            model,
            dataset,
            out,
            config,
            indices=unseen_indices(model, dataset) if held_out else None,
            engine=engine,
            workers=workers,
            device=device or ("auto" if engine == "ray" else fastest_device()),
            also=also or (),
            memory=memory,
            precision=precision,
            resume=resume,
            force=force,
            on_begin=_tell_plan if join_ranks().rank == 0 else None,
            on_progress=show,
        )
    if join_ranks().rank:
        return  # under torchrun the first process speaks
    summary = {"results": str(out), **summarise_results(out), "estimand": run_info["estimand"]}
    summary |= {"counts": run_info["counts"], "unknown": run_info["unknown"]}
    if json:
        print_json(summary)
    else:
        print_lines(summary_words(summary))


def estimator_settings(
    estimator: str, contexts: int | None, *, tests: dict[str, Any], paper: dict[str, Any]
) -> dict[str, Any]:
    """Settings of `DiscoveryConfig` from options of the tests and of the paper's estimator; None = not given.

    An option that the estimator would not look at is refused: it must not pass for a setting.
    """
    from oscar_causal.discovery.intervention import InterventionConfig
    from oscar_causal.discovery.prefix import PrefixConfig
    from oscar_causal.errors import UsageError

    tests, paper = ({name: value for name, value in part.items() if value is not None} for part in (tests, paper))
    scores = {name: value for name, value in tests.items() if name == "tested_only"}  # fused accepts by posteriors
    idle = {"prefix": tests, "intervention": paper, "fused": {**scores, **paper}}.get(estimator, {**tests, **paper})
    if idle:
        name = next(iter(idle))
        whose = "intervention" if name in scores else "intervention and fused" if name in tests else "prefix"
        raise UsageError(f"--{name.replace('_', '-')}: an option of {whose}, got it with the estimator {estimator}")
    drawn = [name for name in ("top_k", "top_p", "temperature") if name in paper]
    if drawn and paper.get("sampler", "top-k") != "top-k":
        raise UsageError(
            f"--{drawn[0].replace('_', '-')}: an option of --sampler top-k, got --sampler {paper['sampler']}"
        )
    if contexts is not None and paper.get("sampler") == "none":
        raise UsageError(f"--contexts: --sampler none has one context, the sequence as it is; got {contexts}")
    budget: dict[str, Any] = {} if contexts is None else {"contexts": contexts}
    if estimator == "prefix":
        return {"prefix": PrefixConfig(**budget, **paper)}
    return {"intervention": InterventionConfig(**budget, **tests)}


def _trained_context(model: Path) -> int | None:
    """The model's own c; None where there is no model to ask, which is said where it is opened."""
    from oscar_causal.density.checkpoint import read_config

    places = sorted(model.glob("fold-*/config.json")) or [model / "config.json"]
    return max((max(1, read_config(place)[3]) for place in places if place.exists()), default=None)


def _tell_plan(run: dict[str, Any]) -> None:
    """Notes before the work begins."""
    from oscar_causal.discovery.survey import memory_words

    print_note(memory_words(run["memory"]))
    asked = (run["config"].get("prefix") or {}).get("context", run["min_context"])
    if asked < run["min_context"]:
        print_note(
            f"--context {asked}: the model has learnt to predict labels from c = {run['min_context']} events on; "
            "what it says of shorter ones is a guess"
        )


def summary_words(summary: dict[str, Any]) -> list[str]:
    """What a run has found, for people."""
    by_score = f" ({summary['by_score']:,} of them by score: no test has shown them)" if summary["by_score"] else ""
    found = (
        f"{summary['causes']:,} causes{by_score}, {summary['inhibitors']:,} inhibitors, "
        f"{summary['empty']:,} pairs without any"
    )
    marks = f"{summary['untrusted']:,} on labels not to be trusted, {summary['seen']:,} on sequences seen in training"
    return [
        f"{summary['results']}: {summary['explained']:,} (sequence, label) pairs explained, {found}",
        count_words(summary["counts"], summary["unknown"]),
        *threshold_words(summary["counts"].get("no_position_passes", 0)),
        f"marks: {marks}",
        "a cause is a direct effect on the model's prediction; of the world it speaks as far as the model is right",
    ]


def threshold_words(count: int) -> list[str]:
    """One line for all sequences in which `prefix` can accept nothing; none where there are none."""
    if not count:
        return []
    return [
        f"{count:,} sequences have too few events after the first c for any to pass the threshold of prefix, "
        "whatever the model says: lower --threshold or --context, or take --estimator intervention"
    ]


def count_words(counts: dict[str, int], unknown: dict[str, list[str]]) -> str:
    """What became of the sequences of a run, in one line; what did not occur is left out, unknown names are told."""
    words = {
        "without_labels": "without a label to explain",
        "shorter_than_c": "shorter than c",
        "cut": "cut to the model's length",
        "cut_events": "oldest events cut off there",
        "unknown_events": "events unknown to the model",
        "unknown_labels": "labels unknown to the model",
    }
    names = {f"unknown_{kind}": f" (most often {', '.join(found)})" for kind, found in unknown.items()}
    told = [f"{counts[name]:,} {text}{names.get(name, '')}" for name, text in words.items() if counts.get(name)]
    return "; ".join([f"{counts['explained']:,} of {counts['sequences']:,} sequences explained", *told])


def fastest_device() -> str:
    """cuda when there is one."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def summarise_results(folder: Path) -> dict[str, int]:
    """Counts of a results folder; what neither a test nor a score has accepted, other estimators or the user did."""
    import pyarrow.compute as pc

    from oscar_causal.discovery.results import read_table

    verdicts, causes = read_table(folder, "verdicts"), read_table(folder, "causes")
    keys = set(zip(causes["sequence_id"].to_pylist(), causes["label"].to_pylist(), strict=True))
    negative, by_test, by_score = (
        pc.sum(pc.equal(causes[column], value)).as_py() or 0
        for column, value in (("verdict", "inhibitor"), ("accepted_by", "test"), ("accepted_by", "score"))
    )
    return {
        "explained": len(verdicts),
        "causes": len(causes) - negative,
        "inhibitors": negative,
        "by_test": by_test,
        "by_score": by_score,
        "empty": len(verdicts) - len(keys),
        "untrusted": pc.sum(pc.equal(verdicts["trusted"], False)).as_py() or 0,
        "seen": pc.sum(verdicts["seen_in_training"]).as_py() or 0,
    }
