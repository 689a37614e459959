"""Graphs read back by other programs' readers are the same graphs, names and all."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import networkx as nx
import pyarrow.parquet as pq
import pytest

from oscar_causal.discovery.boundary import Boundary, EventEvidence
from oscar_causal.errors import FolderError, UsageError
from oscar_causal.graph.boundary_graph import edges_of, sequence_graph
from oscar_causal.graph.files import write_file
from oscar_causal.graph.formats import WRITERS, edge_table, edge_text, to_cytoscape, to_dot, to_graphml, write_graph


@pytest.fixture
def graph(nasty: tuple[str, ...]) -> nx.DiGraph:
    """Every nasty name as an event and as a label."""
    evidence = [
        EventEvidence(name, (k,), "inhibitor" if k % 3 == 0 else "cause", 0.1, indicator=(-1) ** (k % 3 == 0) * k / 40)
        for k, name in enumerate(nasty)
    ]
    return sequence_graph([Boundary("car", name, True, 0.5, tuple(evidence[k::3])) for k, name in enumerate(nasty)])


def test_graphml_comes_back(graph: nx.DiGraph) -> None:
    back = nx.parse_graphml(to_graphml(graph))
    safe = {node: node.replace("\r", "\\u000d") for node in graph}
    assert set(back) == set(safe.values())
    assert {tuple(edge) for edge in back.edges} == {(safe[a], safe[b]) for a, b in graph.edges}
    for a, b, attributes in graph.edges(data=True):
        assert back.edges[safe[a], safe[b]] == attributes
    for node, attributes in graph.nodes(data=True):
        assert back.nodes[safe[node]]["kind"] == attributes["kind"]
        assert back.nodes[safe[node]]["name"] == attributes["name"].replace("\r", "\\u000d")


def test_graphml_keeps_names_apart_that_xml_cannot_hold() -> None:
    evidence = tuple(EventEvidence(name, (0,), "cause", 0.1, indicator=0.1) for name in ("a\x00", "a\x01", "a\ufffe"))
    back = nx.parse_graphml(to_graphml(sequence_graph([Boundary("car", "y", True, 0.5, evidence)])))
    assert len(back) == 4


def test_dot_quotes_every_name(graph: nx.DiGraph) -> None:
    """A reader of DOT's quoted strings finds exactly the nodes and edges."""
    word = r'"((?:[^"\\]|\\.)*)"'
    text = to_dot(graph)
    nodes = [_plain(name) for name in re.findall(rf"^  {word} \[label=", text, re.MULTILINE)]
    edges = [(_plain(a), _plain(b)) for a, b in re.findall(rf"^  {word} -> {word} \[", text, re.MULTILINE)]
    assert nodes == list(graph)
    assert edges == list(graph.edges)
    assert text.count("style=dashed") == sum(v == "inhibitor" for *_, v in graph.edges(data="verdict"))


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: {"n": "\n", "r": "\r"}.get(found[1], found[1]), text)


def test_cytoscape_elements_are_the_graph(graph: nx.DiGraph) -> None:
    elements = json.loads(to_cytoscape(graph))["elements"]
    assert [node["data"]["id"] for node in elements["nodes"]] == list(graph)
    assert [(edge["data"]["source"], edge["data"]["target"]) for edge in elements["edges"]] == list(graph.edges)
    assert len({edge["data"]["id"] for edge in elements["edges"]}) == len(graph.edges)


def test_edge_tables_come_back(graph: nx.DiGraph, tmp_path: Path) -> None:
    rows = edges_of(graph)
    write_graph(graph, tmp_path / "edges.csv", "csv")
    write_graph(graph, tmp_path / "edges.parquet", "parquet")
    text = (tmp_path / "edges.csv").read_bytes().decode()
    read = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [(row["cause"], row["effect"], row["sign"]) for row in read] == [
        (row["cause"], row["effect"], row["sign"]) for row in rows
    ]
    table = pq.read_table(tmp_path / "edges.parquet")
    assert table.column_names[:6] == ["cause", "effect", "verdict", "sign", "strength", "q"]
    assert table["strength"].to_pylist() == [row["strength"] for row in rows]
    assert table["q"].null_count == len(rows)


def test_an_empty_graph_is_written_too() -> None:
    graph = sequence_graph([Boundary("car", "y", True, 0.5, ())])
    assert edge_table(graph).num_rows == 0
    for write in WRITERS.values():
        assert write(graph)


@pytest.mark.parametrize(
    ("edge", "text"),
    [
        ({"strength": 0.456, "sd": 0.1}, "+0.46 ± 0.10"),
        ({"strength": -0.2}, "−0.20"),
        ({"sign": "+"}, "+"),
    ],
)
def test_values_of_edges(edge: dict[str, object], text: str) -> None:
    assert edge_text(edge) == text


def test_files_appear_whole_or_not_at_all(tmp_path: Path) -> None:
    write_file(tmp_path / "new" / "a", b"one")
    with pytest.raises(UsageError, match="exists already"):
        write_file(tmp_path / "new" / "a", b"two")
    write_file(tmp_path / "new" / "a", b"two", force=True)
    assert (tmp_path / "new" / "a").read_bytes() == b"two"
    with pytest.raises(UsageError, match="folder"):
        write_file(tmp_path, b"x", force=True)
    with pytest.raises(FolderError, match="cannot be written"):
        write_file(tmp_path / "new" / "a" / "b", b"x")
    with pytest.raises(UsageError, match="cannot be a file's name"):
        write_file(tmp_path / ("x" * 300), b"x")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["a"]


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="gexf"):
        write_graph(nx.DiGraph(), tmp_path / "a.gexf", "gexf")
