"""`oscar import`: tables of events and labels, or logs of other formats, become a dataset."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oscar_causal.verbs.output import Force, Json, print_json, print_lines, progress_bar

if TYPE_CHECKING:
    from oscar_causal.data.importers import ImportSummary

_SEVERAL = "comma-separated like a line of CSV, or the option several times"


def _option(name: str, text: str, **more: Any) -> Any:
    return typer.Option(f"--{name}", help=text, **more)


Name = str | None
Names = list[str] | None


def run(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Tables of events (.csv, .tsv, .jsonl, also .gz; .parquet), XES or OCEL 2 logs, EasyTPP JSON, or the "
            "folder of a MEDS or Hugging Face dataset."
        ),
    ],
    out: Annotated[Path, _option("out", "Folder to write; an existing one is an error.")],
    labels: Annotated[
        Path | None,
        _option(
            "labels",
            "Table of outcomes: long (sequence, label[, time]) or wide (one 0/1 column per label); also a MEDS task, "
            "or the log itself with --label-column case:KEY (XES), object:NAME (OCEL) or a list (Hugging Face).",
        ),
    ] = None,
    sequence_column: Annotated[
        Name, _option("sequence-column", "Default: sequence_id, seq_id, case_id, vin, car or id.")
    ] = None,
    time_column: Annotated[Name, _option("time-column", "Default: time, t or timestamp.")] = None,
    event_column: Annotated[Name, _option("event-column", "Default: event, code, activity or alarm_id.")] = None,
    subject_column: Annotated[
        Name, _option("subject-column", "The car, the patient. Default: subject_id, else each sequence is its own.")
    ] = None,
    start_column: Annotated[Name, _option("start-column", "ISO timestamp of time zero of the sequence.")] = None,
    static: Annotated[Names, _option("static", f"Columns known at the start of a sequence: {_SEVERAL}.")] = None,
    channels: Annotated[Names, _option("channels", f"Numeric columns that go with each event: {_SEVERAL}.")] = None,
    label_column: Annotated[
        Name,
        _option("label-column", "The label in a long table. Default: label, outcome, diagnosis, pattern or target."),
    ] = None,
    label_columns: Annotated[
        Names,
        _option("label-columns", f"The 0/1 columns of a wide table ('*': all that are nothing else): {_SEVERAL}."),
    ] = None,
    label_time_column: Annotated[
        Name, _option("label-time-column", "When the label came. Default: label_time, time, t or timestamp.")
    ] = None,
    gap: Annotated[
        float | None,
        _option(
            "gap",
            "Leave out events closer to the sequence's first label than this, and all at or after it.",
            metavar="SECONDS",
        ),
    ] = None,
    time_unit: Annotated[
        Name, _option("time-unit", "us, ms, s, m, h, d or timestamp. Default: the first time decides; numbers: s.")
    ] = None,
    keep_origin: Annotated[
        bool, _option("keep-origin", "Numeric times count from the start already; else the first event is at 0.")
    ] = False,
    skip_bad_rows: Annotated[bool, _option("skip-bad-rows", "Put bad rows into rejected.csv and go on.")] = False,
    names: Annotated[
        Path | None, _option("names", "Descriptions: a JSON object, or a table with columns name and description.")
    ] = None,
    delimiter: Annotated[
        Name,
        _option("delimiter", "Between cells of text. Default: a tab for .tsv, else comma, or ; tab | in the header."),
    ] = None,
    decimal: Annotated[str, _option("decimal", "Before the fraction of a number: '.' or ','.")] = ".",
    encoding: Annotated[str, _option("encoding", "Of text tables.")] = "utf-8",
    format: Annotated[
        Name, _option("format", "tables, meds, xes, ocel, easytpp or hf. Default: seen from the first file.")
    ] = None,
    object_type: Annotated[
        Name, _option("object-type", "OCEL: type of the objects whose lives are the sequences.")
    ] = None,
    split: Annotated[Name, _option("split", "MEDS, Hugging Face: only this split.")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Turn tables of events and outcomes into a dataset; rows need not be sorted, files may be larger than memory."""
    from oscar_causal.data.importers import ImportOptions, import_tables

    options = ImportOptions(
        sequence_column=sequence_column,
        time_column=time_column,
        event_column=event_column,
        subject_column=subject_column,
        start_column=start_column,
        static=_names(static),
        channels=_names(channels),
        labels=labels,
        label_column=label_column,
        label_columns=_names(label_columns),
        label_time_column=label_time_column,
        gap=gap,
        time_unit=time_unit,
        keep_origin=keep_origin,
        skip_bad_rows=skip_bad_rows,
        names=names,
        delimiter=delimiter,
        decimal=decimal,
        encoding=encoding,
        format=format,
        object_type=object_type,
        split=split,
    )
    with progress_bar("import", "%") as on_progress:
        summary = import_tables(files, out, options, force=force, on_progress=on_progress)
    if as_json:
        print_json(summary.to_json())
    else:
        print_lines(_lines(summary))


def _names(values: list[str] | None) -> tuple[str, ...]:
    return tuple(name for row in csv.reader(values or []) for name in row)


def _lines(summary: ImportSummary) -> list[str]:
    lines = [
        f"{summary.out}: {summary.events:,} events of {summary.event_types:,} types, {summary.sequences:,} sequences "
        f"of {summary.subjects:,} subjects, {len(summary.labels):,} labels"
    ]
    if summary.dropped_by_gap or summary.events_left_out:
        lines.append(
            f"--gap left out {summary.events_left_out:,} events and {summary.dropped_by_gap:,} whole sequences"
            + (" (named in rejected.csv)" if summary.dropped_by_gap else "")
        )
    if summary.rejected:
        lines.append(f"{summary.rejected:,} rows in rejected.csv, the first:")
        lines += [f"  {row}" for row in summary.first_rejected]
    return lines
