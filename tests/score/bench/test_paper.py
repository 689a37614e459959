"""The paper's numbers: they belong to rows that exist, and what we say of them is true of them."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from oscar_causal.score.bench.paper import paper_cell, paper_numbers, paper_value
from oscar_causal.score.bench.settings import bench_settings
from oscar_causal.verbs.bench import BENCHES

PAPER = paper_numbers()
TABLES = [name for name in BENCHES if name in PAPER]


@pytest.mark.parametrize("name", TABLES)
def test_every_row_of_the_paper_can_be_measured(name: str) -> None:
    bench = import_module(BENCHES[name]).BENCH
    assert bench.name == name
    assert set(PAPER[name]["rows"]) <= set(bench.rows(bench_settings(Path("out"))))
    assert PAPER[name]["source"]
    assert PAPER[name]["settings"]


def harmonic(row: dict[str, list[float]]) -> float:
    precision, recall = row["precision"][0], row["recall"][0]
    return 2 * precision * recall / (precision + recall)


def test_which_rows_print_the_f1_of_the_averages() -> None:
    rows = PAPER["nades"]["rows"]
    for name in ("large c=4", "large c=12", "large c=15"):
        assert rows[name]["f1"][0] == pytest.approx(harmonic(rows[name]), abs=0.015)
    assert PAPER["table-1"]["rows"]["prefix"]["f1"][0] == pytest.approx(
        harmonic(PAPER["table-1"]["rows"]["prefix"]), abs=0.015
    )
    told = PAPER["contradictions"]["f1"]
    for name in ("large c=20", "large c=30", "small c=20"):
        other = harmonic(rows[name])
        assert abs(rows[name]["f1"][0] - other) > 1
        assert f"{rows[name]['f1'][0]:.2f}" in told
        assert f"{other:.2f}" in told


def test_the_times_contradict_each_other_as_told() -> None:
    told = PAPER["contradictions"]["times"]
    rates = [50_000 / 60 / 11.7, 50_000 / 60 / 1.27, 4_000 / 558]
    assert [round(rate) for rate in rates] == [
        int(text) for text in re.findall(r": (\d+), (\d+) and (\d+) seq", told)[0]
    ]


def test_cells() -> None:
    assert paper_cell("sampling", "none", "f1_micro") == "14.07"
    assert paper_cell("nades", "large c=12", "small_sample", "recall") == "31.45 ± 2.23"
    assert paper_cell("nades", "large c=4", "small_sample", "recall") == "–"
    assert paper_cell("table-1", "iamb", "minutes") == "> 4320"
    assert paper_value("sampling", "none", "f1_micro") == (14.07, 0.0)
    assert paper_value("table-1", "iamb", "minutes") is None
