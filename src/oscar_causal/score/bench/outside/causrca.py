"""causRCA: a lathe in production and with injected faults (coolant, hydraulics); which variables were manipulated?

- Sequence: one run; an event `variable=value` whenever a variable changes. Label: an alarm that rang in the run.
- Scored: pairs of a fault run and an alarm that its manipulation raised (`causes.csv.gz`), over variables, not values.
- True: manipulated variables that are parents of the alarm in the experts' graph and changed after the manipulation
  began. Unknown: the run's other manipulated variables. Not true: everything else (heartbeats, program lines). Other
  alarms of a run (they also ring in production) have no known cause and are not scored.
- Split: by experiment, never by run; one fold for each. An alarm that rings in one experiment alone is then unseen in
  training: `unseen` is the share of the scored pairs for which nobody that learns from labels can know anything.
- Own figures, per run over its alarms as in root-cause papers: Top-1 (the first variable was manipulated) and MAP@3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from oscar_causal.errors import DataError
from oscar_causal.score.bench.ladder.interface import Answers, Reasons, Truth
from oscar_causal.score.bench.ladder.scoring import NOTHING
from oscar_causal.score.bench.outside.outside_set import OutsideSet, Published, number, read_rows
from oscar_causal.score.bench.outside.own_figures import average_precision_at, ranking
from oscar_causal.score.matching import Pair

FOLDER = "causrca"
EVENTS, LABELS, CAUSES, PARENTS = "events.csv.gz", "labels.csv.gz", "causes.csv.gz", "truth_parents.csv"
FILES = (EVENTS, LABELS, CAUSES, PARENTS)
GROUPS = ("coolant", "hydraulics")
UNSUPERVISED = "no labels, all 92 variables, state at the alarm (their eval/, commit 7135767)"
BY_RUN = "labels of the other runs of the same experiment known"
PUBLISHED = tuple(
    Published(method, f"MAP@3 {group}", value, remark)
    for method, values, remark in (
        ("best without a graph", (0.35, 0.26), UNSUPERVISED),
        ("experts' graph", (1.0, 0.98), UNSUPERVISED),
        ("presence difference", (1.0, 1.0), BY_RUN),
    )
    for group, value in zip(GROUPS, values, strict=True)
)


@dataclass(frozen=True)
class Fault:
    """What was done to one run."""

    variables: frozenset[str]
    begin: float
    alarms: frozenset[str]


def load(folder: Path, seed: int, sequences: int) -> OutsideSet:
    """The set from its files. Neither `seed` nor `sequences` is of use: every experiment is a fold."""
    faults = read_faults(folder / CAUSES)
    table = read_sequences(folder, faults)
    truth = reasons_of(table, faults, read_parents(folder / PARENTS))
    fold = fold_of(table, faults)
    return OutsideSet(
        "causrca",
        table,
        fold,
        truth,
        lambda answers, truth: own_figures(answers, truth, faults),
        PUBLISHED,
        variable,
        (f"unseen: {unseen(table, fold, truth):.2f} of the scored pairs: no other experiment raises their alarm",),
    )


def variable(event: str) -> str:
    """The variable of `variable=value`."""
    return event.split("=", 1)[0]


def experiment(run: str) -> str:
    """`exp_coolant-exp_22` of `exp_coolant-exp_22-run_1`; a production run stands for itself."""
    return run.rsplit("-run_", 1)[0]


def read_faults(path: Path) -> dict[str, Fault]:
    """Run -> its fault."""
    faults: dict[str, Fault] = {}
    for row in read_rows(path, ("sequence_id", "manipulated", "cause_start", "alarms")):
        known = faults.get(row["sequence_id"], Fault(frozenset(), number(row, "cause_start", path), frozenset()))
        alarms = frozenset(filter(None, row["alarms"].split(";")))
        faults[row["sequence_id"]] = Fault(known.variables | {row["manipulated"]}, known.begin, known.alarms | alarms)
    return faults


def read_parents(path: Path) -> dict[str, frozenset[str]]:
    """Alarm -> its parents in the experts' graph."""
    parents: dict[str, set[str]] = {}
    for row in read_rows(path, ("label", "parent")):
        parents.setdefault(row["label"], set()).add(row["parent"])
    return {label: frozenset(some) for label, some in parents.items()}


def read_sequences(folder: Path, faults: Mapping[str, Fault]) -> pa.Table:
    """The runs in the columns of a dataset."""
    runs: dict[str, list[tuple[float, str]]] = {}
    path = folder / EVENTS
    for row in read_rows(path, ("sequence_id", "time", "event")):
        runs.setdefault(row["sequence_id"], []).append((number(row, "time", path), row["event"]))
    labels: dict[str, set[str]] = {run: set() for run in runs}
    for row in read_rows(folder / LABELS, ("sequence_id", "label")):
        labels.setdefault(row["sequence_id"], set()).add(row["label"])
    silent = sorted(set(faults) - set(runs))  # of production, some runs have alarms and no change
    if silent:
        raise DataError(f"{path}: expected events of run {silent[0]!r}, found none")
    rows = []
    for run, events in runs.items():
        events.sort(key=lambda event: event[0])
        rows.append(
            {
                "sequence_id": run,
                "subject_id": experiment(run),
                "events": [name for _, name in events],
                "times": [at for at, _ in events],
                "labels": sorted(labels[run]),
            }
        )
    return pa.Table.from_pylist(rows)


def fold_of(table: pa.Table, faults: Mapping[str, Fault]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """A fold for each experiment; production runs are never tested."""
    experiments = {name: k for k, name in enumerate(sorted({experiment(run) for run in faults}))}
    return np.array([experiments.get(name, -1) for name in table["subject_id"].to_pylist()], np.int64)


def reasons_of(
    table: pa.Table, faults: Mapping[str, Fault], parents: Mapping[str, frozenset[str]]
) -> dict[Pair, Reasons]:
    """The truth of every alarm that a manipulation raised."""
    truth = {}
    columns = (table[name].to_pylist() for name in ("sequence_id", "events", "times", "labels"))
    for run, events, times, labels in zip(*columns, strict=True):
        if run in faults:
            fault = faults[run]
            changed = {e for e, at in zip(events, times, strict=True) if at >= fault.begin}
            touched = {event for event in changed if variable(event) in fault.variables}
            for label in fault.alarms & set(labels):
                causes = {event for event in touched if variable(event) in parents.get(label, frozenset())}
                truth[run, label] = Reasons(frozenset(causes), frozenset(touched - causes))
    return truth


def unseen(table: pa.Table, fold: np.ndarray[tuple[int], np.dtype[np.int64]], truth: Truth) -> float:
    """Share of the scored pairs whose alarm rings in no sequence outside their fold."""
    ids, labels = table["sequence_id"].to_pylist(), table["labels"].to_pylist()
    of_run = dict(zip(ids, fold.tolist(), strict=True))
    rings: dict[str, set[int]] = {}
    for run, names in zip(ids, labels, strict=True):
        for label in names:
            rings.setdefault(label, set()).add(of_run[run])
    return float(np.mean([not rings[label] - {of_run[run]} for run, label in truth])) if truth else 0.0


def own_figures(answers: Answers, truth: Truth, faults: Mapping[str, Fault]) -> dict[str, float]:
    """Top-1 and MAP@3 over the runs of each group."""
    figures = {}
    for group in GROUPS:
        runs = sorted({run for run, _ in truth if run.startswith(f"exp_{group}-")})
        ranked = [ranking([answers.get(pair, NOTHING) for pair in truth if pair[0] == run], variable) for run in runs]
        for name, k in (("Top-1", 1), ("MAP@3", 3)):
            scores = [average_precision_at(k, order, faults[run].variables)
                      for run, order in zip(runs, ranked, strict=True)]  # fmt: skip
            figures[f"{name} {group}"] = float(np.mean(scores)) if scores else 0.0
    return figures
