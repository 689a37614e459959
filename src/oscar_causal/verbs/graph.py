"""`oscar graph`: boundaries as a graph for other programs, or as a figure."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from oscar_causal.verbs.output import Force, Json, print_json, print_lines

ENDINGS = {
    ".graphml": "graphml",
    ".dot": "dot",
    ".gv": "dot",
    ".json": "cytoscape",
    ".csv": "csv",
    ".parquet": "parquet",
    ".png": "png",
    ".svg": "svg",
    ".pdf": "pdf",
}
"""Ending of the file -> format."""


def run(
    results: Annotated[Path, typer.Argument(help="Results folder, or a population folder with --population.")],
    out: Annotated[Path, typer.Option(help="File to write; its ending says the format unless --format does.")],
    sequence: Annotated[
        str | None, typer.Option(help="The graph of this sequence; by default of all together.")
    ] = None,
    population: Annotated[bool, typer.Option("--population", help="The folder is a population folder.")] = False,
    form: Annotated[
        str | None, typer.Option("--format", help="graphml, dot, cytoscape, csv, parquet, png, svg or pdf.")
    ] = None,
    label: Annotated[list[str] | None, typer.Option(help="Only this label; may be repeated.")] = None,
    sign: Annotated[str, typer.Option(help="both, cause or inhibitor.")] = "both",
    top: Annotated[int | None, typer.Option(help="Only the edges found most often, then the strongest.")] = None,
    title: Annotated[str, typer.Option(help="Title of a figure.")] = "",
    force: Force = False,
    json: Json = False,
) -> None:
    """Write the graph of one sequence, or of all sequences together, for other programs or as a figure."""
    from oscar_causal.errors import UsageError
    from oscar_causal.graph.boundary_graph import filter_graph
    from oscar_causal.graph.files import check_free

    chosen = form or ENDINGS.get(out.suffix.lower(), "")
    if chosen not in ENDINGS.values():
        raise UsageError(
            f"--format: expected one of {', '.join(dict.fromkeys(ENDINGS.values()))}, got {form or out.name!r}"
        )
    if population and sequence is not None:
        raise UsageError("--sequence: a population folder holds no single sequences; leave out --population")
    check_free(out, force=force)
    graph = filter_graph(_read(results, sequence, population), top=top, labels=label, sign=sign)
    _write(graph, out, chosen, title, force)
    summary = {
        "file": str(out),
        "format": chosen,
        "events": sum(kind == "event" for _, kind in graph.nodes(data="kind")),
        "labels": sum(kind == "label" for _, kind in graph.nodes(data="kind")),
        "edges": graph.number_of_edges(),
    }
    if json:
        print_json(summary)
    else:
        print_lines([f"{out}: {summary['events']:,} events, {summary['labels']:,} labels, {summary['edges']:,} edges"])


def _read(folder: Path, sequence: str | None, population: bool) -> Any:
    from oscar_causal.graph.boundary_graph import population_graph, read_boundaries, read_population, sequence_graph

    if population:
        return read_population(folder)
    if sequence is not None:
        return sequence_graph(read_boundaries(folder, [sequence]))
    return population_graph(read_boundaries(folder))


def _write(graph: Any, out: Path, form: str, title: str, force: bool) -> None:
    from oscar_causal.graph.formats import WRITERS, write_graph
    from oscar_causal.report.drawing import draw

    if form in WRITERS:
        write_graph(graph, out, form, force=force)
    else:
        draw(graph, out, form=form, title=title, force=force)
