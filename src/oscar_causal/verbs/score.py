"""`oscar score`: how good are the boundaries, where the truth is known?"""

from __future__ import annotations

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


def run(
    results: Annotated[Path, typer.Argument(help="Results folder.")],
    dataset: Annotated[Path | None, typer.Option(help="Dataset folder; by default the one of the run.")] = None,
    json: Json = False,
) -> None:
    """Precision, recall and F1 against the dataset's rules and reasons."""
    from oscar_causal.score.scoring import score_results

    scores = score_results(results, dataset=dataset)
    if json:
        print_json(scores)
        return
    print_table(
        ["truth", "average", "precision", "recall", "F1", "F1 of means"], _rows(scores), title=f"{scores['estimator']}"
    )
    print_lines(f"{name}: {MEANING[name]}" for name in scores["truth"])


def _rows(scores: dict[str, Any]) -> list[list[Any]]:
    return [
        [truth, average, *(part[average][key] for key in ("precision", "recall", "f1", "f1_of_means"))]
        for truth, part in scores["truth"].items()
        for average in ("sample", "micro", "macro", "weighted")
    ]
