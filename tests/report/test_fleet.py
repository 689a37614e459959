"""The fleet pages hold what the population folder holds; what is odd in it is one line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import false_discovery_control

from oscar_causal.errors import FolderError
from oscar_causal.graph.boundary_graph import read_population
from oscar_causal.report.fleet import fleet_rows, held_up, population_pages
from oscar_causal.report.page import embedded
from oscar_causal.report.page_data import page_data
from oscar_causal.report.sources import open_sources


def pages(folder: Path) -> dict[str, Any]:
    return population_pages(folder, read_population(folder))


def test_edges_carry_interval_and_tests(population: Path) -> None:
    strong, against = fleet_rows(read_population(population))
    assert (strong["event"], strong["low"], strong["high"], strong["q"]) == ("A", 0.3, 0.5, 0.001)
    assert (strong["world"], strong["found"], strong["of"]) == (0.002, 15, 30)
    assert (against["inhibits"], against["low"], against["world"]) == (1, None, 0.6)


def test_pages_are_those_of_the_folder(population: Path) -> None:
    found = pages(population)
    assert found["settings"] == {"alpha": 0.05, "delta": 0.05, "window_days": 30}
    assert found["world"] == {"tested": 2, "held_up": 1}
    assert found["expert"] == "<u>book</u>.json"
    assert [(row["a"], row["verdict"]) for row in found["interplay"]][0] == ("engine", "still dependent")
    assert [row["shared"] for row in found["interplay"]] == [["A"], [], ["A"]]
    effects = found["changed_effects"]
    assert (effects["compared"], [item["event"] for item in effects["changed"]]) == (2, ["A"])
    windows = effects["changed"][0]["windows"]
    assert [(w["from"], w["effect"], w["changed"]) for w in windows] == [
        ("2024-01-01", 0.4, False),
        ("2024-02-01", 0.1, True),
    ]
    (rule,) = found["changed_rules"]["changed"]
    assert [(w["precision"], w["precision_elsewhere"], w["rule_here"]) for w in rule["windows"]] == [
        (0.9, None, None),
        (0.4, None, "A & C"),
    ]


def test_a_bare_population_says_that_nobody_looked(population: Path, tmp_path: Path) -> None:
    for name in ("population.json", "boundaries.parquet"):
        shutil.copy(population / name, tmp_path)
    found = pages(tmp_path)
    assert {found[name] for name in ("expert", "interplay", "changed_effects", "changed_rules")} == {None}
    (tmp_path / "population.json").write_text('{"kind": "population", "format_version": 1}')
    assert pages(tmp_path)["settings"] == {"alpha": None, "delta": None, "window_days": None}
    assert pages(tmp_path)["world"] is None


def test_the_page_holds_the_population(place: Path, population: Path) -> None:
    data = page_data(open_sources(place / "results"), population=population)
    assert data["population"]["interplay"][0]["dependence_after"] == 0.3
    assert data["fleet"]["world"] == [0.002, 0.6]
    assert len(data["rules"]) == 3
    assert embedded(data)
    without = page_data(open_sources(place / "results"))
    assert (without["population"], without["rules"], set(without["fleet"]["world"])) == (None, [], {None})


def test_what_holds_up_is_what_scipy_controls() -> None:
    p_values = [0.001, 0.02, 0.045, 0.049, 0.3, 0.012]
    wanted = int((false_discovery_control(p_values) <= 0.05).sum())
    assert held_up([None, *p_values], 0.05) == {"tested": 6, "held_up": wanted}
    assert wanted == 3
    assert held_up([None], 0.05) is None


def _changed(path: Path, change: dict[str, Any]) -> None:
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, **change}))


def _columns(path: Path, **columns: pa.Array | None) -> None:
    """Replace columns of a table; None takes one out."""
    table = pq.read_table(path)
    for name, values in columns.items():
        place = table.column_names.index(name)
        table = table.remove_column(place) if values is None else table.set_column(place, name, values)
    pq.write_table(table, path)


def test_odd_columns_are_one_line(population: Path, tmp_path: Path) -> None:
    def refused(expected: str) -> None:
        with pytest.raises(FolderError) as told:
            pages(tmp_path / "p")
        assert expected in str(told.value)
        assert "\n" not in str(told.value)

    def again() -> Path:
        shutil.rmtree(tmp_path / "p", ignore_errors=True)
        return Path(shutil.copytree(population, tmp_path / "p"))

    _columns(again() / "boundaries.parquet", verdict=None)
    refused("boundaries.parquet: expected a column 'verdict', found label, event")
    _columns(again() / "boundaries.parquet", effect=pa.array(["much", "little", "none"]))
    refused("boundaries.parquet: column 'effect': expected double, found string")
    _columns(again() / "boundaries.parquet", tested=pa.array([[1], [2], [3]]))
    refused("column 'tested': expected int64, found list")
    _columns(again() / "boundaries.parquet", label=pa.array(["engine", None, "engine"]))
    refused("column 'label': expected a value in every row, found a null")
    table = pq.read_table(again() / "boundaries.parquet")
    pq.write_table(table.append_column("event", table["event"]), tmp_path / "p" / "boundaries.parquet")
    refused("boundaries.parquet: missing, damaged or no Parquet file")
    _columns(again() / "drift.parquet", changed=None)
    refused("drift.parquet: expected a column 'changed'")
    _columns(again() / "rule_drift.parquet", precision=pa.array(["a", "b"]))
    refused("rule_drift.parquet: column 'precision'")
    (again() / "drift.parquet").write_bytes(b"no table")
    refused("drift.parquet: missing, damaged or no Parquet file")
    _changed(again() / "interplay.json", {"pairs": [{"label_a": "x"}]})
    refused("interplay.json: pairs: label_b: expected text, found None")
    _changed(again() / "interplay.json", {"pairs": 3})
    refused("pairs: expected a list, found 3")
    _changed(again() / "population.json", {"settings": {"boundaries": {"alpha": "high"}}})
    refused("alpha: expected a number, found 'high'")
