"""Graphs for other programs: GraphML, DOT, Cytoscape JSON and edge tables (CSV, Parquet)."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from oscar_causal.errors import UsageError
from oscar_causal.graph.boundary_graph import edges_of
from oscar_causal.graph.files import write_file

_COLOURS = {"event": "#1f5fae", "label": "#b3261e", "cause": "#d9541e", "inhibitor": "#7a3fc0"}


def to_graphml(graph: nx.DiGraph) -> str:
    """GraphML; positions become text. Characters XML cannot hold are written like \\u0007, in ids too.

    >>> from oscar_causal.graph.boundary_graph import population_graph
    >>> "graphml" in to_graphml(population_graph([]))
    True
    """
    plain = nx.DiGraph(**{key: _xml_value(value) for key, value in graph.graph.items()})
    for node, attributes in graph.nodes(data=True):
        plain.add_node(_xml_text(node), **{key: _xml_value(value) for key, value in attributes.items()})
    for event, label, attributes in graph.edges(data=True):
        values = {key: _xml_value(value) for key, value in attributes.items()}
        plain.add_edge(_xml_text(event), _xml_text(label), **values)
    return "\n".join(nx.generate_graphml(plain, named_key_ids=True)) + "\n"


def to_dot(graph: nx.DiGraph) -> str:
    """Graphviz DOT, left to right, in the colours of the figures; inhibitors are dashed."""
    lines = ["digraph {", "  rankdir=LR;", '  node [shape=box, style="rounded", fontname="sans-serif"];']
    for node, attributes in graph.nodes(data=True):
        colour = _COLOURS[attributes["kind"]]
        lines.append(f'  {_quoted(node)} [label={_quoted(attributes["name"])}, color="{colour}"];')
    for event, label, edge in graph.edges(data=True):
        style = f'color="{_COLOURS[edge["verdict"]]}", style={"solid" if edge["verdict"] == "cause" else "dashed"}'
        width = 1 + 3 * min(1.0, abs(edge.get("strength", 0.0)))
        text = _quoted(edge_text(edge))
        lines.append(f"  {_quoted(event)} -> {_quoted(label)} [label={text}, {style}, penwidth={width:.2f}];")
    return "\n".join([*lines, "}"]) + "\n"


def to_cytoscape(graph: nx.DiGraph) -> str:
    """JSON that Cytoscape and cytoscape.js open: elements with nodes and edges; node ids are those of the graph."""
    nodes = [{"data": {"id": node, **_plain(values)}} for node, values in graph.nodes(data=True)]
    edges = [
        {"data": {"id": f"{index}", "source": event, "target": label, **_plain(values)}}
        for index, (event, label, values) in enumerate(graph.edges(data=True))
    ]
    content = {"data": _plain(graph.graph), "directed": True, "elements": {"nodes": nodes, "edges": edges}}
    return json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def edge_table(graph: nx.DiGraph) -> pa.Table:
    """One row per edge, most important first: cause, effect, verdict, sign, strength, q and what else is known."""
    first: dict[str, pa.DataType] = {
        **dict.fromkeys(("cause", "effect", "verdict", "sign"), pa.string()),
        "strength": pa.float64(),
        "q": pa.float64(),
    }
    rows = edges_of(graph)
    rest = {name: pa.array([row.get(name) for row in rows]).type for row in rows for name in row if name not in first}
    types = {**first, **rest}
    return pa.table({name: pa.array([row.get(name) for row in rows], kind) for name, kind in types.items()})


def edge_text(edge: dict[str, Any]) -> str:
    """Value and spread of an edge for people: +0.46 ± 0.10.

    >>> edge_text({"strength": 0.456, "sd": 0.1})
    '+0.46 ± 0.10'
    """
    if "strength" not in edge:
        return str(edge["sign"])
    spread = f" ± {edge['sd']:.2f}" if "sd" in edge else ""
    return f"{edge['strength']:+.2f}{spread}".replace("-", "−")


def _csv(graph: nx.DiGraph) -> bytes:
    held = io.BytesIO()
    pa_csv.write_csv(edge_table(graph), held)
    return held.getvalue()


def _parquet(graph: nx.DiGraph) -> bytes:
    held = io.BytesIO()
    pq.write_table(edge_table(graph), held)
    return held.getvalue()


WRITERS: dict[str, Callable[[nx.DiGraph], bytes]] = {
    "graphml": lambda graph: to_graphml(graph).encode(),
    "dot": lambda graph: to_dot(graph).encode(),
    "cytoscape": lambda graph: to_cytoscape(graph).encode(),
    "csv": _csv,
    "parquet": _parquet,
}
"""Format -> what stands in the file."""


def write_graph(graph: nx.DiGraph, path: Path | str, form: str, *, force: bool = False) -> None:
    """Write a graph in one of the formats of `WRITERS`; the file appears whole or not at all."""
    if form not in WRITERS:
        raise UsageError(f"format: expected one of {', '.join(WRITERS)}, got {form!r}")
    write_file(path, WRITERS[form](graph), force=force)


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\r", "\\r").replace("\n", "\\n")
    return f'"{escaped}"'


def _xml_value(value: Any) -> Any:
    if isinstance(value, tuple):
        return " ".join(str(item) for item in value)
    return _xml_text(value) if isinstance(value, str) else value


def _xml_text(text: str) -> str:
    """Only what XML 1.0 may hold and gives back unchanged."""
    return "".join(letter if _is_xml(ord(letter)) else f"\\u{ord(letter):04x}" for letter in text)


def _is_xml(code: int) -> bool:
    return code in (0x9, 0xA) or 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD or code >= 0x10000
