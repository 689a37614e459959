"""The JSON of a report: columns and a table of names, so that a thousand sequences stay small.

Its shape is `PageData` in `web/src/page.ts`; the page decodes one sequence at a time.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from oscar_causal.discovery.boundary import Boundary, EventEvidence
from oscar_causal.discovery.results import read_table
from oscar_causal.errors import UsageError
from oscar_causal.graph.boundary_graph import population_graph, read_boundaries, read_population
from oscar_causal.report.fleet import fleet_rows, population_pages
from oscar_causal.report.forecasts import Forecast, label_forecasts
from oscar_causal.report.rule_cards import rule_cards
from oscar_causal.report.sources import Sources
from oscar_causal.report.tables import label_rows, provenance

FORMAT = 1
VERDICTS = ("cause", "inhibitor", "no effect", "not resolvable")
FLEET = dict.fromkeys(("event", "label", "inhibits", "found", "of", "mean", "sd", "low", "high"), 4)
FLEET |= dict.fromkeys(("q", "world"), 5)
"""Columns of the fleet graph -> digits that are kept."""
Pair = tuple[str, str]
Truth = Mapping[Pair, frozenset[str]]
OnProgress = Callable[[int, int], None]


@dataclass(frozen=True)
class ReportConfig:
    """What goes into a report."""

    title: str = "OSCAR report"
    limit: int = 1000
    """Most sequences with a page of their own; labels and fleet graph always count all."""
    sequences: tuple[str, ...] = ()
    """Show these; none = the first ones of the results."""

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise UsageError(f"limit: expected at least 1, got {self.limit}")


@dataclass
class _Names:
    """Every text once; elsewhere its number."""

    table: dict[str, int] = field(default_factory=dict)

    def __call__(self, name: str) -> int:
        return self.table.setdefault(name, len(self.table))


def page_data(
    sources: Sources,
    config: ReportConfig | None = None,
    *,
    scores: Sequence[Mapping[str, Any]] = (),
    truth: Truth | None = None,
    population: Path | str | None = None,
    on_progress: OnProgress | None = None,
) -> dict[str, Any]:
    """All a report shows.

    Where the dataset knows the reasons of its labels, `scores` are rows of the score table (truth, meaning,
    precision, recall, f1, macro_f1) and `truth` the reasons of each pair.
    """
    config = config or ReportConfig()
    every = read_boundaries(sources.results)
    shown = _chosen(every, config)
    explained = len({item.sequence_id for item in every})
    pairs = [item for items in shown.values() for item in items]
    names = _Names()
    forecasts = _forecasts(sources, shown, on_progress)
    graph = population_graph(every) if population is None else read_population(population)
    content = {
        "format": FORMAT,
        "title": config.title,
        "estimator": str(sources.run.get("estimator")),
        "estimand": str(sources.run.get("estimand")),
        "explained": explained,
        "sequences": _sequences(sources, list(shown), names),
        "pairs": _pairs(pairs, list(shown), forecasts, _tested(sources, list(shown), names), names),
        "causes": _causes(pairs, truth, names),
        "labels": [_rounded(row) for row in label_rows(every, sources)],
        "fleet": {**_columns(fleet_rows(graph), names), "pooled": population is not None},
        "rules": [] if population is None else rule_cards(population, sources.rules),
        "population": None if population is None else population_pages(population, graph),
        "scores": [_rounded(row) for row in scores],
        "provenance": provenance(sources, shown=len(shown), explained=explained),
        "missing": list(sources.missing),
    }
    told = {name: sources.names[name] for name in names.table if name in sources.names}
    return {**content, "names": list(names.table), "told": told}


def _chosen(boundaries: list[Boundary], config: ReportConfig) -> dict[str, list[Boundary]]:
    """Boundaries by sequence, of the sequences that are shown, in their order."""
    groups: dict[str, list[Boundary]] = defaultdict(list)
    for item in boundaries:
        groups[item.sequence_id].append(item)
    for name in config.sequences:
        if name not in groups:
            raise UsageError(f"sequence: expected one of the {len(groups):,} explained ones, got {name!r}")
    wanted = config.sequences or tuple(groups)[: config.limit]
    return {name: groups[name] for name in dict.fromkeys(wanted)}


def _forecasts(
    sources: Sources, shown: Mapping[str, list[Boundary]], on_progress: OnProgress | None
) -> dict[Pair, Forecast]:
    if sources.dataset is None or sources.model is None or not shown:
        return {}
    part = sources.dataset.take(sources.dataset.index_of(shown))
    labels = [[item.label for item in items] for items in shown.values()]
    found = label_forecasts(sources.model, part, labels, on_progress=on_progress)
    return {(name, label): curve for name, curves in zip(shown, found, strict=True) for label, curve in curves.items()}


def _sequences(sources: Sources, shown: list[str], names: _Names) -> dict[str, Any]:
    if sources.dataset is None or not shown:
        empty = [None] * len(shown)
        return {
            "id": shown,
            "subject": empty,
            "start": empty,
            "facts": [[] for _ in shown],
            "events": None,
            "times": None,
        }
    data = sources.dataset.take(sources.dataset.index_of(shown))
    table = {int(event): names(data.event_names[event]) for event in np.unique(data.events.ids)}
    bounds = list(zip(data.events.offsets[:-1], data.events.offsets[1:], strict=True))
    return {
        "id": shown,
        "subject": data.subject_ids.to_pylist(),
        "start": [None if start is None else start.isoformat() for start in data.start.to_pylist()],
        "facts": [[[name, str(value)] for name, value in facts.items()] for facts in data.static()],
        "events": [[table[event] for event in data.events[index].tolist()] for index in range(len(data))],
        "times": [[_short(time) for time in data.times[begin:end].tolist()] for begin, end in bounds],
    }


def _pairs(
    pairs: Sequence[Boundary],
    shown: list[str],
    forecasts: Mapping[Pair, Forecast],
    tested: Mapping[Pair, dict[str, list[Any]]],
    names: _Names,
) -> dict[str, list[Any]]:
    row = {name: index for index, name in enumerate(shown)}
    curves = [forecasts.get((item.sequence_id, item.label)) for item in pairs]
    nothing: dict[str, list[Any]] = {"event": [], "verdict": [], "effect": [], "se": [], "cmi": []}
    return {
        "sequence": [row[item.sequence_id] for item in pairs],
        "label": [names(item.label) for item in pairs],
        "observed": [_bit(item.observed) for item in pairs],
        "probability": [_number(item.probability) for item in pairs],
        "trusted": [_bit(item.trusted) for item in pairs],
        "seen": [_bit(item.seen_in_training) for item in pairs],
        "contexts": [item.contexts for item in pairs],
        "flags": [[names(flag) for flag in item.flags] for item in pairs],
        "forecast_from": [None if curve is None else curve.begin for curve in curves],
        "forecast": [None if curve is None else [_number(value, 3) for value in curve.values] for curve in curves],
        "tested": [tested.get((item.sequence_id, item.label), nothing) for item in pairs],
    }


def _causes(pairs: Sequence[Boundary], truth: Truth | None, names: _Names) -> dict[str, list[Any]]:
    rows = [(index, item, event) for index, item in enumerate(pairs) for event in item.causes]
    events: list[EventEvidence] = [event for _, _, event in rows]
    known = [None if truth is None else _known(truth, item, event) for _, item, event in rows]
    return {
        "pair": [index for index, _, _ in rows],
        "event": [names(event.event) for event in events],
        "inhibits": [int(event.verdict == "inhibitor") for event in events],
        "positions": [list(event.positions) for event in events],
        "indicator": [_number(event.indicator) for event in events],
        "sd": [_number(event.indicator_sd) for event in events],
        "low": [_number(event.ci_low) for event in events],
        "high": [_number(event.ci_high) for event in events],
        "cmi": [_number(event.cmi_nats) for event in events],
        "q": [_number(event.q_value, 5) for event in events],
        "alone": [_number(event.alone) for event in events],
        "borderline": [int(event.borderline) for event in events],
        "source": [None if event.source == "evidence" else names(event.source) for event in events],
        "agreement": [_number(event.agreement, 3) for event in events],
        "accepted_by": [None if event.accepted_by is None else names(event.accepted_by) for event in events],
        "share": [_number(event.share, 3) for event in events],
        "known": known,
    }


def _known(truth: Truth, item: Boundary, event: EventEvidence) -> int | None:
    """Is a cause among the known reasons? Inhibitors and pairs without known reasons cannot be told."""
    reasons = truth.get((item.sequence_id, item.label))
    return None if not reasons or event.verdict != "cause" else int(event.event in reasons)


def _tested(sources: Sources, shown: list[str], names: _Names) -> dict[Pair, dict[str, list[Any]]]:
    table = read_table(sources.results, "evidence")
    table = table.filter(pc.is_in(table["sequence_id"], value_set=pa.array(shown, pa.string())))
    gains = sources.run.get("estimator") == "prefix"  # whose score is the information gain
    found: dict[Pair, dict[str, list[Any]]] = {}
    wanted = ["sequence_id", "label", "event", "verdict", "effect", "se", "score"]
    for sequence_id, label, event, verdict, effect, se, score in zip(
        *(table[name].to_pylist() for name in wanted), strict=True
    ):
        lists = found.setdefault((sequence_id, label), {"event": [], "verdict": [], "effect": [], "se": [], "cmi": []})
        lists["event"].append(names(event))
        lists["verdict"].append(VERDICTS.index(verdict))
        lists["effect"].append(_number(effect, 3))
        lists["se"].append(_number(se, 3))
        lists["cmi"].append(_number(score, 4) if gains else None)
    return found


def _columns(rows: Iterable[dict[str, Any]], names: _Names) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {name: [] for name in FLEET}
    for row in rows:
        for name, digits in FLEET.items():
            value = row[name]
            columns[name].append(names(value) if name in ("event", "label") else _number(value, digits))
    return columns


def _rounded(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _number(value) if isinstance(value, float) else value for name, value in row.items()}


def _number(value: float | None, digits: int = 4) -> float | int | None:
    """Rounded; whole numbers without a point; what is not finite is null."""
    if value is None or not math.isfinite(value):
        return None
    rounded = round(float(value), digits)
    return int(rounded) if rounded == int(rounded) else rounded


def _short(value: float) -> float | int:
    return int(value) if value == int(value) else round(value, 3)


def _bit(value: bool | None) -> int | None:
    return None if value is None else int(value)
