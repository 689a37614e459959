"""`oscar report`: results as one offline page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from oscar_causal.verbs.output import Force, Json, print_json, print_lines, print_plan, progress_bar
from oscar_causal.verbs.score import MEANING


def run(
    results: Annotated[Path, typer.Argument(help="Results folder.")],
    out: Annotated[Path, typer.Option(help="HTML file to write.")],
    dataset: Annotated[Path | None, typer.Option(help="Dataset folder; by default the one of the run.")] = None,
    model: Annotated[Path | None, typer.Option(help="Model folder; by default the one of the run.")] = None,
    population: Annotated[Path | None, typer.Option(help="Population folder: fleet boundaries and rules.")] = None,
    sequence: Annotated[list[str] | None, typer.Option(help="Show this sequence; may be repeated.")] = None,
    limit: Annotated[int, typer.Option(help="Most sequences with a page of their own; fleet pages count all.")] = 1000,
    memory: Annotated[
        float | None, typer.Option(help="Most memory in GiB; by default a share of what is free.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title; by default the name of the results.")] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Write results as one self-contained HTML page: it opens offline, asks nothing of anybody and can be mailed."""
    from oscar_causal.graph.files import check_free
    from oscar_causal.report.page_data import ReportConfig
    from oscar_causal.report.sources import open_sources, plan_report

    check_free(out, force=force)
    config = ReportConfig(title or results.resolve().name, limit, tuple(sequence or ()))
    plan = plan_report(results, len(config.sequences) or limit, dataset=dataset, model=model, memory=memory)
    sources = open_sources(results, dataset=dataset, model=model)
    print_plan(plan)
    summary = write_report(sources, config, out, population=population, force=force) | {"memory": plan.to_json()}
    if json:
        print_json(summary)
        return
    megabytes = summary["bytes"] / 1e6
    print_lines([f"{out}: {summary['sequences']:,} sequences, {summary['labels']:,} labels, {megabytes:.1f} MB"])
    print_lines(f"missing: {line}" for line in summary["missing"])


def write_report(
    sources: Any, config: Any, out: Path, *, population: Path | None = None, force: bool = False
) -> dict[str, Any]:
    """Write the page of opened results, with the score where the truth is known; says what it holds."""
    from oscar_causal.report.page import write_page
    from oscar_causal.report.page_data import page_data

    scores, truth = _against_truth(sources)
    with progress_bar("reading probabilities along", "sequences") as show:
        data = page_data(sources, config, scores=scores, truth=truth, population=population, on_progress=show)
    size = write_page(data, out, force=force)
    return {
        "page": str(out),
        "bytes": size,
        "sequences": len(data["sequences"]["id"]),
        "labels": len(data["labels"]),
        "missing": data["missing"],
    }


def _against_truth(sources: Any) -> tuple[list[dict[str, Any]], Any]:
    """Rows of the score table and the reasons of each pair, where the dataset knows them."""
    from oscar_causal.score.matching import match, summarise, truth_of
    from oscar_causal.score.scoring import read_explained

    data = sources.dataset
    if data is None or not ((data.path / "rules.json").exists() or (data.path / "why").exists()):
        return [], None
    explained = read_explained(sources.results)
    truths = truth_of(data, explained.pairs)
    scores = {name: summarise(match(explained.found(name), truth)) for name, truth in truths.items()}
    rows = [
        {"truth": name, "meaning": MEANING.get(name, ""), **part["sample"], "macro_f1": part["macro"]["f1"]}
        for name, part in scores.items()
        if part["pairs"]
    ]
    return rows, truths.get("why", truths.get("rule_present"))
