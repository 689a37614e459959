"""Tiny made-up raw files in the shape of the outside sets."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

TREE = """<?xml version="1.0"?>
<opsa-mef><define-fault-tree name="t">
<define-gate name="top"><or><gate name="both"/><gate name="two"/></or></define-gate>
<define-gate name="both"><and><basic-event name="a"/><basic-event name="b"/></and></define-gate>
<define-gate name="two"><atleast min="2"><basic-event name="b"/><basic-event name="c"/><gate name="same"/></atleast>
</define-gate>
<define-gate name="same"><basic-event name="d"/></define-gate>
</define-fault-tree><model-data><define-basic-event name="a"><float value="0.1"/></define-basic-event></model-data>
</opsa-mef>"""
"""Minimal cut sets: ab, bc, bd, cd."""
CROSSED = """<opsa-mef><define-fault-tree name="x"><define-gate name="top"><and><basic-event name="a"/>
<not><basic-event name="b"/></not></and></define-gate></define-fault-tree></opsa-mef>"""
ALARMS = [
    # device 1: no parent, parent, label, parent of a later alarm, label again, parent after the last label: cut off
    (5, 1, 0), (7, 1, 10), (11, 1, 20), (10, 1, 30), (11, 1, 40), (7, 1, 50),
    # an hour later: an ancestor and a type without any way to the label
    (12, 1, 9000), (3, 1, 9005), (11, 1, 9006),
    # another device within that hour: one event alone
    (7, 2, 9007), (11, 2, 9008),
]  # fmt: skip
"""(alarm, device, second)."""
EDGES = [(7, 11), (10, 11), (12, 7), (11, 14)]


def write_csv(path: Path, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", newline="") if path.suffix == ".gz" else path.open("w", newline="") as file:
        csv.writer(file).writerows([head, *rows])


def write_telecom(folder: Path) -> None:
    alarms = [(alarm, device, second, second + 1) for alarm, device, second in ALARMS]
    head = ("alarm_id", "device_id", "start_timestamp", "end_timestamp")
    write_csv(folder / "18v_alarms.csv.gz", head, reversed(alarms))
    write_csv(folder / "18v_dag_edges.csv", ("cause", "effect"), EDGES)


def write_fines(folder: Path, cases: int = 60) -> None:
    """Every third case is unpaid after the penalty, every fourth of these pays part of it; the others pay."""
    events, labels = [], []
    for case in range(cases):
        names = ["Create Fine", *(["Insert Fine Notification", "Add penalty"] if case % 3 == 0 else ["Payment"])]
        names += ["Payment"] if case % 12 == 0 else []
        events += [(f"c{case}", 10 * day, name) for day, name in enumerate(names)]
        labels.append((f"c{case}", int(case % 3 == 0), int(case % 3 != 0), 0))
    write_csv(folder / "seq_events.csv.gz", ("seq_id", "t", "event"), events)
    write_csv(folder / "seq_labels.csv.gz", ("seq_id", "credit_collection", "fully_paid", "dismissed"), labels)
    truth = [("credit_collection", "Add penalty", "promotes"), ("credit_collection", "Payment", "prevents"),
             ("fully_paid", "Payment", "promotes"), ("dismissed", "Appeal to Judge", "promotes")]  # fmt: skip
    write_csv(folder / "seq_truth.csv", ("label", "event", "effect"), truth)


def write_bpic(folder: Path) -> None:
    cases = {"1": ["visit", "cea", "scc", "cea", "visit"], "2": ["ca-125", "visit"], "3": ["visit", "cea", "scc"]}
    events = [(case, 86400 * (place // 2), name, place) for case, names in cases.items()
              for place, name in enumerate(names)]  # fmt: skip
    write_csv(folder / "events.csv.gz", ("case_id", "timestamp", "activity", "pos"), events)
    head = ("case_id", "f1_tumour_marker", "not_f2_cea_unanswered", "f3_scc_before_biopsy", "f4_big_resection")
    write_csv(folder / "labels.csv.gz", head, [("1", 0, 1, 1, 0), ("2", 1, 0, 0, 0), ("3", 0, 0, 1, 0)])
    reasons = [
        ("1", "not_f2_cea_unanswered", 3, "cea", "cause"),
        ("1", "f3_scc_before_biopsy", 2, "scc", "cause"),
        ("2", "f1_tumour_marker", 0, "ca-125", "cause"),
        ("3", "f3_scc_before_biopsy", 2, "scc", "cause"),
    ]
    write_csv(folder / "reasons.csv.gz", ("case_id", "label", "pos", "event", "role"), reasons)


def write_causrca(folder: Path) -> None:
    """Three experiments of two runs, and four production runs; P is manipulated, Q too in the second experiment."""
    runs = {f"exp_coolant-exp_{exp}-run_{run}": exp for exp in (1, 2) for run in (1, 2)}
    runs |= {f"exp_hydraulics-exp_3-run_{run}": 3 for run in (1, 2)}
    events, labels, causes = [], [], []
    for run, exp in runs.items():
        events += [(run, 1, "P=True"), (run, 2, "beat=1"), (run, 20, "P=False"), (run, 21, "beat=0"), (run, 25, "R=1")]
        events += [(run, 22, "Q=False")] if exp == 2 else []
        labels += [(run, "P_alarm"), (run, "usual"), *([(run, "Q_alarm")] if exp == 2 else [])]
        alarms = "P_alarm;Q_alarm" if exp == 2 else "P_alarm"
        causes += [(run, name, 15.5, alarms, "d") for name in ("P", *(["Q"] if exp == 2 else []))]
    for run in range(4):
        events += [(f"op_{run}", 1, "P=True"), (f"op_{run}", 2, "beat=1"), (f"op_{run}", 3, "R=1")]
        labels.append((f"op_{run}", "usual"))
    write_csv(folder / "events.csv.gz", ("sequence_id", "time", "event"), events)
    write_csv(folder / "labels.csv.gz", ("sequence_id", "label"), [*labels, ("op_silent", "usual")])
    write_csv(folder / "causes.csv.gz", ("sequence_id", "manipulated", "cause_start", "alarms", "diagnoses"), causes)
    parents = [("P_alarm", "P"), ("Q_alarm", "Q"), ("usual", "R")]
    write_csv(folder / "truth_parents.csv", ("label", "parent"), parents)


def write_trees(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (("plain", TREE), ("crossed", CROSSED)):
        (folder / f"{name}.xml.gz").write_bytes(gzip.compress(text.encode()))


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """A data folder with all five sets."""
    folder = tmp_path / "data"
    write_telecom(folder / "telecom_alarms")
    write_fines(folder / "traffic_fines")
    write_bpic(folder / "bpic2011")
    write_causrca(folder / "causrca")
    write_trees(folder / "fault_trees")
    return folder
