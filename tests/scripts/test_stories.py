"""The stories on real data, on made-up data of the same shape: bursts of alarms, and cases of fines."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from oscar_causal.errors import DataError, UsageError

Script = Callable[[str], ModuleType]
Rows = Iterable[Sequence[Any]]


def write(path: Path, columns: Sequence[str], rows: Rows) -> None:
    with gzip.open(path, "wt", newline="") if path.suffix == ".gz" else path.open("w", newline="") as file:
        csv.writer(file).writerows([columns, *rows])


def made_up_alarms(folder: Path) -> None:
    """In half of the bursts 7 brings 11, 11 brings 14, and 10 follows 14; 5 is noise."""
    rng = np.random.default_rng(0)
    rows = []
    for burst in range(80):
        begin, device = 10_000 * burst, burst % 8
        rows += [(5, device, begin + int(rng.integers(100)), 0) for _ in range(2)]
        if rng.random() < 0.5:
            rows += [(alarm, device, begin + after, 0) for alarm, after in ((7, 120), (11, 200), (14, 300), (10, 400))]
        if rng.random() < 0.2:
            rows += [(alarm, device, begin + after, 0) for alarm, after in ((6, 500), (15, 600))]
    write(folder / "18v_alarms.csv.gz", ["alarm_id", "device_id", "start_timestamp", "end_timestamp"], rows)
    edges = [(7, 11), (11, 14), (10, 11), (5, 6), (5, 15)]
    write(folder / "18v_dag_edges.csv", ["cause", "effect"], edges)


def made_up_fines(folder: Path) -> None:
    """Notified cases get a penalty, and go to collection unless they are paid; some appeal."""
    rng = np.random.default_rng(0)
    events: list[tuple[str, int, str]] = []
    labels: list[tuple[str, int, int, int]] = []
    for number in range(300):
        case, notified, paid, appeal = f"A{number}", *(rng.random(3) < (0.6, 0.4, 0.15))
        steps = ["Create Fine", *(["Insert Fine Notification", "Add penalty"] if notified else [])]
        steps += ["Send Appeal to Prefecture"] * bool(appeal) + ["Payment"] * bool(paid)
        events += [(case, 10 * day, step) for day, step in enumerate(steps)]
        labels.append((case, int(notified and not paid and not appeal), int(paid), int(appeal)))
    write(folder / "seq_events.csv.gz", ["seq_id", "t", "event"], events)
    names = ["seq_id", "credit_collection", "fully_paid", "dismissed"]
    write(folder / "seq_labels.csv.gz", names, labels)
    truth = [("credit_collection", "Add penalty", "promotes"), ("credit_collection", "Payment", "prevents"),
             ("fully_paid", "Payment", "promotes"),
             ("dismissed", "Send Appeal to Prefecture", "promotes")]  # fmt: skip
    write(folder / "seq_truth.csv", ["label", "event", "effect"], truth)


def test_the_story_of_the_alarms(script: Script, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made_up_alarms(tmp_path)
    out = tmp_path / "out"
    script("story_telecom").main([str(tmp_path), "--out", str(out), "--steps", "25", "--folds", "2", "--world", "2"])
    figures = json.loads((out / "story-telecom.json").read_text())
    assert {"page.html", "story-telecom.png"} <= {path.name for path in out.iterdir()}
    assert figures["order"]["A14"]["A10"]["before"] == figures["order"]["A14"]["A07"]["after"] == 0
    whole, cut = figures["verdicts"]["whole"], figures["verdicts"]["cut"]
    assert whole["A14"]["A10"]["present"] == figures["order"]["A14"]["A10"]["after"]
    assert "A10" not in cut["A14"]  # it comes only after the label
    assert cut["A11"]["A07"]["cause"] > 0.8 * cut["A11"]["A07"]["present"] > 20
    assert figures["cut"]["import"]["events_left_out"] == figures["order"]["A14"]["A10"]["after"]
    assert [step["line"].split()[1] for step in figures["typed"][:4]] == ["import", "inspect", "train", "check"]
    assert "A07" in capsys.readouterr().out


def test_the_story_of_the_fines(script: Script, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made_up_fines(tmp_path)
    out = tmp_path / "out"
    script("story_fines").main([str(tmp_path), "--out", str(out), "--steps", "25", "--world", "2"])
    figures = json.loads((out / "story-fines.json").read_text())
    assert {"page.html", "story-fines.png"} <= {path.name for path in out.iterdir()}
    told = {problem["kind"]: problem["names"] for problem in figures["inspect"]["problems"]}
    assert told["events_everywhere"] == ["Create Fine"]
    assert told["inseparable_events"][0]["events"] == ["Add penalty", "Insert Fine Notification"]
    paid = figures["verdicts"]["causes"]["fully_paid"]["Payment"]
    assert paid["cause"] > 0.8 * paid["present"] > 0
    prevented = figures["verdicts"]["why_not"]["credit_collection"]["Payment"]
    assert prevented["inhibitor"] > prevented["cause"] == 0
    there = figures["prevented"]["credit_collection"][
        "Payment"
    ]  # where the penalty is present; elsewhere there is nothing to prevent
    assert 0 < there["inhibitor"] <= there["present"] < prevented["present"]
    occurs = figures["variant_occurs"]
    assert "Payment" in occurs["fully_paid"]
    assert "Add penalty" not in occurs.get("credit_collection", {})  # no case has a notification and no penalty
    assert set(figures["opening_alone"]) == {"model", "forecaster"}
    instead = figures["instead"]["Add penalty"]
    assert instead["cases"] == figures["verdicts"]["causes"]["credit_collection"]["Add penalty"]["present"]
    assert 0 <= instead["taken out"]["probability"] < instead["observed"]["probability"] <= 1
    assert "Create Fine" not in {row["event"] for row in figures["population"]["population"]["boundaries"]}
    assert figures["typed"][0]["line"].startswith("oscar import DATA/seq_events.csv.gz --labels DATA/seq_labels.csv.gz")
    assert "prevents" in capsys.readouterr().out


def test_a_silence_or_another_device_begins_a_burst(script: Script, tmp_path: Path) -> None:
    rows = [(11, 1, 50, 0), (7, 1, 0, 0), (5, 1, 3651, 0), (5, 2, 3652, 0)]
    write(tmp_path / "alarms.csv.gz", ["alarm_id", "device_id", "start_timestamp", "end_timestamp"], rows)
    found = script("story_telecom").read_bursts(tmp_path / "alarms.csv.gz")
    assert [(b.device, b.alarms) for b in found] == [
        (1, ((0, "A07"), (50, "A11"))),
        (1, ((3651, "A05"),)),
        (2, ((3652, "A05"),)),
    ]
    assert found[0].label_times == {"A11": 50}
    assert found[0].events == [(0, "A07")]


def test_before_and_after_go_by_first_times(script: Script) -> None:
    module = script("story_telecom")
    alarms = ((0, "A07"), (5, "A11"), (5, "A10"), (9, "A07"), (9, "A11"), (12, "A02"))
    found = module.order_of([module.Burst(1, alarms)])["A11"]
    assert {event: [name for name, count in part.items() if count] for event, part in found.items()} == {
        "A07": ["before"],
        "A10": ["same second"],
        "A02": ["after"],
    }


def test_ancestors_by_way_of_other_types(script: Script, tmp_path: Path) -> None:
    write(tmp_path / "edges.csv", ["cause", "effect"], [(12, 10), (10, 11), (11, 14), (1, 14)])
    found = script("story_telecom").read_truth(tmp_path / "edges.csv")
    assert found == {
        ("A11", "A10"): "parent",
        ("A11", "A12"): "ancestor",
        ("A14", "A01"): "parent",
        ("A14", "A10"): "ancestor",
        ("A14", "A12"): "ancestor",
    }


def test_the_ranking_is_the_area_under_the_curve(script: Script) -> None:
    rng = np.random.default_rng(1)
    strength = {f"E{k}": float(rng.integers(5)) for k in range(12)}
    true = [f"E{k}" for k in range(5)]
    wanted = roc_auc_score([event in true for event in strength], list(strength.values()))
    assert script("story_steps").ranking_auc(strength, true) == pytest.approx(wanted)
    assert script("story_steps").ranking_auc(strength, strength) is None


def test_wrong_data_is_said_in_one_line(script: Script, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="18v_alarms.csv.gz: expected a table"):
        script("story_telecom").main([str(tmp_path), "--out", str(tmp_path / "out")])
    write(tmp_path / "seq_truth.csv", ["label", "event"], [])
    with pytest.raises(DataError, match="expected column 'effect', found label, event"):
        script("story_fines").main([str(tmp_path), "--out", str(tmp_path / "out")])
    write(tmp_path / "seq_truth.csv", ["label", "event", "effect"], [("a", "b", "hinders")])
    with pytest.raises(DataError, match="expected effect promotes or prevents, got 'hinders'"):
        script("story_fines").main([str(tmp_path), "--out", str(tmp_path / "out")])
    write(tmp_path / "seq_truth.csv", ["label", "event", "effect"], [])
    with pytest.raises(UsageError, match="exists already"):
        script("story_fines").main([str(tmp_path), "--out", str(tmp_path)])
