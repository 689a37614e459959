"""`oscar explain-run`: a results folder in sentences fit for the methods section of a paper."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Annotated

import typer

from oscar_causal.verbs.output import Json, print_json, print_lines, print_note

WIDTH = 100


def run(
    results: Annotated[Path, typer.Argument(help="Results folder.")],
    dataset: Annotated[Path | None, typer.Option(help="The run's dataset, if it has moved.")] = None,
    model: Annotated[Path | None, typer.Option(help="The run's model, if it has moved.")] = None,
    json: Json = False,
) -> None:
    """Say in sentences what a run did: data, model, estimand, assumptions, error control, results, seed, versions."""
    from oscar_causal.report.methods import explain_run

    found = explain_run(results, dataset=dataset, model=model)
    if json:
        print_json(found.to_json())
        return
    for note in found.missing:
        print_note(f"not at hand: {note}")
    filled = (textwrap.fill(text, WIDTH, break_long_words=False) for text in found.paragraphs.values())
    print_lines(["\n\n".join(filled)])
