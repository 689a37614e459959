"""`oscar export`: a dataset back as long tables, or as MEDS."""

from __future__ import annotations

import csv
import io
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oscar_causal.verbs.output import Force, Json, print_json, print_lines, progress_bar

if TYPE_CHECKING:
    from oscar_causal.data.export import ExportSummary


def run(
    dataset: Annotated[Path, typer.Argument(help="A dataset folder.")],
    out: Annotated[Path, typer.Option("--out", help="Folder to write; an existing one is an error.")],
    format: Annotated[str, typer.Option("--format", help="csv, parquet or meds.")] = "csv",
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write a dataset as long tables (events, labels) that other tools read and `oscar import` takes back."""
    from oscar_causal.data.export import export_tables

    if format == "meds":
        _as_meds(dataset, out, force, as_json)
        return
    with progress_bar("export", "sequences") as on_progress:
        summary = export_tables(dataset, out, format=format, force=force, on_progress=on_progress)
    command = import_command(summary)
    if as_json:
        print_json(
            {
                "events": str(summary.events),
                "labels": str(summary.labels) if summary.labels is not None else None,
                "event_rows": summary.event_rows,
                "label_rows": summary.label_rows,
                "import_command": command,
            }
        )
    else:
        print_lines(
            [
                f"{out}: {summary.event_rows:,} rows of events, {summary.label_rows:,} rows of labels; the way back:",
                shlex.join([*command, "--out", "DIR"]),
            ]
        )


def _as_meds(dataset: Path, out: Path, force: bool, as_json: bool) -> None:
    from oscar_causal.data.export_meds import export_meds

    with progress_bar("export", "sequences") as on_progress:
        summary = export_meds(dataset, out, force=force, on_progress=on_progress)
    labels = str(summary.labels) if summary.labels is not None else None
    command = ["oscar", "import", str(out), *(["--labels", labels] if labels else [])]
    if as_json:
        found = {"folder": str(out), "labels": labels, "event_rows": summary.event_rows}
        print_json({**found, "label_rows": summary.label_rows, "import_command": command})
    else:
        print_lines(
            [
                f"{out}: {summary.event_rows:,} rows of events, {summary.label_rows:,} rows of labels; the way back:",
                shlex.join([*command, "--out", "DIR"]),
            ]
        )


def import_command(summary: ExportSummary) -> list[str]:
    """The words of the command that imports the tables again; add --out."""
    words = ["oscar", "import", str(summary.events)]
    for name, value in asdict(summary.import_options).items():
        option = "--" + name.replace("_", "-")
        if name in ("chunk_mb", "encoding") or value in (None, (), False):
            continue
        words += [option] if value is True else [option, _text(value)]
    return words


def _text(value: Any) -> str:
    if not isinstance(value, tuple):
        return str(value)
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(value)
    return line.getvalue()
