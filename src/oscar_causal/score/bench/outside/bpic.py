"""BPI Challenge 2011: a hospital's log, labels by four published temporal formulas.

- Sequence: one case, activities in the order of `pos` (timestamps are days, with many ties).
- Label: f1 CA-19.9 or CA-125 occurs; not f2 some CEA is not followed by the squamous-cell test; f3 that test comes
  before any biopsy; f4 a big resection is examined. Deterministic.
- True: the activities that `reasons.csv.gz` lists for the case, and which of their occurrences. Unknown: nothing.
- Split: by case. Own figures: F1 of means for each formula (f1 and f4 are a must; given that a label is there its type
  is the same in every case, so that even f2 and f3 can be named by presence), and over single occurrences of f2 and f3,
  where only the unanswered CEA and the test before the biopsy count.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from oscar_causal.data.subjects import folds
from oscar_causal.errors import DataError
from oscar_causal.score.bench.ladder.interface import Answers, Positions, Reasons, Truth
from oscar_causal.score.bench.ladder.scoring import score
from oscar_causal.score.bench.outside.outside_set import FOLDS, OutsideSet, Published, number, read_rows, whole_number
from oscar_causal.score.bench.outside.own_figures import occurrence_figures
from oscar_causal.score.matching import Pair

FOLDER = "bpic2011"
EVENTS, LABELS, REASONS = "events.csv.gz", "labels.csv.gz", "reasons.csv.gz"
FILES = (EVENTS, LABELS, REASONS)
FORMULAS = ("f1_tumour_marker", "not_f2_cea_unanswered", "f3_scc_before_biopsy", "f4_big_resection")
BY_ORDER = FORMULAS[1:3]
"""Formulas that presence does not decide."""
PUBLISHED = (
    Published(
        "presence difference, right number of events",
        "F1",
        0.98,
        "beside the data; fitted on the cases it is judged on",
    ),
)


def load(folder: Path, seed: int, sequences: int) -> OutsideSet:
    """The set from its files. `sequences` is of no use here: there are as many as there are."""
    table = read_sequences(folder)
    truth = read_reasons(folder / REASONS, table)
    ids, events = table["sequence_id"].to_pylist(), table["events"].to_pylist()
    occurrences = {name: positions_of(activities) for name, activities in zip(ids, events, strict=True)}
    return OutsideSet(
        "bpic2011",
        table,
        folds(table["sequence_id"].combine_chunks(), FOLDS, seed=seed),
        truth,
        lambda answers, truth: own_figures(answers, truth, occurrences),
        PUBLISHED,
    )


def read_sequences(folder: Path) -> pa.Table:
    """The cases in the columns of a dataset."""
    cases: dict[str, list[tuple[int, float, str]]] = {}
    path = folder / EVENTS
    for row in read_rows(path, ("case_id", "timestamp", "activity", "pos")):
        event = (whole_number(row, "pos", path), number(row, "timestamp", path), row["activity"])
        cases.setdefault(row["case_id"], []).append(event)
    marks = {row["case_id"]: row for row in read_rows(folder / LABELS, ("case_id", *FORMULAS))}
    rows = []
    for case, events in cases.items():
        events.sort()
        if case not in marks or [event[0] for event in events] != list(range(len(events))):
            raise DataError(f"{folder}: case {case!r}: expected labels, and pos from 0 on without a gap")
        rows.append(
            {
                "sequence_id": case,
                "events": [name for *_, name in events],
                "times": [at - events[0][1] for _, at, _ in events],
                "labels": [label for label in FORMULAS if marks[case][label] == "1"],
            }
        )
    return pa.Table.from_pylist(rows)


def positions_of(events: list[str]) -> dict[str, frozenset[int]]:
    """Where each activity is."""
    places: dict[str, set[int]] = {}
    for place, event in enumerate(events):
        places.setdefault(event, set()).add(place)
    return {event: frozenset(some) for event, some in places.items()}


def read_reasons(path: Path, table: pa.Table) -> dict[Pair, Reasons]:
    """The truth of every pair; each reason must be where the file says it is."""
    ids, events, labels = (table[name].to_pylist() for name in ("sequence_id", "events", "labels"))
    at = dict(zip(ids, events, strict=True))
    places: dict[Pair, dict[str, set[int]]] = {(ids[k], label): {} for k in range(len(ids)) for label in labels[k]}
    for row in read_rows(path, ("case_id", "label", "pos", "event", "role")):
        pair, place = (row["case_id"], row["label"]), whole_number(row, "pos", path)
        if pair not in places or at[pair[0]][place : place + 1] != [row["event"]]:
            raise DataError(
                f"{path}: case {pair[0]!r}: expected {row['event']!r} at {place}, and the label {pair[1]!r}"
            )
        if row["role"] == "cause":
            places[pair].setdefault(row["event"], set()).add(place)
    return {
        pair: Reasons(frozenset(found), positions={event: frozenset(some) for event, some in found.items()})
        for pair, found in places.items()
    }


def own_figures(answers: Answers, truth: Truth, occurrences: Mapping[str, Positions]) -> dict[str, float]:
    """F1 of each formula, and of occurrences where order decides."""
    parts = {label: {pair: reasons for pair, reasons in truth.items() if pair[1] == label} for label in FORMULAS}
    figures = {f"F1 {label.split('_')[1 if label[0] == 'n' else 0]}": score(answers, part).f1()
               for label, part in parts.items()}  # fmt: skip
    ordered = parts[BY_ORDER[0]] | parts[BY_ORDER[1]]
    return figures | {
        "F1 of occurrences, f2 f3": occurrence_figures(answers, ordered, lambda pair: occurrences[pair[0]])
    }
