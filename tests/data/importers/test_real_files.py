"""The real tables that lie beside the repository, where a clone has them; their figures are those of their sources."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oscar_causal.data.export import export_tables
from oscar_causal.data.importers import ImportOptions, import_tables
from oscar_causal.data.inspect import inspect_dataset
from oscar_causal.data.sequences import read_dataset

REAL = Path(__file__).resolve().parents[4] / "shared" / "data"
pytestmark = pytest.mark.skipif(not REAL.is_dir(), reason="this clone has no real data at ../shared/data")
ALARMS, FINES = REAL / "telecom_alarms", REAL / "traffic_fines"


def rows_of(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_alarms(tmp_path: Path) -> None:
    options = ImportOptions(labels=ALARMS / "18v_seq_labels.csv.gz", subject_column="device_id")
    summary = import_tables([ALARMS / "18v_seq_events.csv.gz"], tmp_path / "one", options)
    assert (summary.sequences, summary.events, summary.event_types) == (5_936, 20_942, 14)
    assert summary.labels == {"A06": 1354, "A11": 2172, "A14": 628, "A15": 95}
    data = read_dataset(tmp_path / "one")
    rows, labels = rows_of(ALARMS / "18v_seq_events.csv.gz"), rows_of(ALARMS / "18v_seq_labels.csv.gz")
    assert data.sequence_ids.to_pylist() == list(dict.fromkeys(row["seq_id"] for row in rows))
    events: dict[str, list[str]] = {}
    for row in rows:
        events.setdefault(row["seq_id"], []).append(row["event"])
    assert [data.events_of(i) for i in range(len(data))] == list(events.values())
    table = {row["seq_id"]: row for row in labels}
    for i, name in enumerate(data.sequence_ids.to_pylist()):
        assert data.subject_ids[i].as_py() == table[name]["device_id"]
        assert data.labels_of(i) == [label for label in summary.labels if table[name][label] == "1"]
    exported = export_tables(tmp_path / "one", tmp_path / "tables")
    again = import_tables([exported.events], tmp_path / "two", exported.import_options)
    assert again.digest == summary.digest


def test_alarms_ask_what_the_device_is(tmp_path: Path, oscar: Callable[..., Any]) -> None:
    words = ["import", ALARMS / "18v_seq_events.csv.gz", "--labels", ALARMS / "18v_seq_labels.csv.gz"]
    line = oscar(*words, "--out", tmp_path / "one").refused("'device_id'", "expected 0 or 1")
    assert "--subject-column" in line


def test_raw_alarms(tmp_path: Path) -> None:
    options = ImportOptions(sequence_column="device_id", time_column="start_timestamp", channels=("end_timestamp",))
    summary = import_tables([ALARMS / "18v_alarms.csv.gz"], tmp_path / "one", options)
    assert (summary.events, summary.event_types, summary.sequences) == (34_838, 18, 55)
    data = read_dataset(tmp_path / "one")
    assert (np.diff(data.times)[np.diff(data.events.rows()) == 0] >= 0).all()


def test_fines(tmp_path: Path) -> None:
    options = ImportOptions(labels=FINES / "seq_labels.csv.gz", time_unit="d")
    summary = import_tables([FINES / "seq_events.csv.gz"], tmp_path / "one", options)
    assert (summary.sequences, summary.events, summary.event_types) == (10_000, 31_337, 10)
    assert summary.labels == {"credit_collection": 3387, "fully_paid": 4354, "dismissed": 140}
    problems = {problem["kind"]: problem for problem in inspect_dataset(tmp_path / "one")["problems"]}
    assert problems["events_everywhere"]["names"] == ("Create Fine",)
    assert problems["inseparable_events"]["names"] == (
        {"events": ["Add penalty", "Insert Fine Notification"], "sequences": 4_635},
    )


def test_raw_fines(tmp_path: Path) -> None:
    options = ImportOptions(channels=("amount", "paymentamount"), static=("article", "vehicleclass"))
    summary = import_tables([FINES / "fines_raw.csv.gz"], tmp_path / "one", options)
    assert (summary.sequences, summary.events, summary.event_types) == (10_000, 34_724, 11)
    data = read_dataset(tmp_path / "one")
    assert data.start[0].as_py().isoformat() == "2006-07-24T00:00:00+00:00"
    assert data.times[:2].tolist() == [0.0, 134 * 86_400.0]
    assert data.static()[0] == {"article": "157.0", "vehicleclass": "A"}
    amounts = [float(row["amount"]) for row in rows_of(FINES / "fines_raw.csv.gz") if row["amount"]]
    assert np.nansum(data.channel("amount")) == pytest.approx(sum(amounts), rel=1e-5)
    assert json.loads((tmp_path / "one" / "dataset.json").read_text())["imported"]["time_unit"] == "timestamp"
