"""The ladder as pages and pictures: rows down, grounds across; outside sets one by one, with their own figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from oscar_causal.score.bench.ladder.rows import METHODS
from oscar_causal.score.bench.pages import table
from oscar_causal.score.bench.plots import save_plot

Figures = Mapping[str, Any]
Rows = Mapping[str, Figures]
"""ground/seed/row -> figures."""

ABOUT = """\
# The ladder

Each world draws the formula of every label from its seed ([worlds](../worlds.md)); truth is by definition, from the
world's own probabilities. F1 of mean precision and mean recall over pairs of sequence and label with a cause, in
percent; ± is the standard deviation over seeds, where there are several. A pair for which a method names nothing has
precision 0 and recall 0. Rows *(tuned)* chose their settings on 300 sequences with reasons; all others have defaults.
*True P*: the world's own probabilities stand in for the trained label model, which tells a deaf model from a weak
estimator. Slopes are then exact averages over 128 removals, charged as the gradient of a network: an upper bound.
*True P: prefix* asks the formula as if the record ended at each event; the future is not integrated out. Attribution
methods publish no cut: by default they name what has half of the strongest score, which is our choice. *Input x
gradient* is the gradient times (event - mean of its replacements). *Fused without network*: its label model knows base
rates alone.
"""
OUTSIDE = """\
# Outside sets

Data and truth come from elsewhere. Per set: precision and recall of every pair of sequence and label with a cause,
F1 of their means with its 95 % interval over resampled sequences, all in percent. Rows *(tuned)* chose their settings
on a quarter of the training subjects; all others have defaults. Several seeds: means; ± is the standard deviation.
"""


def ladder_page(rows: Rows) -> str:
    """F1 of every row on every world, then differences to presence, false alarms, passes."""
    parts = [ABOUT]
    for title, cell in (
        ("F1", lambda some: _spread([row["f1"] for row in some])),
        ("F1 less that of the perfect boundary by presence, with its 95 % interval (first seed)", _difference),
        ("False alarms: pairs without a cause for which one is named, in percent", _alarms),
        ("Forward passes of the label model for a sequence", _passes),
        ("Seconds for a ground, on one core", lambda some: f"{np.mean([row['seconds'] for row in some]):.0f}"),
    ):
        parts += [f"## {title}\n", *_matrix(rows, cell), ""]
    return "\n".join([*parts, *_made(rows), ""])


def outside_page(rows: Rows, grounds: Mapping[str, Figures]) -> str:
    """A table for each set, published figures below."""
    parts = [OUTSIDE]
    for kind, by_row in _by_kind(rows).items():
        facts = grounds[next(name for name in grounds if name.rsplit("/", 1)[0] == kind)]
        parts += [f"## {kind}\n", facts["about"], "", *_set_table(by_row), ""]
        parts += [f"- {line}" for line in facts["remarks"]] + [""] * bool(facts["remarks"])
        if facts["published"]:
            told = [
                [method, figure, f"{100 * value:.1f}", remark] for method, figure, value, remark in facts["published"]
            ]
            parts += ["As published:\n", *table(["method", "figure", "value", "remark"], told), ""]
    return "\n".join([*parts, *_made(rows), ""])


def _set_table(by_row: Mapping[str, Sequence[Figures]]) -> list[str]:
    first = next(iter(by_row.values()))[0]
    own = list(first["own"])
    head = ["method", "precision", "recall", "F1", "95 %", "micro F1", *own, "false alarms", "seconds"]
    lines = []
    for name, some in by_row.items():
        low, high = (100 * some[0][key] for key in ("f1_low", "f1_high"))
        told = [_spread([row[key] for row in some]) for key in ("precision", "recall", "f1")]
        told += [f"{low:.1f} to {high:.1f}", _spread([row["micro_f1"] for row in some])]
        told += [_spread([row["own"][key] for row in some]) for key in own]
        lines.append([name, *told, _alarms(some), f"{np.mean([row['seconds'] for row in some]):.1f}"])
    pairs = f"{first['pairs']:,} pairs with a cause, {first['empty_pairs']:,} without."
    return [pairs, "", *table(head, lines)]


def _by_kind(rows: Rows) -> dict[str, dict[str, list[Figures]]]:
    """Kind of ground -> row -> its figures, seed by seed; rows in the order of the ladder."""
    found: dict[str, dict[str, list[Figures]]] = {}
    for key in sorted(rows, key=lambda key: _rank(key.split("/", 2)[2])):
        kind, _, row = key.split("/", 2)
        found.setdefault(kind, {}).setdefault(row, []).append(rows[key])
    return found


def _rank(row: str) -> int:
    return list(METHODS).index(row) if row in METHODS else len(METHODS)


def _matrix(rows: Rows, cell: Callable[[Sequence[Figures]], str]) -> list[str]:
    by_kind = _by_kind(rows)
    names = sorted({row for some in by_kind.values() for row in some}, key=_rank)
    kinds = sorted(by_kind)
    lines = [[name, *(cell(by_kind[kind][name]) if name in by_kind[kind] else "" for kind in kinds)] for name in names]
    return table(["method", *kinds], [line for line in lines if any(line[1:])])


def _spread(values: Sequence[float | None]) -> str:
    """Mean in percent, ± standard deviation where there are several."""
    known = [100 * value for value in values if value is not None]
    if not known:
        return "–"
    return f"{np.mean(known):.1f}" + (f" ± {np.std(known, ddof=1):.1f}" if len(known) > 1 else "")


def _difference(some: Sequence[Figures]) -> str:
    told = some[0]["minus_presence"]
    return f"{100 * told['difference']:+.1f} ({100 * told['low']:+.1f} to {100 * told['high']:+.1f})"


def _alarms(some: Sequence[Figures]) -> str:
    known = [row["false_alarms"] for row in some if row["false_alarms"] is not None]
    return f"{100 * np.mean(known):.0f}" if known else ""


def _passes(some: Sequence[Figures]) -> str:
    return "" if some[0]["passes"] is None else f"{np.mean([row['passes'] for row in some]):.0f}"


def _made(rows: Rows) -> list[str]:
    """Which commits and machines made the rows."""
    groups: dict[tuple[str, str], set[str]] = {}
    for key, row in rows.items():
        groups.setdefault((row["commit"] or "not recorded", row["machine"]), set()).add(key.split("/", 2)[2])
    return [f"- commit {commit}, {machine}: {len(some)} rows" for (commit, machine), some in sorted(groups.items())]


SHOWN = {
    "perfect boundary by presence": ("|", "black"),
    "L1 logistic (tuned)": ("s", "tab:gray"),
    "iamb with order (tuned)": ("v", "tab:brown"),
    "prefix": ("x", "tab:red"),
    "intervention": ("o", "tab:blue"),
    "true P: intervention": ("*", "tab:green"),
}
"""Rows of the picture: marker and colour."""


def draw(rows: Rows, path: Path) -> None:
    """F1 of some rows, a line for each ground; grounds in the order of what presence can reach."""
    by_kind = _by_kind(rows)
    mean = {kind: {row: 100 * float(np.mean([one["f1"] for one in some])) for row, some in by_row.items()}
            for kind, by_row in by_kind.items()}  # fmt: skip
    kinds = sorted(mean, key=lambda kind: mean[kind].get("perfect boundary by presence", 0.0))

    def fill(axis: Any) -> None:
        for row, (marker, colour) in SHOWN.items():
            points = [(mean[kind][row], y) for y, kind in enumerate(kinds) if row in mean[kind]]
            if points:
                axis.scatter(*zip(*points, strict=True), marker=marker, color=colour, label=row, s=42, zorder=3)
        axis.set_yticks(range(len(kinds)), kinds, fontsize=8)
        axis.set_xlabel("F1 of causes per sequence and label, %")
        axis.set_xlim(0, 101)
        axis.grid(alpha=0.3)
        if axis.get_legend_handles_labels()[0]:
            axis.figure.legend(loc="outside lower center", ncols=3, fontsize=8)

    save_plot(path, fill)
