"""`oscar import` as people type it."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from oscar_causal.data.sequences import read_dataset

CODES = """vin,time,code,km,"a,b",plant
car 1,0,P0A1F,10,x,Kiel
car 1,60,U0428,,x,Kiel
car 2,5,P0A1F,7.5,,Bonn
car 2,zebra,U0428,8,,Bonn
"""
PATTERNS = "vin,pattern,time\ncar 1,steering degraded,120\n"


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    (tmp_path / "codes.csv").write_text(CODES)
    (tmp_path / "patterns.csv").write_text(PATTERNS)
    (tmp_path / "names.csv").write_text("name,description\nP0A1F,drive motor\n")
    (tmp_path / "names.json").write_text('{"P0A1F": "drive motor"}')
    return tmp_path


def test_the_summary_for_people(tables: Path, oscar: Callable[..., Any]) -> None:
    out = tables / "fleet"
    words = ["import", tables / "codes.csv", "--labels", tables / "patterns.csv", "--out", out]
    oscar(*words).refused(
        "codes.csv: row 4, column 'time': expected a number of seconds, got \"zebra\"", "--skip-bad-rows"
    )
    assert oscar(*words, "--skip-bad-rows").out.splitlines() == [
        f"{out}: 3 events of 2 types, 2 sequences of 2 subjects, 1 labels",
        "1 rows in rejected.csv, the first:",
        f"  {tables / 'codes.csv'}: row 4, column 'time': expected a number of seconds, got \"zebra\"",
    ]
    assert (out / "rejected.csv").read_text().splitlines()[1].endswith(",zebra")


def test_the_summary_for_machines(tables: Path, oscar: Callable[..., Any]) -> None:
    words = ["import", tables / "codes.csv", "--labels", tables / "patterns.csv", "--skip-bad-rows", "--gap", 60]
    ran = oscar(*words, "--out", tables / "fleet", "--json")
    found = json.loads(ran.out)
    assert ran.err == ""
    assert (found["sequences"], found["rejected"], found["rows"], found["events_left_out"]) == (2, 1, 4, 0)
    assert found["first_rejected"][0]["row"] == 4
    assert found["labels"] == {"steering degraded": 1}
    found = json.loads(oscar(*words[:-1], 61, "--out", tables / "fleet", "--json", "--force").out)
    assert (found["events_left_out"], found["dropped_by_gap"]) == (1, 0)
    printed = oscar(*words[:-1], 999, "--out", tables / "fleet", "--force").out
    assert "--gap left out 2 events and 1 whole sequences (named in rejected.csv)" in printed


@pytest.mark.parametrize("names", ["names.csv", "names.json"])
def test_lists_of_columns_and_descriptions(tables: Path, oscar: Callable[..., Any], names: str) -> None:
    words = ["import", tables / "codes.csv", "--skip-bad-rows", "--out", tables / "fleet", "--names", tables / names]
    ran = oscar(*words, "--static", '"a,b",plant', "--channels", "km")
    assert ran.code == 0, ran.err
    data = read_dataset(tables / "fleet")
    assert data.static() == [{"a,b": "x", "plant": "Kiel"}, {"plant": "Bonn"}]
    assert [None if x != x else x for x in data.channel("km").tolist()] == [10.0, None, 7.5]
    assert json.loads((tables / "fleet" / "names.json").read_text()) == {"P0A1F": "drive motor"}
    assert oscar(*words, "--static", "plant", "--static", "km", "--force").code == 0
    assert read_dataset(tables / "fleet").static()[0] == {"plant": "Kiel", "km": "10"}


@pytest.mark.parametrize(
    "content", ["name\nA\n", "name,description\nA,x\nA,y\n", "name,description\n,x\n", "name,description\nA\n"]
)
def test_bad_descriptions(tables: Path, oscar: Callable[..., Any], content: str) -> None:
    (tables / "names.csv").write_text(content)
    words = ["import", tables / "codes.csv", "--out", tables / "fleet", "--names", tables / "names.csv"]
    oscar(*words).refused("names.csv")
    (tables / "bad.json").write_text('{"A": 1}')
    oscar(*words[:-1], tables / "bad.json").refused("bad.json", "'A'")


def test_several_files_and_a_delimiter(tables: Path, oscar: Callable[..., Any]) -> None:
    (tables / "one.txt").write_text("car;t;code\nx;1;A\ny;5;A\n")
    (tables / "two.txt").write_text("code;car;t\nB;x;0\n")
    oscar("import", tables / "one.txt", tables / "two.txt", "--delimiter", ";", "--out", tables / "fleet")
    data = read_dataset(tables / "fleet")
    assert [data.events_of(i) for i in range(len(data))] == [["B", "A"], ["A"]]
    (tables / "two.txt").write_text("what;car;t\nB;x;0\n")
    oscar("import", tables / "one.txt", tables / "two.txt", "--delimiter", ";", "--out", tables / "other").refused(
        "two.txt", "expected a column 'code'"
    )


GERMAN = """Fahrzeug;Zeitpunkt;Fehlercode;Kilometerstand
WDB 1;2026-03-01T06:00:00+01:00;P0A1F;12345,5
WDB 1;2026-03-01T05:01:30Z;U0428;
WDB 2;2026-03-29T01:59:00+01:00;P0A1F;7
WDB 2;2026-03-29T03:01:00+02:00;U0428;8,25
WDB 2;zebra;U0428;8,5
"""
GERMAN_COLUMNS = ["--sequence-column", "Fahrzeug", "--time-column", "Zeitpunkt", "--event-column", "Fehlercode"]


@pytest.fixture
def german(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As a German spreadsheet writes it: a byte order mark, semicolons, decimal commas; one label was left empty."""
    monkeypatch.chdir(tmp_path)
    Path("codes.csv").write_text(GERMAN, encoding="utf-8-sig")
    Path("patterns.csv").write_text("Fahrzeug;Fehlerbild\nWDB 1;Lenkung gestört\nWDB 2;\n", encoding="utf-8")
    return tmp_path


def test_a_newcomer_with_a_german_spreadsheet_is_led_to_a_dataset(german: Path, oscar: Callable[..., Any]) -> None:
    """Each line says what to add for the next step; the last one reads every cell as it was meant."""
    words = ["import", "codes.csv", "--labels", "patterns.csv", "--skip-bad-rows", "--out", "fleet"]
    oscar(*words).refused("'Fahrzeug', 'Zeitpunkt'", "--sequence-column, --time-column, --event-column")
    words += GERMAN_COLUMNS
    oscar(*words).refused("patterns.csv: row 1, column 'Fehlerbild'", "--label-column Fehlerbild")
    words += ["--label-column", "Fehlerbild", "--channels", "Kilometerstand"]
    ran = oscar(*words)  # without --decimal only the rows without a fraction are good
    assert "rows in rejected.csv" in ran.out
    assert "see --decimal" in ran.out
    assert oscar(*words, "--decimal", ",", "--force").code == 0
    fleet = read_dataset("fleet")
    assert fleet.times.tolist() == [0.0, 90.0, 0.0, 120.0]  # across the hour that summer time leaves out
    assert fleet.channel("Kilometerstand").tolist() == pytest.approx([12345.5, float("nan"), 7.0, 8.25], nan_ok=True)
    assert [fleet.labels_of(0), fleet.labels_of(1)] == [["Lenkung gestört"], []]
    assert "zebra" in Path("fleet/rejected.csv").read_text()


def test_when_every_row_is_bad_the_line_says_why(german: Path, oscar: Callable[..., Any]) -> None:
    Path("codes.csv").write_text(GERMAN.replace("7\n", "7,0\n").replace("U0428;\n", "U0428;1,5\n"))
    words = ["import", "codes.csv", "--skip-bad-rows", "--out", "fleet", *GERMAN_COLUMNS]
    oscar(*words, "--channels", "Kilometerstand").refused("among 5 bad ones", "row 1", '"12345,5"', "--decimal")
    oscar(*words, "--decimal", ";").refused("--decimal", "';'")


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_what_separates_cells_is_seen_from_the_header(
    tmp_path: Path, oscar: Callable[..., Any], delimiter: str
) -> None:
    rows = [["car", "time", 'the "code" read'], ["a;b", "0", "x,y"], ["a;b", "1", "p|q"]]
    with (tmp_path / "codes.csv").open("w", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows(rows)
    words = ["import", tmp_path / "codes.csv", "--event-column", 'the "code" read', "--out", tmp_path / "fleet"]
    assert oscar(*words).code == 0
    fleet = read_dataset(tmp_path / "fleet")
    assert (fleet.sequence_ids.to_pylist(), fleet.events_of(0)) == (["a;b"], ["x,y", "p|q"])


def test_a_number_with_a_decimal_comma_may_be_a_time(tmp_path: Path, oscar: Callable[..., Any]) -> None:
    (tmp_path / "codes.csv").write_text("car;time;code\na;0,5;x\na;1,75;y\n")
    words = ["import", tmp_path / "codes.csv", "--out", tmp_path / "fleet", "--decimal", ",", "--keep-origin"]
    assert oscar(*words).code == 0
    assert read_dataset(tmp_path / "fleet").times.tolist() == [0.5, 1.75]
