"""`oscar discover`: boundaries for every sequence of a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from oscar_causal.verbs.output import Force, Json, print_json, print_lines, progress_bar


def run(
    model: Annotated[Path, typer.Argument(help="Model folder.")],
    dataset: Annotated[Path, typer.Argument(help="Dataset folder.")],
    out: Annotated[Path, typer.Option(help="Results folder to write.")],
    estimator: Annotated[str, typer.Option(help="intervention, or prefix (the paper's).")] = "intervention",
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
    held_out: Annotated[bool, typer.Option("--held-out", help="Only sequences the model has not seen.")] = False,
    seed: Annotated[int, typer.Option(help="Decides masks and draws.")] = 0,
    workers: Annotated[int, typer.Option(help="Processes.")] = 1,
    device: Annotated[str | None, typer.Option(help="cpu or cuda; the fastest there is by default.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on after an interruption.")] = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Find, for every sequence and each of its labels, the events with a direct effect on it."""
    from oscar_causal.discovery.intervention import InterventionConfig
    from oscar_causal.discovery.local import discover_folder, unseen_indices
    from oscar_causal.discovery.oneshot import DiscoveryConfig
    from oscar_causal.discovery.prefix import PrefixConfig

    config = DiscoveryConfig(
        estimator=estimator,
        intervention=InterventionConfig(contexts=contexts or 64, alpha=alpha, delta=delta),
        prefix=PrefixConfig(
            contexts=contexts or 68, threshold=threshold, context=context, sampler=sampler, max_lag=max_lag
        ),
        labels=tuple(label) if label else ("predicted" if predicted else "observed"),
        excluded=tuple(exclude or ()),
        seed=seed,
    )
    with progress_bar("discovering", "sequences") as show:
        run_info = discover_folder(
            model,
            dataset,
            out,
            config,
            indices=unseen_indices(model, dataset) if held_out else None,
            workers=workers,
            device=device or fastest_device(),
            resume=resume,
            force=force,
            on_progress=show,
        )
    summary = {"results": str(out), **summarise_results(out), "estimand": run_info["estimand"]}
    if json:
        print_json(summary)
        return
    print_lines(
        [
            f"{out}: {summary['explained']:,} (sequence, label) pairs explained, {summary['causes']:,} causes, "
            f"{summary['inhibitors']:,} inhibitors, {summary['empty']:,} pairs without any",
            f"marks: {summary['untrusted']:,} on labels not to be trusted, "
            f"{summary['seen']:,} on sequences seen in training",
            "a cause is a direct effect on the model's prediction; of the world it speaks as far as the model is right",
        ]
    )


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
