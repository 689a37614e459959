"""Italian road traffic fines (10,000 cases) against the rules of the process.

- Sequence: one case, t in days. Label: sent for credit collection, fully paid, dismissed (no events, never two).
- True: what the process says promotes the label (`seq_truth.csv`) and is present. Not true: everything else, also a
  preventive cause (`Payment` for credit collection) and "Insert Fine Notification", which occurs in exactly the cases
  of "Add penalty" and is no separate cause. By presence nothing parts the two, so a method that names one of them has
  been lucky: IAMB takes the first by name, which here is the right one. Unknown: nothing. A case dismissed without an
  appeal has no known cause.
- Split: by case. Own figures: F1 with the two as one (no luck in it), F1 of promoting edges, and the sign: of the
  pairs with a preventive type present, the share in which it is named an inhibitor (right) or a cause (wrong).
  Other inhibitors are not judged: the rules of the process do not list all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from oscar_causal.data.subjects import folds
from oscar_causal.errors import DataError
from oscar_causal.score.bench.ladder.interface import Answers, Reasons
from oscar_causal.score.bench.ladder.scoring import NOTHING, score
from oscar_causal.score.bench.outside.outside_set import FOLDS, OutsideSet, number, read_rows
from oscar_causal.score.bench.outside.own_figures import edge_figures, edges_named
from oscar_causal.score.matching import Pair

FOLDER = "traffic_fines"
EVENTS, LABELS, TRUTH = "seq_events.csv.gz", "seq_labels.csv.gz", "seq_truth.csv"
FILES = (EVENTS, LABELS, TRUTH)
SIGNS = {"promotes": "+", "prevents": "-"}
DAY = 86400.0
INSEPARABLE = {"Insert Fine Notification": "Add penalty"}
"""Types that occur in exactly the same cases: the first stands for the second."""


def load(folder: Path, seed: int, sequences: int) -> OutsideSet:
    """The set from its files. `sequences` is of no use here: there are as many as there are."""
    effects = read_effects(folder / TRUTH)
    table = read_sequences(folder, sorted({label for label, _ in effects}))
    ids, events, labels = (table[name].to_pylist() for name in ("sequence_id", "events", "labels"))
    present = {(ids[k], label): frozenset(events[k]) for k in range(len(ids)) for label in labels[k]}
    promoting = {label: {e for (other, e), sign in effects.items() if (other, sign) == (label, "+")}
                 for label, _ in effects}  # fmt: skip
    truth = {pair: Reasons(there & promoting[pair[1]]) for pair, there in present.items()}
    return OutsideSet(
        "fines",
        table,
        folds(table["sequence_id"].combine_chunks(), FOLDS, seed=seed),
        truth,
        lambda answers, truth: {
            "F1, inseparable as one": score(answers, truth, separable).f1(),
            **own_figures(answers, {pair: present[pair] for pair in truth}, effects),
        },
    )


def separable(event: str) -> str:
    """A type that presence can tell from all others."""
    return INSEPARABLE.get(event, event)


def own_figures(
    answers: Answers, present: Mapping[Pair, frozenset[str]], effects: Mapping[tuple[str, str], str]
) -> dict[str, float]:
    """Promoting edges; of the pairs with a preventive type, in how many it is named an inhibitor, and a cause."""
    promoting = {edge for edge, sign in effects.items() if sign == "+"}
    asked = [(answers.get(pair, NOTHING), event) for pair, there in present.items() for event in there
             if effects.get((pair[1], event)) == "-"]  # fmt: skip
    right = sum(event in answer.inhibitors for answer, event in asked)
    wrong = sum(event in answer.causes for answer, event in asked)
    return edge_figures(edges_named(answers, present), promoting) | {
        "prevention found": right / max(len(asked), 1),
        "prevention as cause": wrong / max(len(asked), 1),
    }


def read_effects(path: Path) -> dict[tuple[str, str], str]:
    """(label, event type) -> + or -."""
    rows = read_rows(path, ("label", "event", "effect"))
    wrong = [row["effect"] for row in rows if row["effect"] not in SIGNS]
    if wrong:
        raise DataError(f"{path}: expected effect promotes or prevents, got {wrong[0]!r}")
    return {(row["label"], row["event"]): SIGNS[row["effect"]] for row in rows}


def read_sequences(folder: Path, labels: list[str]) -> pa.Table:
    """The cases in the columns of a dataset."""
    cases: dict[str, list[tuple[float, str]]] = {}
    for row in read_rows(folder / EVENTS, ("seq_id", "t", "event")):
        cases.setdefault(row["seq_id"], []).append((number(row, "t", folder / EVENTS) * DAY, row["event"]))
    marks = {row["seq_id"]: row for row in read_rows(folder / LABELS, ("seq_id", *labels))}
    unmarked = sorted(set(cases) - set(marks))
    if unmarked:
        raise DataError(f"{folder / LABELS}: expected a row for case {unmarked[0]!r}, found none")
    rows = []
    for case, events in cases.items():
        events.sort(key=lambda event: event[0])  # stable: ties keep the order of the file
        rows.append(
            {
                "sequence_id": case,
                "events": [name for _, name in events],
                "times": [at for at, _ in events],
                "labels": [label for label in labels if marks[case][label] == "1"],
            }
        )
    return pa.Table.from_pylist(rows)
