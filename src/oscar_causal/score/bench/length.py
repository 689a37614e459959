"""The boundary-length figure: scores by the number of events in the true boundary, with the number of pairs behind."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oscar_causal.score.bench.estimators import intervention_settings, prefix_settings
from oscar_causal.score.bench.pages import page, table
from oscar_causal.score.bench.paper import paper_numbers
from oscar_causal.score.bench.plots import curves, save_plot
from oscar_causal.score.bench.rows import Fused, OneShot, Row
from oscar_causal.score.bench.running import Bench, Rows
from oscar_causal.score.bench.settings import BenchSettings

FIGURES = ("precision", "recall", "f1")


def rows(settings: BenchSettings) -> Mapping[str, Row]:
    """The one-shot estimators, as in Table 1."""
    return {
        "prefix": OneShot(prefix_settings()),
        "intervention": OneShot(intervention_settings()),
        "fused": Fused(intervention_settings()),
    }


def imbalance_line(pairs: int) -> float:
    """The paper's line (700 of 45,969 sequences) for another number of pairs.

    >>> round(imbalance_line(45969))
    700
    """
    paper = paper_numbers()["length"]
    return float(paper["imbalance_sequences"]) * pairs / float(paper["sequences"])


def to_page(measured: Rows) -> str:
    """A line per boundary size for each estimator."""
    sections = []
    for name, figures in measured.items():
        sections += [f"## {name}", "", *table(_head(figures), _lines(figures)), ""]
    some = next(iter(measured.values()))
    body = [
        "Averages over pairs, in percent. *Size*: events of the label's rule. *Whole rule*: against all of them (the "
        "paper's truth). *Causes present*: against the events that brought the label about in this sequence. The "
        f"paper sees scores follow the number of sequences below 700 of 45,969; for {some['pairs']:,} pairs that is "
        f"{imbalance_line(some['pairs']):.0f}.",
        "",
        *sections,
    ]
    return page("length", "Scores by boundary length", body, measured, ())


def _head(figures: Mapping[str, Any]) -> list[str]:
    truths = [title for key, title in _TITLES.items() if key in figures["by_size"]]
    return ["size", "pairs", *(f"{title}: {figure}" for title in truths for figure in ("precision", "recall", "F1"))]


_TITLES = {"rule_all": "whole rule", "why": "causes present"}


def _lines(figures: Mapping[str, Any]) -> list[list[str]]:
    groups = figures["by_size"]
    sizes = sorted(groups["rule_all"], key=int)
    lines = []
    for size in sizes:
        cells = [size, f"{groups['rule_all'][size]['pairs']:,}"]
        for truth in (key for key in _TITLES if key in groups):
            part = groups[truth].get(size)
            cells += [f"{100 * part['sample'][key]:.1f}" if part else "–" for key in FIGURES]
        lines.append(cells)
    return lines


def plot(measured: Rows, path: Path) -> None:
    """One panel per estimator: scores against the whole rule, pairs as grey bars, the imbalance line in red."""

    def draw(axes: Any) -> None:
        for axis, (name, figures) in zip([axes] if len(measured) == 1 else axes, measured.items(), strict=True):
            groups = figures["by_size"]["rule_all"]
            sizes = sorted(groups, key=int)
            behind = axis.twinx()
            behind.bar([int(size) for size in sizes], [groups[size]["pairs"] for size in sizes], color="0.85")
            behind.axhline(imbalance_line(figures["pairs"]), color="red", linestyle="--", linewidth=1)
            behind.set_yscale("log")
            behind.set_ylabel("pairs (grey); imbalance line of the paper, scaled (red)")
            axis.set_zorder(behind.get_zorder() + 1)
            axis.patch.set_visible(False)
            lines = {key: [(int(s), 100 * groups[s]["sample"][key], 0.0) for s in sizes] for key in FIGURES}
            curves(axis, lines, xlabel="events of the label's rule", ylabel="%")
            axis.xaxis.get_major_locator().set_params(integer=True)
            axis.set_ylim(0, 102)
            axis.set_title(name)

    save_plot(path, draw, panels=len(measured))


BENCH = Bench("length", rows, to_page, plot)
