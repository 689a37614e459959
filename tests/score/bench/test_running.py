"""Rows are chosen by name, added to what is there, and every file can be read after each of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from oscar_causal.data.folders import read_json
from oscar_causal.errors import UsageError
from oscar_causal.score.bench.pages import page, percent, table
from oscar_causal.score.bench.place import Place
from oscar_causal.score.bench.plots import bars, curves, save_plot
from oscar_causal.score.bench.running import Bench, Rows, choose_rows
from oscar_causal.score.bench.settings import BenchSettings, bench_settings

PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True)
class Fixed:
    """A row whose figures are known beforehand."""

    f1: float

    def measure(self, place: Place) -> dict[str, Any]:
        if self.f1 < 0:
            raise UsageError("this row fails")
        return {"f1": self.f1, "sequences": 3, "pairs": 4}


ROWS = {"first": Fixed(0.1), "second N=1": Fixed(0.2), "second N=2": Fixed(0.3), "bad": Fixed(-1)}


def to_page(measured: Rows) -> str:
    body = table(["row", "F1"], [[name, f"{figures['f1']}"] for name, figures in measured.items()])
    return page("table-1", "A title", body, measured, ("times",))


def plot(measured: Rows, path: Path) -> None:
    save_plot(path, lambda axis: axis.plot([figures["f1"] for figures in measured.values()]))


BENCH = Bench("fixed", lambda settings: ROWS, to_page, plot)


def settings_for(out: Path, rows: str, **given: Any) -> BenchSettings:
    return bench_settings(out, quick=True, rows=rows, **given)


def test_rows_accumulate_in_the_order_of_the_table(tmp_path: Path) -> None:
    BENCH(settings_for(tmp_path, "second N=2", commit="abc"))
    found = BENCH(settings_for(tmp_path, "first"))
    assert found["measured"] == ["first"]
    ledger = read_json(Path(found["files"]["json"]))
    assert set(ledger["rows"]) == {"first", "second N=2"}
    assert ledger["rows"]["second N=2"]["provenance"]["commit"] == "abc"
    assert ledger["rows"]["first"]["provenance"]["bench"]["seed"] == 0
    text = Path(found["files"]["md"]).read_text()
    assert text.index("| first |") < text.index("| second N=2 |")
    assert "Numbers of the paper that do not fit together" in text
    assert "commit abc" in text
    assert Path(found["files"]["png"]).read_bytes().startswith(PNG)
    assert {path.name for path in tmp_path.iterdir()} == {f"fixed-demo-seed0.{kind}" for kind in ("json", "md", "png")}


def test_a_row_measured_again_replaces_the_old_one_and_seeds_have_files_of_their_own(tmp_path: Path) -> None:
    BENCH(settings_for(tmp_path, "first", commit="old"))
    BENCH(settings_for(tmp_path, "first", commit="new"))
    BENCH(settings_for(tmp_path, "first", seed=7))
    assert read_json(tmp_path / "fixed-demo-seed0.json")["rows"]["first"]["provenance"]["commit"] == "new"
    assert read_json(tmp_path / "fixed-demo-seed7.json")["rows"]["first"]["provenance"]["bench"]["seed"] == 7


def test_a_failing_row_leaves_the_others(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="this row fails"):
        BENCH(settings_for(tmp_path, "first,bad"))
    assert set(read_json(tmp_path / "fixed-demo-seed0.json")["rows"]) == {"first"}


def test_rows_by_pattern() -> None:
    assert choose_rows(ROWS, None) == list(ROWS)
    assert choose_rows(ROWS, "second*, first") == ["first", "second N=1", "second N=2"]
    for wanted in ("third", "first,th*", ",", ""):
        with pytest.raises(UsageError, match="first, second N=1"):
            choose_rows(ROWS, wanted)


def test_cells_and_tables() -> None:
    part = {"mean": {"micro": {"f1": 0.5}}, "sd": {"micro": {"f1": 0.01}}}
    assert percent(part, "micro", "f1") == "50.0 ± 1.0"
    assert percent({}, "micro", "f1") == "–"
    assert table(["a", "b"], [["x|y", "1"]]) == ["| a | b |", "|---|---:|", "| x&#124;y | 1 |"]


def test_plots_with_gaps(tmp_path: Path) -> None:
    series = {"ours": [(1.0, 0.1), None], "paper: ours": [None, None]}
    save_plot(tmp_path / "bars.png", lambda axis: bars(axis, ["a", "b"], series))
    lines = {"one": [(1.0, 2.0, 0.1), (2.0, 3.0, 0.1)], "none": []}
    save_plot(tmp_path / "lines.png", lambda axes: curves(axes[1], lines, xlabel="x", ylabel="y", log=2), panels=2)
    for name in ("bars.png", "lines.png"):
        assert (tmp_path / name).read_bytes().startswith(PNG)
