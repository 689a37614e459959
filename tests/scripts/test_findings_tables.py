"""The tables of the page of findings say what the files in docs/results say, and the page is in step with them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = "before\n\n<!-- bench {} -->\n{}<!-- end -->\n\nafter\n"


@pytest.fixture
def tables(script: Callable[[str], ModuleType]) -> Any:
    return script("findings_tables")


def averages(value: float) -> dict[str, Any]:
    figures = dict.fromkeys(("precision", "recall", "f1", "f1_of_means"), value)
    return {name: dict(figures) for name in ("micro", "macro", "weighted", "sample")}


def row(rule: float, why: float, **more: Any) -> dict[str, Any]:
    truth = {name: {"mean": averages(value), "sd": None} for name, value in (("rule_all", rule), ("why", why))}
    sizes = {name: {"3": {"pairs": 7, **averages(value)}} for name, value in (("rule_all", rule), ("why", why))}
    figures = {"truth": truth, "by_size": sizes, "sequences": 300, "pairs": 469, "passes": 12.0}
    model = {"tokens": 111_000_000, "weights": 49_000_000, "label_f1": 0.931}
    return {**figures, "seconds": {"mean": 90.0, "sd": None}, "model": model, **more}


def write(folder: Path, name: str, rows: dict[str, Any]) -> None:
    ledger = {"kind": "bench", "format_version": 1, "bench": name, "rows": rows}
    (folder / f"{name}-hard-seed0.json").write_text(json.dumps(ledger))


@pytest.mark.parametrize(
    ("bench", "name", "wanted"),
    [
        ("table-1", "prefix", "| prefix | 25.0 | 25.0 | 25.0 | 50.0 | 90 | 40.02 ± 1.03 | 11.7 |"),
        ("sampling", "none", "| none | 25.0 | 25.0 | 50.0 | 14.07 | 16.67 |"),
        ("contexts", "prefix N=2", "| prefix N=2 | 25.0 | 50.0 | 300 |"),
        (
            "nades",
            "small c=20",
            "| small c=20 | 111 M | 49.0 M | 25.0 | 25.0 | 25.0 | 50.0 | 93.1 | 29.01 ± 1.10 | 83.60 |",
        ),
        ("rivals", "leave-one-out", "| leave-one-out | 12 | 50.0 | 50.0 | 50.0 |"),
        ("length", "prefix", "| 3 | 7 | 25.0 | 50.0 |"),
    ],
)
def test_a_row_of_the_file_is_a_line_of_the_table(
    tables: Any, tmp_path: Path, bench: str, name: str, wanted: str
) -> None:
    write(tmp_path, bench, {name: row(0.25, 0.5), "unknown row": row(0.9, 0.9)})
    text = PAGE.format(f"{bench}-hard-seed0", "old table\n")
    found = tables.filled(text, tmp_path)
    assert wanted in found.splitlines()
    assert "300 held-out sequences with 469 pairs" in found
    assert "old table" not in found
    assert "90.0" not in found
    assert found.startswith("before\n\n<!-- bench ")
    assert found.endswith("<!-- end -->\n\nafter\n")
    assert tables.filled(found, tmp_path) == found


def test_processor_time_is_shown_where_it_was_measured(tables: Any) -> None:
    assert tables.seconds(row(0, 0)) == "90"
    assert tables.seconds(row(0, 0, cpu_seconds=16.03)) == "16 of processor"


def test_thresholds_are_listed(tables: Any, tmp_path: Path) -> None:
    points = [{"at": k, "truth": row(0.25, 0.5)["truth"]} for k in (0.5, 2.75)]
    write(tmp_path, "threshold", {"prefix": row(0, 0, points=points)})
    found = tables.filled(PAGE.format("threshold-hard-seed0", ""), tmp_path)
    assert "| prefix | k | 0.5: 50.0; 2.75: 50.0 |" in found


def test_without_a_file_there_is_no_table(tables: Any, tmp_path: Path) -> None:
    text = PAGE.format("table-1-hard-seed0", "")
    assert tables.filled(text, tmp_path) == text
    assert tables.filled(PAGE.format("table-1-hard-seed0", "old\n"), tmp_path) == text


def test_the_page_is_in_step_with_its_results(tables: Any) -> None:
    text = (DOCS / "findings.md").read_text(encoding="utf-8")
    assert len(tables.BLOCK.findall(text)) == len(tables.BENCHES)
    assert tables.filled(text, DOCS / "results") == text
