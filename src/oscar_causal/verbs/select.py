"""`oscar select`: part of a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from oscar_causal.verbs.output import Force, Json, print_json, print_lines, progress_bar


def run(
    dataset: Annotated[Path, typer.Argument(help="A dataset folder.")],
    out: Annotated[Path, typer.Option("--out", help="Folder to write; an existing one is an error.")],
    last: Annotated[int | None, typer.Option("--last", help="The last N sequences, as stored.")] = None,
    ids: Annotated[
        Path | None, typer.Option("--ids", help="File with one sequence id per line, or a .json list.")
    ] = None,
    fraction: Annotated[
        float | None, typer.Option("--fraction", help="About this share of the subjects, with all their sequences.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Which subjects --fraction takes.")] = 0,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Copy part of a dataset, with the names, rules and reasons that belong to it."""
    from oscar_causal.data.select import Selection, read_ids, select_sequences

    selection = Selection(last, read_ids(ids) if ids is not None else None, fraction, seed)
    with progress_bar("select", "sequences") as on_progress:
        info = select_sequences(dataset, out, selection, force=force, on_progress=on_progress)
    if as_json:
        print_json({"out": str(out), **info})
    else:
        total = info["selected_from"]["sequences"]
        print_lines([f"{out}: {info['sequences']:,} of {total:,} sequences, {info['events']:,} events"])
