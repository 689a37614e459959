"""Graphs against the boundaries they are made of, counted by hand."""

from __future__ import annotations

import statistics
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oscar_causal.data.folders import write_json
from oscar_causal.discovery.boundary import Boundary, EventEvidence
from oscar_causal.discovery.results import ResultsWriter
from oscar_causal.errors import FolderError, UsageError
from oscar_causal.graph.boundary_graph import (
    edges_of,
    filter_graph,
    population_graph,
    read_boundaries,
    read_population,
    sequence_graph,
    to_networkx,
)


def event(name: str, value: float | None, *positions: int) -> EventEvidence:
    verdict = "inhibitor" if value is not None and value < 0 else "cause"
    effect = np.nan if value is None else value
    return EventEvidence(name, positions, verdict, effect, indicator=value, indicator_sd=0.1, q_value=0.01)


def refused(name: str) -> EventEvidence:
    return EventEvidence(name, (0,), "no effect", 0.9)


def boundary(sequence_id: str, label: str, *evidence: EventEvidence) -> Boundary:
    return Boundary(sequence_id, label, True, 0.9, evidence)


def test_a_sequence_graph_holds_accepted_events_and_every_label() -> None:
    graph = sequence_graph(
        [
            boundary("car", "y", event("A", 0.5, 3, 7), refused("B"), event("y", -0.2, 1)),
            boundary("car", "z", event("A", 0.1, 5)),
            boundary("car", "empty", refused("B")),
        ]
    )
    assert set(graph) == {"event:A", "event:y", "label:y", "label:z", "label:empty"}
    assert set(graph.edges) == {("event:A", "label:y"), ("event:y", "label:y"), ("event:A", "label:z")}
    assert graph.nodes["event:A"]["positions"] == (3, 5, 7)
    edge = graph.edges["event:y", "label:y"]
    assert (edge["verdict"], edge["sign"], edge["strength"], edge["q"]) == ("inhibitor", "-", -0.2, 0.01)
    assert "alone" not in edge


@pytest.mark.parametrize("sequences", [(), ("a", "b")])
def test_a_sequence_graph_is_of_one_sequence(sequences: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match=f"one sequence, got {len(sequences)}"):
        sequence_graph([boundary(name, "y") for name in sequences])


def test_a_population_graph_counts_what_a_loop_counts() -> None:
    rng = np.random.default_rng(3)
    items = [
        boundary(
            f"car {i}", f"y{i % 3}", *(event(f"E{k}", float(rng.normal()), k) for k in range(6) if rng.random() < 0.5)
        )
        for i in range(60)
    ]
    graph = population_graph(items)
    for label in ("y0", "y1", "y2"):
        explained = [item for item in items if item.label == label]
        assert graph.nodes[f"label:{label}"]["explained"] == len(explained) == 20
        for name in (f"E{k}" for k in range(6)):
            values = [e.indicator for item in explained for e in item.evidence if e.event == name]
            edge = graph.edges[f"event:{name}", f"label:{label}"]
            assert edge["strength"] == pytest.approx(statistics.fmean(values))  # type: ignore[arg-type]
            assert edge["sd"] == pytest.approx(statistics.stdev(values))  # type: ignore[arg-type]
            positive = sum(value > 0 for value in values)  # type: ignore[operator]
            assert (edge["found"], edge["of"]) == (len(values), 20)
            assert edge["verdict"] == ("cause" if 2 * positive >= len(values) else "inhibitor")
            assert edge["opposite"] == min(positive, len(values) - positive)


def test_an_effect_nobody_measured_is_left_out() -> None:
    graph = population_graph([boundary("car", "y", event("A", None, 0))])
    assert "strength" not in graph.edges["event:A", "label:y"]
    assert edges_of(graph)[0]["cause"] == "A"


def test_filters() -> None:
    items = [
        boundary(f"car {i}", "y", event("often", 0.1), *([event("rare", 0.9)] if i == 0 else [])) for i in range(3)
    ]
    items.append(boundary("car 9", "z", event("often", -0.4)))
    graph = population_graph(items)
    assert [edge["cause"] for edge in edges_of(filter_graph(graph, top=1))] == ["often"]
    assert set(filter_graph(graph, labels=["z"])) == {"event:often", "label:z"}
    assert [edge["effect"] for edge in edges_of(filter_graph(graph, sign="inhibitor"))] == ["z"]
    assert set(filter_graph(graph, labels=["z"], sign="cause")) == {"label:z"}
    assert len(graph.edges) == 3  # the graph itself stays as it is
    for options, word in (({"sign": "plus"}, "plus"), ({"top": 0}, "0"), ({"labels": ["nobody"]}, "nobody")):
        with pytest.raises(UsageError, match=word):
            filter_graph(graph, **options)  # type: ignore[arg-type]


def test_boundaries_come_back_from_a_results_folder(tmp_path: Path) -> None:
    items = [
        Boundary("a", "y", True, 0.5, (event("A", 0.5, 1, 2), refused("B")), True, False, 64, ("borderline",)),
        Boundary("b", "y", None, None, (event("A", None),)),
        Boundary("b", "z", False, 0.1, ()),
    ]
    writer = ResultsWriter(tmp_path / "r", {"fingerprint": "x"})
    writer.write_shard(0, items)
    writer.finish()
    back = read_boundaries(tmp_path / "r")
    for one, two in zip(items, back, strict=True):
        for name in (
            "sequence_id",
            "label",
            "observed",
            "probability",
            "trusted",
            "seen_in_training",
            "contexts",
            "flags",
        ):
            assert getattr(one, name) == getattr(two, name)
        assert [(e.event, e.positions, e.indicator) for e in one.causes] == [
            (e.event, e.positions, e.indicator) for e in two.causes
        ]
    assert [item.label for item in read_boundaries(tmp_path / "r", ["b"])] == ["y", "z"]
    for graph in (to_networkx(tmp_path / "r"), to_networkx(str(tmp_path / "r")), to_networkx(iter(items))):
        assert set(graph.nodes) == {"event:A", "label:y", "label:z"}
        assert dict(graph.edges["event:A", "label:y"]) == population_graph(items).edges["event:A", "label:y"]
        assert graph.edges["event:A", "label:y"]["found"] == graph.edges["event:A", "label:y"]["of"] == 2
    assert to_networkx([]).number_of_nodes() == 0
    with pytest.raises(UsageError, match="nobody"):
        read_boundaries(tmp_path / "r", ["nobody"])


def test_a_population_folder_gives_its_accepted_pairs(tmp_path: Path) -> None:
    known = {"label": "y", "effect_sd": 0.1, "tested": 10}
    rows = [
        {**known, "event": "A", "verdict": "cause", "effect": 0.4, "q_value": 0.01, "accepted_share": 0.7},
        {**known, "event": "B", "verdict": "no effect", "effect": 0.0, "q_value": 0.9, "accepted_share": 0.0},
        {**known, "event": "C", "verdict": "inhibitor", "effect": -0.4, "q_value": 0.01, "accepted_share": 0.1},
    ]
    rows = [row | {"inhibitor_share": share} for row, share in zip(rows, (0.2, 0.0, 0.8), strict=True)]
    with pytest.raises(FolderError, match=r"population\.json"):
        read_population(tmp_path)
    write_json(tmp_path / "population.json", {"kind": "population", "format_version": 1})
    with pytest.raises(FolderError, match=r"boundaries\.parquet"):
        read_population(tmp_path)
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "boundaries.parquet")
    inhibiting, edge = edges_of(read_population(tmp_path))
    assert (inhibiting["cause"], inhibiting["found"], inhibiting["of"]) == ("C", 8, 10)
    figures = {"strength": 0.4, "sd": 0.1, "q": 0.01, "found": 7, "of": 10}
    assert edge == {"cause": "A", "effect": "y", "verdict": "cause", "sign": "+", **figures}


def test_a_label_that_cannot_be_judged_is_marked_in_the_graph() -> None:
    items = [boundary("a", "y", event("A", 0.5, 0)), boundary("b", "y"), boundary("a", "z")]
    graph = population_graph([replace(items[0], trusted=False), replace(items[1], trusted=True), items[2]])
    nodes = {
        name: (graph.nodes[f"label:{name}"]["untrusted"], graph.nodes[f"label:{name}"]["explained"]) for name in "yz"
    }
    assert nodes == {"y": (1, 2), "z": (0, 1)}
