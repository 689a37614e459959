"""Where a figure puts its nodes: events left in order of time, labels right, every edge in a lane of its own.

Edges run along their lanes and bend only in front of their label, so no value can stand on another, whatever the
number of nodes. Lanes count from the top; the drawing turns them into inches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import networkx as nx

LABEL_GAP = 1.2
"""Lanes between two labels at least."""


@dataclass(frozen=True)
class Lane:
    """One edge and the lane it runs along."""

    event: str
    label: str
    lane: int
    edge: dict[str, Any]


@dataclass(frozen=True)
class Places:
    """The layout of a graph, in lanes from the top and shares of the free width."""

    lanes: tuple[Lane, ...]
    event_heights: dict[str, float]
    event_shares: dict[str, float]
    """0 = left, 1 = as far right as there is room: when the event stood in the sequence."""
    label_heights: dict[str, float]
    height: float


def place(graph: nx.DiGraph) -> Places:
    """Lay out a graph of `graph.boundary_graph`. Nodes are named as in the graph."""
    events = _events_in_order(graph)
    rank = {event: index for index, event in enumerate(events)}
    labels = sorted(_labels(graph), key=lambda label: (_mean([rank[e] for e in graph.predecessors(label)]), label))
    order = {label: index for index, label in enumerate(labels)}
    lanes: list[Lane] = []
    for event in events:
        for label in sorted(graph.successors(event), key=order.__getitem__):
            lanes.append(Lane(event, label, len(lanes), graph.edges[event, label]))
    event_heights = {event: _mean([item.lane for item in lanes if item.event == event]) for event in events}
    wished = {label: _mean([item.lane for item in lanes if item.label == label]) for label in labels}
    label_heights = _spread(wished)
    height = max([float(len(lanes)), *(value + 1 for value in label_heights.values())], default=1.0)
    return Places(tuple(lanes), event_heights, _shares(graph, events), label_heights, height)


def _labels(graph: nx.DiGraph) -> list[str]:
    return [node for node, kind in graph.nodes(data="kind") if kind == "label"]


def _events_in_order(graph: nx.DiGraph) -> list[str]:
    """By time where positions are known, else events of one label together, strongest first."""
    events = [node for node, kind in graph.nodes(data="kind") if kind == "event"]
    if all(graph.nodes[event].get("positions") for event in events):
        return sorted(events, key=lambda event: (graph.nodes[event]["positions"][0], event))
    edges = sorted(graph.edges(data=True), key=lambda edge: (edge[1], -edge[2].get("strength", 0.0), edge[0]))
    return list(dict.fromkeys(event for event, _, _ in edges))


def _shares(graph: nx.DiGraph, events: list[str]) -> dict[str, float]:
    first = [(graph.nodes[event].get("positions") or (0,))[0] for event in events]
    low, span = min(first, default=0), max(1, max(first, default=0) - min(first, default=0))
    return {event: (position - low) / span for event, position in zip(events, first, strict=True)}


def _spread(wished: dict[str, float]) -> dict[str, float]:
    """Push labels apart downwards, keeping their order."""
    placed: dict[str, float] = {}
    free = 0.0
    for label, height in wished.items():
        placed[label] = max(height, free)
        free = placed[label] + LABEL_GAP
    return placed


def _mean(values: list[int]) -> float:
    return sum(values) / len(values) if values else 0.0
