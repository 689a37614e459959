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
    alpha: Annotated[float, typer.Option(help="False discovery rate within one sequence and label.")] = 0.05,
    delta: Annotated[float, typer.Option(help="Smallest effect on P(label) that counts.")] = 0.05,
    threshold: Annotated[float, typer.Option(help="prefix: k of mean + k * sd.")] = 2.75,
    context: Annotated[int, typer.Option(help="prefix: the first c events are resampled.")] = 15,
    sampler: Annotated[str, typer.Option(help="prefix: top-k, permutation or none.")] = "top-k",
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
        float | None, typer.Option(help="Most memory in GiB; by default a share of what is free.")
    ] = None,
    precision: Annotated[
        str | None, typer.Option(help="On a GPU, of the label model: tf32 (default) or bf16 (faster).")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on after an interruption.")] = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Find, for every sequence and each of its labels, the events with a direct effect on it."""
    from oscar_causal.discovery.fused import FusedConfig
    from oscar_causal.discovery.intervention import InterventionConfig
    from oscar_causal.discovery.knowledge import Knowledge, read_knowledge
    from oscar_causal.discovery.local import discover_folder, unseen_indices
    from oscar_causal.discovery.oneshot import DiscoveryConfig
    from oscar_causal.discovery.prefix import PrefixConfig
    from oscar_causal.discovery.ranks import join_ranks
    from oscar_causal.discovery.survey import memory_words
    from oscar_causal.errors import UsageError

    if label and predicted:
        raise UsageError("--predicted: expected it or --label, got both")
    estimator = estimator or ("intervention" if population is None else "fused")
    if contexts is not None and ":" in estimator:
        raise UsageError(f"--contexts: {estimator} decides itself how many contexts it asks about")
    budget: dict[str, Any] = {} if contexts is None else {"contexts": contexts}
    paper = estimator == "prefix"
    config = DiscoveryConfig(
        estimator=estimator,
        intervention=InterventionConfig(alpha=alpha, delta=delta, **({} if paper else budget)),
        prefix=PrefixConfig(
            threshold=threshold, context=context, sampler=sampler, max_lag=max_lag, **(budget if paper else {})
        ),
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
            on_begin=lambda begun: print_note(memory_words(begun["memory"])),
            on_progress=show,
        )
    if join_ranks().rank:
        return  # under torchrun the first process speaks
    summary = {"results": str(out), **summarise_results(out), "estimand": run_info["estimand"]}
    summary["counts"] = run_info["counts"]
    if json:
        print_json(summary)
    else:
        print_lines(summary_words(summary))


def summary_words(summary: dict[str, Any]) -> list[str]:
    """What a run has found, for people."""
    found = (
        f"{summary['causes']:,} causes, {summary['inhibitors']:,} inhibitors, {summary['empty']:,} pairs without any"
    )
    marks = f"{summary['untrusted']:,} on labels not to be trusted, {summary['seen']:,} on sequences seen in training"
    return [
        f"{summary['results']}: {summary['explained']:,} (sequence, label) pairs explained, {found}",
        count_words(summary["counts"]),
        f"marks: {marks}",
        "a cause is a direct effect on the model's prediction; of the world it speaks as far as the model is right",
    ]


def count_words(counts: dict[str, int]) -> str:
    """What became of the sequences of a run, in one line; what did not occur is left out."""
    words = {
        "without_labels": "without a label to explain",
        "shorter_than_c": "shorter than c",
        "cut": "cut to the model's length",
        "unknown_events": "events unknown to the model",
        "unknown_labels": "labels unknown to the model",
    }
    told = [f"{counts[name]:,} {text}" for name, text in words.items() if counts[name]]
    return "; ".join([f"{counts['explained']:,} of {counts['sequences']:,} sequences explained", *told])


def fastest_device() -> str:
    """cuda when there is one."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def summarise_results(folder: Path) -> dict[str, int]:
    """Counts of a results folder."""
    import pyarrow.compute as pc

    from oscar_causal.discovery.results import read_table

    verdicts, causes = read_table(folder, "verdicts"), read_table(folder, "causes")
    keys = set(zip(causes["sequence_id"].to_pylist(), causes["label"].to_pylist(), strict=True))
    negative = pc.sum(pc.equal(causes["verdict"], "inhibitor")).as_py() or 0
    return {
        "explained": len(verdicts),
        "causes": len(causes) - negative,
        "inhibitors": negative,
        "empty": len(verdicts) - len(keys),
        "untrusted": pc.sum(pc.equal(verdicts["trusted"], False)).as_py() or 0,
        "seen": pc.sum(verdicts["seen_in_training"]).as_py() or 0,
    }
