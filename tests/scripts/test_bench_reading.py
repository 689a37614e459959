"""The benchmark of readings: on a small fleet its figures are those of a loop over the same readings."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from oscar_causal.discovery.reading import Read


@pytest.fixture
def bench(script: Callable[[str], ModuleType]) -> Any:
    return script("bench_reading")


def test_a_small_fleet_is_read_from_end_to_end(bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["--fleet", "rough", "--sequences", "1500", "--seed", "3", "--commit", "x", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["bench_reading.py", *words])
    monkeypatch.setattr(bench, "DRAWS", 20)
    bench.main()
    told = json.loads((tmp_path / "reading-rough-seed3.json").read_text())
    assert told["complete"]
    assert 0 < told["test_sequences"] < told["training_sequences"]
    rows = told["tables"]["all"]
    assert rows["presence oracle"]["sample"]["recall"] == 1.0
    assert rows[bench.READ]["sample"]["precision"] > 0.8
    assert rows["iamb, where present"]["first_minus_this"]["difference"] == pytest.approx(
        rows[bench.READ]["sample"]["f1_of_means"] - rows["iamb, where present"]["sample"]["f1_of_means"]
    )
    assert sum(row["events"] for row in told["calibration"]) > 0


def test_calibration_counts_what_was_said(bench: Any) -> None:
    found = {("a", "y"): Read({"A": 0.95, "B": 0.05}, 0.0), ("b", "y"): Read({"A": 0.92}, 0.0), ("c", "y"): None}
    low, high = bench.calibration(found, {("a", "y"): {"A"}, ("b", "y"): {"C"}, ("c", "y"): {"A"}})
    assert (low["events"], low["said"], low["true"]) == (1, 0.05, 0.0)
    assert (high["events"], high["said"], high["true"]) == (2, pytest.approx(0.935), 0.5)
