"""Rows are kept, taken up again, and measured on the worlds that were asked for."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from oscar_causal.errors import MissingExtra, UsageError
from oscar_causal.score.bench.label_models import measuring
from oscar_causal.score.bench.label_models.measuring import LabelSettings, run_labels

ROWS = ("base rate", "true P")


@pytest.fixture
def settings(tmp_path: Path) -> LabelSettings:
    return LabelSettings(tmp_path / "out", tmp_path / "work", ("static",), (5,), ROWS, train=150, test=60, commit="c0")


def test_rows_are_measured_once(settings: LabelSettings) -> None:
    said: list[str] = []
    first = run_labels(settings, said.append)
    assert set(first["rows"]) == {"static/5/base rate", "static/5/true P"}
    assert first["rows"]["static/5/true P"]["commit"] == "c0"
    assert [line.split(":")[0] for line in said] == ["static/5", "static/5/base rate", "static/5/true P"]
    for kind in ("json", "md", "png"):
        assert Path(first["files"][kind]).stat().st_size > 300
    page = Path(first["files"]["md"]).read_text()
    assert "| static/5 | 0.00 (0.00 to 0.00) | 1.00 (1.00 to 1.00) |" in page
    said.clear()
    again = run_labels(replace(settings, commit="c1", steps=7), said.append)  # steps: neither row is a network
    assert said == ["static/5: there already"]
    assert again["rows"] == first["rows"]


def test_other_sequences_are_measured_again(settings: LabelSettings) -> None:
    first = run_labels(replace(settings, rows=ROWS[:1]))
    other = run_labels(replace(settings, rows=ROWS[:1], train=160))
    rows = [found["rows"]["static/5/base rate"] for found in (first, other)]
    assert rows[0]["digests"]["test"] == rows[1]["digests"]["test"]
    assert rows[0]["digests"]["train"] != rows[1]["digests"]["train"]


def test_rows_whose_package_is_missing_are_skipped(settings: LabelSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(module: str, what: str) -> None:
        raise MissingExtra(f"{what} needs the package {module}")

    monkeypatch.setattr(measuring, "load_extra", missing)
    said: list[str] = []
    found = run_labels(replace(settings, rows=("base rate", "boosted trees")), said.append)
    assert set(found["rows"]) == {"static/5/base rate"}
    assert "skipped: row 'boosted trees' needs the package sklearn" in said


def test_what_is_kept_for_the_record_needs_a_prediction(settings: LabelSettings) -> None:
    with pytest.raises(UsageError, match="seed 1000: is kept for the record"):
        replace(settings, seeds=(1000,))
    with pytest.raises(UsageError, match="world network: is kept for the record"):
        replace(settings, worlds=("network",))
    run_labels(replace(settings, seeds=(1000,), rows=ROWS[:1], record="base rates have skill 0"))
    lines = (settings.out / "record.jsonl").read_text().splitlines()
    assert [(json.loads(line)["key"], json.loads(line)["skill"]) for line in lines] == [("static/1000/base rate", 0.0)]
