"""`oscar demo`: the whole job on a small synthetic fleet, in minutes on two cores."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from oscar_causal.verbs.output import Force, Json, print_json, print_lines, print_table, progress_bar


def run(
    out: Annotated[Path, typer.Option(help="Folder for the fleet, the model and the results.")] = Path("oscar-demo"),
    seed: Annotated[int, typer.Option(help="Decides the fleet, the weights and the contexts.")] = 0,
    sequences: Annotated[int, typer.Option(help="Sequences of the fleet.")] = 16000,
    steps: Annotated[int, typer.Option(help="Optimiser steps.")] = 500,
    contexts: Annotated[int, typer.Option(help="Most contexts for one sequence (N).")] = 96,
    explain: Annotated[int, typer.Option(help="Held-out sequences to explain.")] = 250,
    force: Force = False,
    json: Json = False,
) -> None:
    """Make a fleet whose causes are known, train, discover, score, and write a page to look at."""
    from oscar_causal.data.folders import refuse_existing

    begun = time.monotonic()
    refuse_existing(out, force=force)
    if out.exists():
        shutil.rmtree(out)
    figures = _all_stages(out, seed, sequences, steps, contexts, explain)
    figures |= {"out": str(out), "seconds": round(time.monotonic() - begun, 1)}
    if json:
        print_json(figures)
    else:
        _show(figures)


def _all_stages(folder: Path, seed: int, sequences: int, steps: int, contexts: int, explain: int) -> dict[str, Any]:
    from oscar_causal.data.sequences import read_dataset
    from oscar_causal.data.synthetic import preset, write_fleet
    from oscar_causal.density.fitting import train
    from oscar_causal.density.settings import preset_config
    from oscar_causal.discovery.intervention import InterventionConfig
    from oscar_causal.discovery.local import discover_folder, unseen_indices
    from oscar_causal.discovery.oneshot import DiscoveryConfig
    from oscar_causal.report.page_data import ReportConfig
    from oscar_causal.report.sources import open_sources
    from oscar_causal.score.scoring import score_results
    from oscar_causal.verbs.report import write_report

    fleet, model = folder / "fleet", folder / "model"
    with progress_bar("making the fleet", "sequences") as show:
        info = write_fleet(preset("demo", sequences=sequences), seed, fleet, on_progress=show)
    config = preset_config("tiny", steps=steps, seed=seed)
    with progress_bar("training", "steps") as show:
        quality = train(read_dataset(fleet), model, config, on_step=lambda step, total, _: show(step, total))
    chosen = unseen_indices(model, fleet)[:explain]
    scores = {}
    for name, settings in (
        ("intervention", DiscoveryConfig(intervention=InterventionConfig(contexts=contexts), seed=seed)),
        ("prefix", DiscoveryConfig(estimator="prefix", seed=seed)),
    ):
        with progress_bar(f"discovering ({name})", "sequences") as show:
            discover_folder(model, fleet, folder / name, settings, indices=chosen, on_progress=show)
        scores[name] = score_results(folder / name, dataset=fleet)["truth"]["why"]
    write_report(open_sources(folder / "intervention"), ReportConfig("OSCAR demo"), folder / "page.html")
    return {
        "sequences": info["sequences"],
        "explained": len(chosen),
        "labels": quality["labels"],
        "why": scores,
        "example": _example(folder / "intervention"),
    }


def _example(results: Path) -> dict[str, Any]:
    from oscar_causal.discovery.results import read_table

    rows = read_table(results, "causes").to_pylist()
    strongest = max(rows, key=lambda row: row["alone"] or 0.0, default=None)
    if strongest is None:
        return {}
    same = [row for row in rows if (row["sequence_id"], row["label"]) == (strongest["sequence_id"], strongest["label"])]
    return {
        "sequence_id": strongest["sequence_id"],
        "label": strongest["label"],
        "causes": [{key: row[key] for key in ("event", "alone", "indicator", "q_value")} for row in same],
    }


def _show(figures: dict[str, Any]) -> None:
    labels = figures["labels"]["weighted"]["f1"]
    print_table(
        ["estimator", "precision", "recall", "F1"],
        [
            [name, *(part["sample"][key] for key in ("precision", "recall", "f1_of_means"))]
            for name, part in figures["why"].items()
        ],
        title=f"Causes found in {figures['explained']} cars the model has never seen, against the known reasons",
    )
    example = figures["example"]
    lines = [
        f"label model: F1 {labels:.3f} on held-out cars; {figures['seconds']:.0f} s in all",
        "look at {out}/page.html, or live: oscar serve {out}/model --dataset {out}/fleet".format(out=figures["out"]),
    ]
    if example:
        lines.append(f"for example {example['sequence_id']}, {example['label']!r}:")
        lines += [
            f"  without {row['event']} its probability falls by {row['alone']:.2f} (q = {row['q_value']:.4f})"
            for row in example["causes"]
            if row["alone"] is not None
        ]
    print_lines(lines)
    sys.stdout.flush()
