"""Telecom alarms (PCIC 2021, 18 types, 55 devices) against a graph of experts between alarm types.

- Sequence: alarms of one device; a silence of more than an hour begins a new one. Four types with many parents and next
  to no children in the graph are labels and no events; events after the last label alarm are cut off.
- Label: one of these types rang. `label_times` has its first alarm.
- True: parents of the label in the graph that rang no later than the label's first alarm (the clock has seconds: the
  same one counts). Unknown: ancestors by way of other types, and parents that rang between the label's first and last
  alarm. Not true: everything else, a parent that rang only after the label's last alarm among it.
- Not proven for any one alarm; nearly every frequent type is a parent of every label: read `everything present` first.
- Split: by device. Scored: sequences of at least two events; a single alarm leaves nothing to choose from.
- Own figures: F1 of edges into the labels (the published F1 are of the whole graph of 18 types: another, harder task);
  F1 over the contested pairs, those in which some present type is known to be no cause.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import networkx as nx
import pyarrow as pa

from oscar_causal.data.subjects import folds
from oscar_causal.score.bench.ladder.interface import Answers, Reasons, Truth
from oscar_causal.score.bench.ladder.scoring import score
from oscar_causal.score.bench.outside.outside_set import FOLDS, OutsideSet, Published, read_rows, whole_number
from oscar_causal.score.bench.outside.own_figures import edge_figures, edges_named

FOLDER = "telecom_alarms"
ALARMS, EDGES = "18v_alarms.csv.gz", "18v_dag_edges.csv"
FILES = (ALARMS, EDGES)
LABELS = ("A06", "A11", "A14", "A15")
QUIET = 3600
"""Seconds without an alarm after which a new sequence begins."""
REMARK = "event-to-event graph of all 18 types (beside the data)"
PUBLISHED = tuple(
    Published(method, "edge F1", value, REMARK)
    for method, value in (("PC", 0.43), ("GES", 0.34), ("PCMCI", 0.42), ("ADM4", 0.41), ("THP", 0.58))
)


@dataclass(frozen=True)
class Burst:
    """Alarms of one device without a long silence: (seconds, type), in order."""

    name: str
    device: str
    alarms: tuple[tuple[int, str], ...]

    def label_times(self) -> dict[str, tuple[int, int]]:
        """Label -> seconds of its first and its last alarm."""
        times: dict[str, list[int]] = {}
        for second, kind in self.alarms:
            if kind in LABELS:
                times.setdefault(kind, []).append(second)
        return {label: (min(some), max(some)) for label, some in times.items()}

    def events(self) -> list[tuple[int, str]]:
        """Alarms that are no labels, up to the last label alarm where there is one."""
        ends = [last for _, last in self.label_times().values()]
        end = max(ends, default=self.alarms[-1][0])
        return [(second, kind) for second, kind in self.alarms if kind not in LABELS and second <= end]


def load(folder: Path, seed: int, sequences: int) -> OutsideSet:
    """The set from its raw files. `sequences` is of no use here: there are as many as there are."""
    bursts = [burst for burst in read_bursts(folder / ALARMS) if burst.events()]
    kinds = read_kinds(folder / EDGES)
    truth = {pair: reasons for burst in bursts for pair, reasons in reasons_of(burst, kinds).items()}
    table = table_of(bursts)
    present = {burst.name: frozenset(kind for _, kind in burst.events()) for burst in bursts}
    return OutsideSet(
        "telecom",
        table,
        folds(table["subject_id"].combine_chunks(), FOLDS, seed=seed),
        truth,
        lambda answers, truth: own_figures(answers, truth, kinds, present),
        PUBLISHED,
        remarks=("published figures are of the whole graph, ours of the edges into four labels",),
    )


def type_name(number: int) -> str:
    """`A06` of 6."""
    return f"A{number:02d}"


def read_bursts(path: Path) -> list[Burst]:
    """Bursts in the order of devices and times."""
    columns = ("device_id", "start_timestamp", "alarm_id")
    rows = sorted(tuple(whole_number(row, name, path) for name in columns) for row in read_rows(path, columns))
    parts: list[list[tuple[int, ...]]] = []
    for row in rows:
        last = parts[-1][-1] if parts else None
        if last is None or last[0] != row[0] or row[1] - last[1] > QUIET:
            parts.append([])
        parts[-1].append(row)
    return [
        Burst(f"burst {number:05d}", f"device {part[0][0]:02d}", tuple((row[1], type_name(row[2])) for row in part))
        for number, part in enumerate(parts)
    ]


def read_kinds(path: Path) -> dict[tuple[str, str], str]:
    """(label, event type) -> parent, or ancestor where every way in the graph leads over other types."""
    rows = read_rows(path, ("cause", "effect"))
    edges = [[type_name(whole_number(row, name, path)) for name in ("cause", "effect")] for row in rows]
    graph = nx.DiGraph(edges)
    return {
        (label, event): "parent" if graph.has_edge(event, label) else "ancestor"
        for label in LABELS
        if label in graph
        for event in nx.ancestors(graph, label) - set(LABELS)
    }


def reasons_of(burst: Burst, kinds: Mapping[tuple[str, str], str]) -> dict[tuple[str, str], Reasons]:
    """The truth of each label of a burst; none where the burst has a single event."""
    events = burst.events()
    first = {kind: second for second, kind in reversed(events)}
    found = {}
    for label, (begin, end) in burst.label_times().items() if len(events) > 1 else ():
        causes = {e for e, at in first.items() if kinds.get((label, e)) == "parent" and at <= begin}
        unknown = {e for e, at in first.items() if (label, e) in kinds and at <= end} - causes
        found[burst.name, label] = Reasons(frozenset(causes), frozenset(unknown))
    return found


def own_figures(
    answers: Answers, truth: Truth, kinds: Mapping[tuple[str, str], str], present: Mapping[str, frozenset[str]]
) -> dict[str, float]:
    """Edges into labels, of types that are there in a scored pair of the label."""
    there = {pair: present[pair[0]] - reasons.unknown for pair, reasons in truth.items()}
    asked = {(label, event) for (_, label), events in there.items() for event in events}
    true = {pair for pair in asked if kinds.get(pair) == "parent"}
    contested = {pair: reasons for pair, reasons in truth.items() if there[pair] - reasons.causes}
    return edge_figures(edges_named(answers, there), true) | {"F1 contested": score(answers, contested).f1()}


def table_of(bursts: Iterable[Burst]) -> pa.Table:
    """The sequences in the columns of a dataset."""
    rows = []
    for burst in bursts:
        begin, labels = burst.alarms[0][0], {label: first for label, (first, _) in burst.label_times().items()}
        rows.append(
            {
                "sequence_id": burst.name,
                "subject_id": burst.device,
                "events": [kind for _, kind in burst.events()],
                "times": [float(second - begin) for second, _ in burst.events()],
                "labels": sorted(labels),
                "label_times": [float(labels[label] - begin) for label in sorted(labels)],
            }
        )
    return pa.Table.from_pylist(rows)
