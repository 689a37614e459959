"""`oscar score`: how good are the boundaries, where the truth is known?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from oscar_causal.verbs.output import Json, print_json, print_lines, print_table

MEANING = {
    "why": "the events that brought the label about in this sequence",
    "why_necessary": "those without which it would not have come",
    "rule_present": "the rule's positive events that are present",
    "rule_all": "every event of the rule (the paper's count)",
}
AVERAGES = ("sample", "micro", "macro", "weighted")
FIGURES = ("precision", "recall", "f1", "f1_of_means")
SHOWN = 30
"""Labels of the table by label."""
HEADS = ("precision", "recall", "F1", "F1 of means")


def run(
    results: Annotated[list[Path], typer.Argument(help="Results folders: one, or folds, seeds or methods.")],
    dataset: Annotated[Path | None, typer.Option(help="Dataset folder; by default the one of the run.")] = None,
    model: Annotated[Path | None, typer.Option(help="Model folder; by default the one of the run.")] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Every later folder against the first, on the pairs both explain.")
    ] = False,
    draws: Annotated[int | None, typer.Option(help="Bootstrap draws of subjects for --compare; 1000.")] = None,
    folds: Annotated[int | None, typer.Option(help="Also mean and sd over so many parts of the subjects.")] = None,
    details: Annotated[
        bool,
        typer.Option("--details", help="Also by label, boundary size, causes present, label frequency and acceptance."),
    ] = False,
    seed: Annotated[int | None, typer.Option(help="Decides the bootstrap draws of --compare; 0.")] = None,
    json: Json = False,
) -> None:
    """Precision, recall and F1 against the dataset's rules and reasons."""
    from oscar_causal.errors import UsageError
    from oscar_causal.score.scoring import compare_results, score_results

    for name, value in (("--draws", draws), ("--seed", seed)):
        if value is not None and not compare:
            raise UsageError(f"{name}: expected with --compare, got {value} without")
    if len(results) == 1 and not compare:
        scores = score_results(results[0], dataset=dataset, model=model, folds=folds)
        if json:
            print_json(scores)
        else:
            _show_one(scores, details)
        return
    chosen = (1000 if draws is None else draws) if compare else None
    found = compare_results(results, dataset=dataset, model=model, folds=folds, draws=chosen, seed=seed or 0)
    if json:
        print_json(found)
    else:
        _show_many(found, details)


def _show_one(scores: dict[str, Any], details: bool) -> None:
    print_table(["truth", "average", *HEADS], _rows(scores["truth"]), title=f"{scores['estimator']}")
    print_table(["truth", "guess", *HEADS], _control_rows(scores["truth"]), title="controls (sample)")
    _show_parts(scores, details)
    print_lines(f"{name}: {MEANING[name]}" for name in scores["truth"])
    print_lines(
        ["controls guess among the events present, as many as were found (all of the rule: as many as there are)"]
    )
    print_lines(_discovery_lines(scores))


def _show_parts(scores: dict[str, Any], details: bool, before: str = "") -> None:
    """What was asked for beside the averages; `before` stands before every title."""
    truths = scores["truth"]
    if any("over_folds" in part for part in truths.values()):
        print_table(["truth", "average", *HEADS[:3]], _fold_rows(truths), title=f"{before}mean ± sd over folds")
    if not details:
        return
    if scores["accepted_by"]:
        rows = _acceptance_rows(scores["accepted_by"])
        print_table(["accepted by", "accepted", "truth", "counted", "precision"], rows, title=f"{before}by acceptance")
    for name in ("by_causes", "by_size", "by_frequency"):
        title = name.replace("_", " ") + (f" in {scores['frequency_counted_in']}" if "freq" in name else "")
        rows = _group_rows(truths, name)
        print_table(["truth", "group", "pairs", *HEADS], rows, title=f"{before}{title} (sample)")
    truth = next(name for name in MEANING if name in truths)
    labels = sorted(truths[truth]["per_label"].items(), key=lambda item: -item[1]["pairs"])
    rows = [[label, *(figures[key] for key in ("pairs", *FIGURES[:3]))] for label, figures in labels[:SHOWN]]
    more = f", {SHOWN} most frequent of {len(labels)}, all with --json" if len(labels) > SHOWN else ""
    print_table(["label", "pairs", *HEADS[:3]], rows, title=f"{before}by label ({truth}{more})")


def _show_many(found: dict[str, Any], details: bool) -> None:
    names = [f"{number}: {run['estimator']}" for number, run in enumerate(found["runs"], 1)]
    rows = [
        [str(number), truth, *(part["sample"][key] for key in FIGURES), part["weighted"]["f1"]]
        for number, run in enumerate(found["runs"], 1)
        for truth, part in run["truth"].items()
    ]
    print_table(["", "truth", *HEADS, "weighted F1"], rows, title="sample averages")
    if "mean" in found:
        rows = [row for truth in found["mean"] for row in _spread_rows(truth, found["mean"][truth], found["sd"][truth])]
        print_table(["truth", "average", *HEADS[:3]], rows, title=f"mean ± sd over {len(names)} results")
    for name, run in zip(names, found["runs"], strict=True):
        _show_parts(run, details, f"{name}: ")
    for name, part in zip(names[1:], found.get("differences", ()), strict=False):
        rows = [
            [truth, average, *(_difference(figures[average][key]) for key in ("f1", "f1_of_means"))]
            for truth, figures in part["truth"].items()
            for average in AVERAGES
        ]
        print_table(["truth", "average", *HEADS[2:]], rows, title=f"{name} minus {names[0]} (95 % over subjects)")
    print_lines(f"{name}: {run['results']}" for name, run in zip(names, found["runs"], strict=True))


def _rows(truths: dict[str, Any]) -> list[list[Any]]:
    return [
        [truth, average, *(part[average][key] for key in FIGURES)]
        for truth, part in truths.items()
        for average in AVERAGES
    ]


def _control_rows(truths: dict[str, Any]) -> list[list[Any]]:
    names = {"random": "random", "frequent": "most frequent", "rule_present": "all of the rule"}
    return [
        [truth, names[name], *(control["sample"][key] for key in FIGURES)]
        for truth, part in truths.items()
        for name, control in part["controls"].items()
    ]


def _fold_rows(truths: dict[str, Any]) -> Iterator[list[Any]]:
    for truth, part in truths.items():
        yield from _spread_rows(truth, part["over_folds"]["mean"], part["over_folds"]["sd"])


def _spread_rows(truth: str, mean: dict[str, Any], sd: dict[str, Any]) -> Iterator[list[Any]]:
    for average in AVERAGES:
        yield [truth, average, *(f"{mean[average][key]:.3f} ± {sd[average][key]:.3f}" for key in FIGURES[:3])]


def _group_rows(truths: dict[str, Any], name: str) -> list[list[Any]]:
    return [
        [truth, group, figures["pairs"], *(figures["sample"][key] for key in FIGURES)]
        for truth, part in truths.items()
        for group, figures in part[name].items()
    ]


def _acceptance_rows(ways: dict[str, Any]) -> list[list[Any]]:
    return [
        [way, part["accepted"], truth, part["of"][truth], precision]
        for way, part in ways.items()
        for truth, precision in part["precision"].items()
    ]


def _difference(figure: dict[str, float]) -> str:
    return f"{figure['difference']:+.3f} ({figure['low']:+.3f}, {figure['high']:+.3f})"


def _discovery_lines(scores: dict[str, Any]) -> Iterator[str]:
    if "signs" not in scores:
        return
    signs, world = scores["signs"], scores["q_calibration"]
    if signs["events"]:
        yield f"signs: right for {signs['agreement']:.1%} of {signs['events']:,} accepted events that play a part"
    if world["accepted"]:
        yield (
            f"false in the world: {world['false']:,} of {world['accepted']:,} accepted events, {world['rate']:.1%} on "
            f"average over pairs; {world['on_false_labels']:,} on labels that are false themselves"
        )
    for row in world["by_q"]:
        yield f"  q up to {row['q_up_to']:g}: {row['accepted']:,} accepted, {row['rate']:.1%} false on average"
