"""`oscar check`: is this model oracle enough, which labels not to trust, and how do the assumptions stand?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from oscar_causal.verbs.output import Json, print_json, print_lines, print_plan, print_table

SHOWN_LABELS = 20


def run(
    model: Annotated[Path, typer.Argument(help="Model folder, plain or with folds.")],
    dataset: Annotated[Path, typer.Argument(help="Dataset folder.")],
    update: Annotated[bool, typer.Option("--update", help="Store the figures in the model's quality.json.")] = False,
    details: Annotated[bool, typer.Option("--details", help="Show the scores of every label.")] = False,
    memory: Annotated[
        float | None,
        typer.Option(help="Most memory in GiB beside the dataset; by default a share of what is free."),
    ] = None,
    json: Json = False,
) -> None:
    """Judge a model on sequences it has not seen: scores, calibration, labels not to trust, assumptions."""
    import torch

    from oscar_causal.data.sequences import read_dataset
    from oscar_causal.density.checking import check

    device = "cuda" if torch.cuda.is_available() else "cpu"
    told: dict[str, Any] = {"memory": memory, "on_plan": print_plan}
    found = check(model, read_dataset(dataset), update=update, device=device, **told)
    if json:
        print_json({"model": str(model), "dataset": str(dataset), **found})
        return
    _show(found, details=details)


def _show(found: dict[str, Any], *, details: bool) -> None:
    labels = found["labels"]
    print_lines([f"evaluated on {found['evaluated_on']}"])
    averages = ("micro", "macro", "weighted")
    own = labels["at_own_thresholds"]
    rows = [(name, *(labels[name][key] for key in ("precision", "recall", "f1")), own[name]["f1"]) for name in averages]
    print_table(("labels", "precision", "recall", "F1", "F1 at each label's own threshold"), rows)
    print_lines([f"mean average precision {_number(labels['mean_average_precision'])}, ECE {labels['ece']:.4f}"])
    table = [
        (f"{row['from']:.1f}-{row['to']:.1f}", row["count"], row["predicted"], row["observed"])
        for row in found["reliability"]
    ]
    print_table(("probability", "pairs", "mean predicted", "observed"), table, title="reliability")
    if found["by_prefix"]:
        rows = [
            (row["events"], row["sequences"], row["micro"]["f1"], row["macro"]["f1"], row["weighted"]["f1"], row["ece"])
            for row in found["by_prefix"]
        ]
        columns = ("first events", "sequences", "micro F1", "macro F1", "weighted F1", "ECE")
        print_table(columns, rows, title="after a prefix")
    for name, words in (("next_event", "time to the next event"), ("outcome", "time to the outcome")):
        times = found["times"][name]
        if times["coverage"] is not None:
            print_lines(
                [
                    f"{words}: 90 % intervals hold {times['coverage']:.0%} of {times['count']:,} times; "
                    f"{times['gain']:+.2f} nats against one law for all"
                ]
            )
    _show_skill(found, shown=None if details else SHOWN_LABELS)
    if details:
        _show_labels(found["per_label"])
    _show_doubts(found)
    print_lines(["assumptions:"])
    for item in found["assumptions"]:
        print_lines([_line(f"- {item['assumption']} {item['name']}: {item['verdict']}. {item['text']}")])
    print_lines(f"rewritten: {path}" for path in found["updated"])


def _show_labels(per_label: dict[str, Any]) -> None:
    figures = ("positives", "f1", "own_threshold", "ece", "trusted")
    rows = [(_line(name), *(row[key] for key in figures)) for name, row in per_label.items()]
    print_table(("label", "positives", "F1 at 0.5", "own threshold", "ECE", "trusted"), rows, title="every label")


def _show_skill(found: dict[str, Any], *, shown: int | None) -> None:
    """Each label's figures beside those of the simplest predictors; labels that cannot be judged first."""
    every = sorted(found["per_label"].items(), key=lambda item: bool(item[1]["trusted"]))
    rows = [line for name, row in every[:shown] for line in _compared(name, row)]
    print_table(("label", "predicted by", "log loss", "AP", "F1", "trusted"), rows, title="skill")
    if len(every) > len(every[:shown]):
        print_lines([f"and {len(every) - len(every[:shown]):,} more labels (--details shows all)"])
    if found["logistic_left_out"]:
        print_lines([f"logistic regression on presence is left out: {found['logistic_left_out']}"])
    if found["base_rates_from"] != "training":
        print_lines([f"the model's folder holds no base rates; taken from {found['base_rates_from']}"])
    if found["stored_judged_by"] != "skill":
        print_lines(
            ["trusted marks in the model's quality.json were judged by F1 alone; --update judges them by skill"]
        )


def _compared(name: str, row: dict[str, Any]) -> list[tuple[Any, ...]]:
    base, linear = row["base_rate"], row["logistic"]
    figures = ("log_loss", "average_precision", "f1_own")
    lines = [
        (_line(name), "always yes", "", "", row["always_yes"]["f1"], ""),
        ("", f"base rate {base['rate']:.4f}", base["log_loss"], base["average_precision"], "", ""),
    ]
    if linear is not None:
        lines.append(("", "logistic on presence", *(linear[key] for key in figures), ""))
    return [*lines, ("", "this model", *(row[key] for key in figures), row["trusted"])]


def _show_doubts(found: dict[str, Any]) -> None:
    doubts, every = found["not_trusted"], len(found["per_label"])
    print_lines([f"{every - len(doubts)} of {every} labels can be judged" + ("; not to be trusted:" if doubts else "")])
    shown = list(doubts.items())[:SHOWN_LABELS]
    print_lines(_line(f"- {name}: {reason}") for name, reason in shown)
    if len(doubts) > len(shown):
        print_lines([f"- and {len(doubts) - len(shown):,} more (--json lists all)"])
    if found["unknown_labels"]:
        print_lines([f"{len(found['unknown_labels']):,} labels of the dataset are unknown to the model"])


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _line(text: str) -> str:
    """One line, whatever the names in it hold."""
    return " ".join(text.split())
