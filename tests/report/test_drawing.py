"""Figures: every text stands free of every other, signs show by colour and line, names cannot do harm."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.patches import PathPatch

from oscar_causal.discovery.boundary import Boundary, EventEvidence
from oscar_causal.errors import UsageError
from oscar_causal.graph.boundary_graph import population_graph, sequence_graph
from oscar_causal.report.drawing import build_figure, draw, edge_colour, fitted, render, text_width
from oscar_causal.report.lanes import place

LONG = "a label whose name goes on and on until nobody can draw it in one line any more"


def random_graph(seed: int, events: int, labels: int, *, timed: bool) -> nx.DiGraph:
    rng = np.random.default_rng(seed)
    names = [LONG if k == 0 else f"label {k}" for k in range(labels)]
    found: dict[str, list[EventEvidence]] = {name: [] for name in names}
    for k in range(events):
        for name in rng.choice(names, int(rng.integers(1, 3)), replace=False):
            value = float(rng.uniform(-1, 1))
            verdict = "cause" if value > 0 else "inhibitor"
            where = (int(rng.integers(0, 150)),)
            found[str(name)].append(
                EventEvidence(f"E{k:04}" * (1 + k % 3), where, verdict, value, indicator=value, indicator_sd=0.1)
            )
    items = [Boundary("car", name, True, 0.5, tuple(evidence)) for name, evidence in found.items()]
    return sequence_graph(items) if timed else population_graph(items)


def text_boxes(figure: Any) -> list[Any]:
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return [text.get_window_extent(canvas.get_renderer()) for text in figure.axes[0].texts]


@pytest.mark.parametrize("timed", [True, False])
@pytest.mark.parametrize(("events", "labels"), [(1, 1), (26, 4), (20, 10), (60, 20)])
def test_no_text_stands_on_another_or_leaves_the_figure(events: int, labels: int, timed: bool) -> None:
    figure = build_figure(random_graph(events, events, labels, timed=timed), title="A title")
    boxes = text_boxes(figure)
    assert len(boxes) > events + labels
    for one, two in combinations(boxes, 2):
        assert not one.overlaps(two)
    width, height = figure.get_size_inches() * figure.dpi
    assert all(box.x0 >= 0 and box.x1 <= width and box.y0 >= 0 and box.y1 <= height for box in boxes)


def test_time_runs_to_the_right() -> None:
    graph = random_graph(1, 20, 3, timed=True)
    places = place(graph)
    by_time = sorted(places.event_shares, key=lambda node: graph.nodes[node]["positions"][0])
    assert [places.event_shares[node] for node in by_time] == sorted(places.event_shares.values())
    assert sorted(places.event_heights, key=places.event_heights.__getitem__) == list(places.event_heights)
    assert len({lane.lane for lane in places.lanes}) == graph.number_of_edges()


def test_signs_show_by_colour_and_by_line() -> None:
    graph = random_graph(2, 12, 3, timed=True)
    lines = [patch for patch in build_figure(graph).axes[0].patches if type(patch) is PathPatch]
    verdicts = [lane.edge["verdict"] for lane in place(graph).lanes]
    assert len(lines) == len(verdicts)
    for line, verdict in zip(lines, verdicts, strict=True):
        assert (line.get_linestyle() == "-") == (verdict == "cause")
    reds = [edge_colour("cause", strength) for strength in (0.0, 0.3, 0.6, 1.0)]
    assert [colour[1] for colour in reds] == sorted((colour[1] for colour in reds), reverse=True)  # ever less orange
    assert edge_colour("inhibitor", 0.9) == edge_colour("inhibitor", 0.1)


@pytest.mark.parametrize(("form", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_every_format_and_the_same_bytes_again(tmp_path: Path, form: str, magic: bytes) -> None:
    graph = random_graph(3, 5, 2, timed=True)
    draw(graph, tmp_path / f"figure.{form}", title="same")
    first = (tmp_path / f"figure.{form}").read_bytes()
    assert first.startswith(magic)
    assert render(graph, form, title="same") == first
    with pytest.raises(UsageError, match="exists already"):
        draw(graph, tmp_path / f"figure.{form}")


def test_nasty_names_are_drawn_as_text(nasty: tuple[str, ...], tmp_path: Path) -> None:
    names = (*nasty, "$x^2$", r"\frac", "漢字", "")
    evidence = tuple(EventEvidence(name, (k,), "cause", 0.5, indicator=0.5) for k, name in enumerate(names))
    graph = sequence_graph([Boundary("car", name, True, 0.5, evidence[:2]) for name in names[:3]])
    graph = nx.compose(graph, sequence_graph([Boundary("car", "y", True, 0.5, evidence)]))
    for form in ("png", "svg", "pdf"):
        draw(graph, tmp_path / f"nasty.{form}", title="$\n</svg>")
    assert "<script" not in (tmp_path / "nasty.svg").read_text(encoding="utf-8")


def test_too_many_edges_and_unknown_endings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="at most 400 edges"):
        draw(random_graph(1, 500, 3, timed=False), tmp_path / "much.png")
    with pytest.raises(UsageError, match="gif"):
        draw(random_graph(1, 2, 1, timed=False), tmp_path / "a.gif")
    assert not list(tmp_path.iterdir())


def test_an_empty_graph_says_so() -> None:
    figure = build_figure(sequence_graph([Boundary("car", "y", True, 0.5, ())]))
    assert "no event was accepted" in {text.get_text() for text in figure.axes[0].texts}


@pytest.mark.parametrize("most", [0.3, 1.0, 2.0])
def test_names_are_cut_to_fit(most: float) -> None:
    cut = fitted(LONG, most)
    assert text_width(cut) <= most
    assert cut.endswith("…")
    assert LONG.startswith(cut[:-1])
    assert text_width(LONG[: len(cut)] + "…") > most  # not a letter less than needed
