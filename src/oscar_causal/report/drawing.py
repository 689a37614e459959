"""Static figures of graphs: PNG, SVG or PDF in the colours of the paper.

Events blue, labels red, causes orange to red by strength, inhibitors violet and dashed, value ± sd on every edge.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import networkx as nx

from oscar_causal.errors import UsageError
from oscar_causal.graph.files import check_free, write_file
from oscar_causal.graph.formats import edge_text
from oscar_causal.report.lanes import Lane, Places, place

FIGURE_FORMATS = ("png", "svg", "pdf")
MOST_EDGES = 400
"""More do not fit on a figure that anybody reads."""

_INK, _BLUE, _RED, _VIOLET = "#18212c", "#1f5fae", "#b3261e", "#7a3fc0"
_WEAK, _STRONG = "#f2a33a", "#c81e1e"
_TIMED_WIDTH, _PLAIN_WIDTH = 10.0, 7.4  # inches, as all below
_LANE, _EDGE, _LABEL_WIDTH = 0.34, 0.15, 2.9
_BEND, _VALUE = 0.75, 1.25
_SIZE = 9


def draw(graph: nx.DiGraph, path: Path | str, *, form: str = "", title: str = "", force: bool = False) -> None:
    """Draw a graph of `graph.boundary_graph` into a PNG, SVG or PDF file (`form`, or by its ending).

    Every edge has a lane of its own, so texts never overlap; long names are cut with an ellipsis. More than 400 edges
    are refused: filter them first (`graph.boundary_graph.filter_graph`).

    >>> from tempfile import TemporaryDirectory
    >>> from oscar_causal import Boundary, EventEvidence, sequence_graph
    >>> evidence = (EventEvidence("disk slow", (1,), "cause", 0.7, indicator=0.7),)
    >>> with TemporaryDirectory() as place:
    ...     draw(sequence_graph([Boundary("night 1", "outage", True, 0.9, evidence)]), f"{place}/night.svg")
    ...     "disk slow" in Path(place, "night.svg").read_text(encoding="utf-8")
    True
    """
    path = Path(path)
    form = form or path.suffix.lower().removeprefix(".")
    if form not in FIGURE_FORMATS:
        raise UsageError(f"{path}: expected a figure as png, svg or pdf, got {form!r}")
    if graph.number_of_edges() > MOST_EDGES:
        raise UsageError(f"{path}: expected at most {MOST_EDGES} edges, got {graph.number_of_edges():,}: filter (top)")
    check_free(path, force=force)
    write_file(path, render(graph, form, title=title), force=force)


def render(graph: nx.DiGraph, form: str, *, title: str = "") -> bytes:
    """The bytes of the figure; the same for the same graph."""
    import matplotlib as mpl

    held = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "oscar", "svg.fonttype": "none", "font.family": "DejaVu Sans"}):
        figure = build_figure(graph, title=title)
        metadata: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form, {})
        figure.savefig(held, format=form, dpi=160, metadata=metadata)
    return held.getvalue()


def build_figure(graph: nx.DiGraph, *, title: str = "") -> Any:
    """The matplotlib figure of a graph."""
    from matplotlib.figure import Figure

    places = place(graph)
    top = 0.5 if title else 0.2
    height = places.height * _LANE + top + 0.25
    width = _TIMED_WIDTH if any(places.event_shares.values()) else _PLAIN_WIDTH
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.axis("off")
    pen = _Pen(axes, graph, places, width, top)
    if title:
        pen.write(_EDGE, 0.25, title, most=0.9 * width, ha="left", weight="bold")
    for lane in places.lanes:
        pen.edge(lane)
    for event in places.event_heights:
        pen.event(event)
    for label in places.label_heights:
        pen.label(label)
    if not places.lanes:
        pen.write(_EDGE, top + 0.15, "no event was accepted", ha="left")
    return figure


@dataclass(frozen=True)
class _Pen:
    """Draws on axes whose units are inches."""

    axes: Any
    graph: nx.DiGraph
    places: Places
    width: float
    top: float

    @property
    def label_left(self) -> float:
        return self.width - _EDGE - _LABEL_WIDTH

    def y(self, lane: float) -> float:
        return self.top + (lane + 0.5) * _LANE

    def span(self, event: str) -> tuple[float, float]:
        """Left and right end of an event's box."""
        most = self.label_left - _BEND - _VALUE - 0.5 - _EDGE
        width = text_width(fitted(self.graph.nodes[event]["name"], most - 0.3)) + 0.24
        left = _EDGE + self.places.event_shares[event] * max(0.0, most - width)
        return left, left + width

    def edge(self, lane: Lane) -> None:
        from matplotlib.patches import PathPatch
        from matplotlib.path import Path as Curve

        strength = abs(lane.edge.get("strength", 0.0))
        colour = edge_colour(lane.edge["verdict"], strength)
        begin, y = self.span(lane.event)[1], self.y(lane.lane)
        start, end = self.y(self.places.event_heights[lane.event]), self.y(self.places.label_heights[lane.label])
        bend = self.label_left - _BEND
        points = [
            (begin, start), (begin + 0.2, start), (begin + 0.1, y), (begin + 0.3, y), (bend, y),
            (bend + 0.35, y), (bend + 0.25, end), (self.label_left - 0.06, end),
        ]  # fmt: skip
        codes = [Curve.MOVETO, *[Curve.CURVE4] * 3, Curve.LINETO, *[Curve.CURVE4] * 3]
        style = "-" if lane.edge["verdict"] == "cause" else (0, (4, 2.5))
        look = {"edgecolor": colour, "linewidth": 1.2 + 2.2 * min(1.0, strength), "linestyle": style}
        self.axes.add_patch(PathPatch(Curve(points, codes), facecolor="none", capstyle="butt", zorder=1, **look))
        tip = [(self.label_left, end), (self.label_left - 0.1, end - 0.05), (self.label_left - 0.1, end + 0.05)]
        self.axes.fill(*zip(*tip, strict=True), color=colour, zorder=2, linewidth=0)
        ground = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
        self.write(bend - _VALUE / 2, y, edge_text(lane.edge), size=8, bbox=ground)

    def event(self, node: str) -> None:
        left, right = self.span(node)
        self.box(left, right, self.y(self.places.event_heights[node]), self.graph.nodes[node]["name"], _BLUE, 0.12)

    def label(self, node: str) -> None:
        y = self.y(self.places.label_heights[node])
        self.box(self.label_left, self.label_left + _LABEL_WIDTH, y, self.graph.nodes[node]["name"], _RED, 0.04)

    def box(self, left: float, right: float, y: float, name: str, colour: str, rounding: float) -> None:
        from matplotlib.patches import FancyBboxPatch

        style = f"round,pad=0,rounding_size={rounding}"
        box = FancyBboxPatch((left, y - 0.125), right - left, 0.25, boxstyle=style, linewidth=1.1, zorder=3)
        box.set(facecolor="white", edgecolor=colour)
        self.axes.add_patch(box)
        self.write((left + right) / 2, y, name, colour=colour, most=right - left - 0.16)

    def write(
        self, x: float, y: float, text: str, *, most: float = 5.0, size: float = _SIZE, colour: str = _INK, **look: Any
    ) -> None:
        """One line of text centred at a place, or as `look` says."""
        look = {"ha": "center", "va": "center_baseline", "zorder": 4, "parse_math": False, **look}
        self.axes.text(x, y, fitted(text, most, size), fontsize=size, color=colour, **look)


def edge_colour(verdict: str, strength: float) -> Any:
    """Orange to red by strength for causes, violet for inhibitors."""
    from matplotlib.colors import LinearSegmentedColormap

    if verdict == "inhibitor":
        return _VIOLET
    return LinearSegmentedColormap.from_list("cause", [_WEAK, _STRONG])(min(1.0, abs(strength)))


def fitted(text: str, most: float, size: float = _SIZE) -> str:
    """The text as it can be drawn, cut with an ellipsis to at most this many inches."""
    shown = drawable(text)
    if text_width(shown, size) <= most:
        return shown
    low, high = 0, len(shown)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if text_width(shown[:middle] + "…", size) <= most else (low, middle - 1)
    return shown[:low] + "…"


@lru_cache(4096)
def text_width(text: str, size: float = _SIZE) -> float:
    """Width of a text in inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(family="DejaVu Sans", size=size)
    width: float = text_to_path.get_text_width_height_descent(drawable(text), font, False)[0]
    return width / 72


def drawable(text: str) -> str:
    """The text in one line; letters the font does not have become U+FFFD."""
    letters = _letters()
    return "".join(c if c.isprintable() and ord(c) in letters else "\ufffd" for c in text)


@cache
def _letters() -> frozenset[int]:
    """What the font can draw."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    return frozenset(get_font(findfont(FontProperties(family="DejaVu Sans"))).get_charmap())
