"""Boundaries as graphs: events point at the labels they act on, for one sequence or counted over many.

Nodes are `event:NAME` and `label:NAME` (an event and a label may share a name) with `kind` and `name`; an edge carries
`verdict`, `sign`, `strength` and what else is known of it. Attributes nobody measured are left out.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from oscar_causal.data.folders import finite_or_none
from oscar_causal.discovery.boundary import Boundary, EventEvidence
from oscar_causal.discovery.results import read_run, read_table
from oscar_causal.errors import UsageError
from oscar_causal.graph.population import BOUNDARY_SCHEMA
from oscar_causal.graph.population_folder import read_info, read_rows

SIGNS = {"cause": "+", "inhibitor": "-"}
Pair = tuple[str, str]


def read_boundaries(results: Path | str, sequence_ids: Sequence[str] | None = None) -> list[Boundary]:
    """Every explained pair of a results folder (or of these sequences) with its accepted events as evidence."""
    read_run(results)
    verdicts, causes = (_rows_of(read_table(results, name), sequence_ids) for name in ("verdicts", "causes"))
    missing = set(sequence_ids or ()) - set(verdicts["sequence_id"].to_pylist())
    if missing:
        raise UsageError(f"{results}: expected sequence {sorted(missing)[0]!r} among the explained ones, found none")
    found: dict[Pair, list[EventEvidence]] = defaultdict(list)
    for row in causes.to_pylist():
        found[row["sequence_id"], row["label"]].append(_accepted(row))
    return [
        Boundary(
            sequence_id=row["sequence_id"],
            label=row["label"],
            observed=row["observed"],
            probability=row["probability"],
            evidence=tuple(found[row["sequence_id"], row["label"]]),
            trusted=row["trusted"],
            seen_in_training=row["seen_in_training"],
            contexts=row["contexts"] or 0,
            flags=tuple(row["flags"] or ()),
        )
        for row in verdicts.to_pylist()
    ]


def sequence_graph(boundaries: Iterable[Boundary]) -> nx.DiGraph:
    """The graph of one sequence: every explained label, and every accepted event with an edge to it.

    >>> cause = EventEvidence("C0051", (4,), "cause", 0.46, indicator=0.46, indicator_sd=0.1, q_value=0.003)
    >>> graph = sequence_graph([Boundary("car 1", "steering degraded", True, 0.93, (cause,))])
    >>> graph.edges["event:C0051", "label:steering degraded"]["strength"]
    0.46
    """
    items = list(boundaries)
    names = {item.sequence_id for item in items}
    if len(names) != 1:
        raise UsageError(f"sequence graph: expected boundaries of one sequence, got {len(names)}")
    graph = nx.DiGraph(kind="sequence", sequence_id=names.pop())
    for item in items:
        graph.add_node(f"label:{item.label}", **_known(kind="label", name=item.label, probability=item.probability))
        for event in item.causes:
            _add_event(graph, event)
            graph.add_edge(f"event:{event.event}", f"label:{item.label}", **_edge(event))
    return graph


def population_graph(boundaries: Iterable[Boundary]) -> nx.DiGraph:
    """One graph over many sequences: `strength` is the mean indicator where the event was accepted, `sd` its spread.

    `found` counts the sequences that accepted the event for the label, `of` those in which the label was explained,
    `opposite` the accepted ones with the other sign than the majority. Of a label's node `explained` counts sequences,
    `untrusted` those with a verdict by a model that cannot judge the label.
    """
    explained: Counter[str] = Counter()
    untrusted: Counter[str] = Counter()
    accepted: dict[Pair, list[EventEvidence]] = defaultdict(list)
    for item in boundaries:
        explained[item.label] += 1
        untrusted[item.label] += item.trusted is False
        for event in item.causes:
            accepted[event.event, item.label].append(event)
    graph = nx.DiGraph(kind="population")
    for label, number in explained.items():
        graph.add_node(f"label:{label}", kind="label", name=label, explained=number, untrusted=untrusted[label])
    for (name, label), items in accepted.items():
        graph.add_node(f"event:{name}", kind="event", name=name)
        graph.add_edge(f"event:{name}", f"label:{label}", **_pooled(items), of=explained[label])
    return graph


def to_networkx(results: Iterable[Boundary] | Path | str) -> nx.DiGraph:
    """Boundaries, or a results folder, as one graph: see `population_graph`.

    >>> evidence = (EventEvidence("A", (0,), "cause", 0.5, indicator=0.5),)
    >>> to_networkx([Boundary("car 1", "fault", True, 0.9, evidence)]).edges["event:A", "label:fault"]["found"]
    1
    """
    return population_graph(read_boundaries(results) if isinstance(results, Path | str) else results)


def read_population(folder: Path | str) -> nx.DiGraph:
    """The graph of a population folder: the pairs of `boundaries.parquet` with the verdict cause or inhibitor.

    `strength` is the mean effect over the fleet, `sd` its spread between sequences, `of` the sequences with the event
    in which it was tested, `found` those that accepted it with that sign, `world_p` the test on observed labels.
    """
    read_info(folder)
    rows = read_rows(folder, "boundaries.parquet", BOUNDARY_SCHEMA, needed=("label", "event", "verdict"))
    graph = nx.DiGraph(kind="population")
    for row in rows:
        if row["verdict"] in SIGNS:
            graph.add_node(f"label:{row['label']}", kind="label", name=row["label"])
            graph.add_node(f"event:{row['event']}", kind="event", name=row["event"])
            graph.add_edge(f"event:{row['event']}", f"label:{row['label']}", **_fleet_edge(row))
    return graph


def filter_graph(
    graph: nx.DiGraph, *, top: int | None = None, labels: Sequence[str] | None = None, sign: str = "both"
) -> nx.DiGraph:
    """The edges that pass, with their nodes: the `top` ones (found most often, then strongest), these labels, one sign.

    `sign` is `both`, `cause` or `inhibitor`. Labels asked for stay without an edge; others go with their last edge.
    """
    if sign not in ("both", *SIGNS):
        raise UsageError(f"sign: expected both, cause or inhibitor, got {sign!r}")
    if top is not None and top < 1:
        raise UsageError(f"top: expected at least 1, got {top}")
    for label in labels or ():
        if f"label:{label}" not in graph:
            raise UsageError(f"label: expected one of the graph's labels, got {label!r}")
    wanted = None if labels is None else {f"label:{label}" for label in labels}
    kept = [
        (event, label)
        for event, label, edge in graph.edges(data=True)
        if (wanted is None or label in wanted) and sign in ("both", edge["verdict"])
    ]
    kept.sort(key=lambda ends: _importance(ends, graph.edges[ends]))
    filtered = nx.DiGraph(**graph.graph)
    for ends in kept[:top]:
        filtered.add_nodes_from((node, graph.nodes[node]) for node in ends)
        filtered.add_edge(*ends, **graph.edges[ends])
    filtered.add_nodes_from((node, graph.nodes[node]) for node in sorted(wanted or ()))
    return filtered


def edges_of(graph: nx.DiGraph) -> list[dict[str, Any]]:
    """The edges as rows, most important first: cause, effect, verdict, sign, strength and all other attributes."""
    ordered = sorted(graph.edges(data=True), key=lambda edge: _importance(edge[:2], edge[2]))
    return [
        {"cause": graph.nodes[event]["name"], "effect": graph.nodes[label]["name"], **attributes}
        for event, label, attributes in ordered
    ]


def _accepted(row: dict[str, Any]) -> EventEvidence:
    known = {field.name for field in fields(EventEvidence)} & set(row)
    values = {name: row[name] for name in known if row[name] is not None}
    effect = math.nan if row["indicator"] is None else row["indicator"]
    return EventEvidence(**{**values, "positions": tuple(row["positions"] or ()), "effect": effect})


def _importance(ends: Pair, edge: dict[str, Any]) -> tuple[Any, ...]:
    return (-edge.get("found", 1), -abs(edge.get("strength", 0.0)), ends[1], ends[0])


def _add_event(graph: nx.DiGraph, event: EventEvidence) -> None:
    node = f"event:{event.event}"
    known = set(graph.nodes[node]["positions"]) if node in graph else set()
    graph.add_node(node, kind="event", name=event.event, positions=tuple(sorted(known | set(event.positions))))


def _edge(event: EventEvidence) -> dict[str, Any]:
    return _known(
        verdict=event.verdict,
        sign=SIGNS[event.verdict],
        strength=event.indicator,
        sd=event.indicator_sd,
        ci_low=event.ci_low,
        ci_high=event.ci_high,
        q=event.q_value,
        cmi_nats=event.cmi_nats,
        alone=event.alone,
    )


def _spread(values: npt.NDArray[np.float64]) -> float | None:
    """Standard deviation; None of fewer than two values, and of foreign ones that are too large to square."""
    with np.errstate(over="ignore"):
        return finite_or_none(values.std(ddof=1)) if len(values) > 1 else None


def _pooled(items: list[EventEvidence]) -> dict[str, Any]:
    causes = sum(item.verdict == "cause" for item in items)
    verdict = "cause" if 2 * causes >= len(items) else "inhibitor"
    values = np.array([item.indicator for item in items if item.indicator is not None])
    return _known(
        verdict=verdict,
        sign=SIGNS[verdict],
        strength=float(values.mean()) if len(values) else None,
        sd=_spread(values),
        found=len(items),
        opposite=min(causes, len(items) - causes),
    )


def _fleet_edge(row: dict[str, Any]) -> dict[str, Any]:
    share = row.get("inhibitor_share" if row["verdict"] == "inhibitor" else "accepted_share")
    tested = row.get("tested")
    return _known(
        verdict=row["verdict"],
        sign=SIGNS[row["verdict"]],
        strength=row.get("effect"),
        sd=row.get("effect_sd"),
        ci_low=row.get("ci_low"),
        ci_high=row.get("ci_high"),
        q=row.get("q_value"),
        world_p=row.get("world_p_value"),
        found=None if share is None or tested is None else round(share * tested),
        of=tested,
    )


def _known(**attributes: Any) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value is not None}


def _rows_of(table: pa.Table, sequence_ids: Sequence[str] | None) -> pa.Table:
    if sequence_ids is None:
        return table
    return table.filter(pc.is_in(table["sequence_id"], value_set=pa.array(list(sequence_ids), pa.string())))
