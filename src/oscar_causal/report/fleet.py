"""The fleet pages: edges with their tests, how labels hang together, and what changed between windows of time."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

from oscar_causal.data.folders import finite_or_none, read_json
from oscar_causal.discovery.significance import benjamini_hochberg
from oscar_causal.graph.boundary_graph import edges_of
from oscar_causal.graph.drift import DRIFT_SCHEMA
from oscar_causal.graph.population_folder import read_info, read_rows
from oscar_causal.graph.rule_drift import RULE_DRIFT_SCHEMA
from oscar_causal.report.entries import Entry

INTERPLAY = ("together", "dependence_before", "p_before", "dependence_after", "p_after", "fall_a", "fall_b")
KEYS = ("label", "from", "to", "changed")
"""Columns no table of changes can do without."""
Rows = list[dict[str, Any]]


def fleet_rows(graph: nx.DiGraph) -> Rows:
    """Edges of a population graph as the page wants them, found most often first."""
    return [
        {
            "event": edge["cause"],
            "label": edge["effect"],
            "inhibits": int(edge["verdict"] == "inhibitor"),
            "found": edge.get("found", 0),
            "of": edge.get("of", 0),
            "mean": edge.get("strength"),
            "sd": edge.get("sd"),
            "low": edge.get("ci_low"),
            "high": edge.get("ci_high"),
            "q": edge.get("q"),
            "world": edge.get("world_p"),
        }
        for edge in edges_of(graph)
    ]


def held_up(p_values: Iterable[float | None], alpha: float) -> dict[str, int] | None:
    """How many pairs were tested on observed labels, and how many hold up, false discoveries controlled over them.

    >>> held_up([0.001, None, 0.03, 0.2], alpha=0.05)
    {'tested': 3, 'held_up': 2}
    """
    known = np.array([p for p in p_values if p is not None])
    if not len(known):
        return None
    return {"tested": len(known), "held_up": int((benjamini_hochberg(known) <= alpha).sum())}


def population_pages(population: Path | str, graph: nx.DiGraph) -> dict[str, Any]:
    """What only a population folder knows, beside its graph; None where it was not asked for."""
    folder = Path(population)
    settings = _settings(folder)
    tested = [edge.get("world_p") for _, _, edge in graph.edges(data=True)]
    return {
        "settings": settings,
        "world": None if settings["alpha"] is None else held_up(tested, settings["alpha"]),
        "expert": _expert_file(folder / "expert.json"),
        "interplay": interplay_rows(folder),
        "changed_effects": _changes(folder, "drift", DRIFT_SCHEMA, ("event",)),
        "changed_rules": _changes(folder, "rule_drift", RULE_DRIFT_SCHEMA, ("rule",)),
    }


def _settings(folder: Path) -> dict[str, float | None]:
    """False discovery rate, smallest effect and days of a window."""
    settings = Entry.of(read_info(folder), str(folder / "population.json")).entry("settings")
    bounds = None if settings is None else settings.entry("boundaries")
    return {
        "alpha": None if bounds is None else bounds.number("alpha"),
        "delta": None if bounds is None else bounds.number("delta"),
        "window_days": None if settings is None else settings.number("window_days"),
    }


def _expert_file(path: Path) -> str | None:
    return Entry.of(read_json(path), str(path)).text("file") if path.exists() else None


def interplay_rows(folder: Path) -> Rows | None:
    """Pairs of labels as `interplay.json` has them; None = nobody looked."""
    path = folder / "interplay.json"
    if not path.exists():
        return None
    return [
        {
            "a": item.named("label_a"),
            "b": item.named("label_b"),
            "verdict": item.named("verdict"),
            "shared": item.texts("shared_causes"),
            **{name: item.number(name) for name in INTERPLAY},
        }
        for item in Entry.of(read_json(path), str(path)).entries("pairs")
    ]


def _changes(folder: Path, name: str, schema: Any, subject: tuple[str, ...]) -> dict[str, Any] | None:
    """Of a table of windows: how many subjects were compared, and all windows of those that changed in some."""
    if not (folder / f"{name}.parquet").exists():
        return None
    groups: dict[tuple[str, ...], Rows] = {}
    for row in read_rows(folder, f"{name}.parquet", schema, needed=(*KEYS, *subject)):
        groups.setdefault(tuple(row[key] for key in ("label", *subject)), []).append(row)
    changed = [_subject(rows, subject) for rows in groups.values() if any(row["changed"] for row in rows)]
    return {"compared": len(groups), "changed": changed}


def _subject(rows: Rows, subject: tuple[str, ...]) -> dict[str, Any]:
    ordered = sorted(rows, key=lambda row: row["from"])
    names = ("label", *subject)
    windows = [{key: _plain(value) for key, value in row.items() if key not in names} for row in ordered]
    return {**{name: rows[0][name] for name in names}, "windows": windows}


def _plain(value: Any) -> Any:
    """For JSON: days as text, numbers that exist."""
    if isinstance(value, datetime):
        return value.date().isoformat()
    if isinstance(value, float):
        known = finite_or_none(value)
        return None if known is None else round(known, 4)
    return value
