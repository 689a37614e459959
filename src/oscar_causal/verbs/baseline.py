"""`oscar baseline`: global Markov boundaries by a classical algorithm, read per sequence."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oscar_causal.errors import UsageError
from oscar_causal.verbs.output import Force, Json, print_json, print_lines, print_table, progress_bar

if TYPE_CHECKING:
    from oscar_causal.discovery.classical.boundaries import GlobalBoundary


def run(
    name: Annotated[str, typer.Argument(help="iamb, cmb, mb-by-mb, pcd-by-pcd or mi-mcf.")],
    dataset: Annotated[Path, typer.Argument(help="Dataset folder.")],
    out: Annotated[Path, typer.Option(help="Results folder to write.")],
    alpha: Annotated[
        float, typer.Option(help="Error rate of one family of tests (the candidates of one label).")
    ] = 0.01,
    correction: Annotated[str, typer.Option(help="For the number of tests: bonferroni, bh or none.")] = "bonferroni",
    statistic: Annotated[str, typer.Option(help="g2 or chi2.")] = "g2",
    features: Annotated[str, typer.Option(help="presence, or with more: counts, order, or counts,order.")] = "presence",
    window: Annotated[
        list[float] | None,
        typer.Option(help="order: b follows a within so many seconds; repeatable; 0 = plain order only."),
    ] = None,
    labels: Annotated[list[str] | None, typer.Option(help="Only this label; may be repeated.")] = None,
    time_limit: Annotated[float | None, typer.Option(help="Seconds for all labels together.")] = None,
    label_time_limit: Annotated[float, typer.Option(help="Seconds for one label; 0 = no limit.")] = 60.0,
    max_given: Annotated[int, typer.Option(help="Largest conditioning set where subsets are searched.")] = 3,
    k1: Annotated[float, typer.Option(help="mi-mcf: share of hidden candidates that may come back.")] = 0.7,
    k2: Annotated[float, typer.Option(help="mi-mcf: share of features checked from the other side.")] = 0.1,
    as_published: Annotated[
        bool, typer.Option("--as-published", help="Also search for effects of labels; by default labels come last.")
    ] = False,
    labels_as_candidates: Annotated[
        bool | None,
        typer.Option(
            "--labels-as-candidates/--no-labels-as-candidates",
            help="May other labels take part? Default: in mi-mcf only.",
        ),
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Processes; all cores by default.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on after an interruption.")] = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Find each label's Markov boundary in the whole dataset and read it in every sequence: the rival of `discover`."""
    from oscar_causal.discovery.classical.ci_tests import CiConfig
    from oscar_causal.discovery.classical.features import FeatureConfig
    from oscar_causal.discovery.classical.folder import baseline_folder
    from oscar_causal.discovery.classical.methods import BaselineConfig
    from oscar_causal.discovery.classical.mi_mcf import MiMcfConfig

    if label_time_limit < 0:
        raise UsageError(f"label time limit: expected seconds, or 0 for none, got {label_time_limit}")
    kinds = ("presence", *(kind.strip() for kind in features.split(",") if kind.strip() != "presence"))
    windows = {} if window is None else {"windows": tuple(seconds for seconds in window if seconds != 0)}
    config = BaselineConfig(
        name,  # type: ignore[arg-type]
        CiConfig(alpha, correction, statistic, max_given=max_given),  # type: ignore[arg-type]
        FeatureConfig(kinds, **windows),  # type: ignore[arg-type]
        MiMcfConfig(k1=k1, k2=k2),
        labels_as_candidates,
        outcomes=not as_published,
        label_time_limit=label_time_limit or None,
        time_limit=time_limit,
    )
    with progress_bar(name, "labels") as show:
        found = baseline_folder(
            dataset,
            out,
            config,
            labels=labels,
            workers=workers if workers is not None else os.cpu_count() or 1,
            resume=resume,
            force=force,
            on_progress=show,
        )
    summary = _summary(out, found)
    if json:
        print_json({**summary, "boundaries": {item.label: list(item.events) for item in found}})
        return
    strongest = sorted(found, key=lambda item: -item.positives)[:20]
    rows = [
        (item.label, item.positives, item.tests, item.complete, ", ".join(item.events) or "-") for item in strongest
    ]
    print_table(("label", "sequences", "tests", "complete", "boundary"), rows, title=f"{name}: most frequent labels")
    print_lines([f"{out}: {key.replace('_', ' ')} {value:,}" for key, value in summary.items() if key != "results"])


def _summary(out: Path, found: list[GlobalBoundary]) -> dict[str, Any]:
    return {
        "results": str(out),
        "labels": len(found),
        "events_in_boundaries": sum(len(item.events) for item in found),
        "empty_boundaries": sum(not item.members for item in found),
        "incomplete_labels": sum(not item.complete for item in found),
        "tests": sum(item.tests for item in found),
    }
