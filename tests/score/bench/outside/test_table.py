"""`oscar bench outside`: files for each set, rows that are kept, sets that are not there."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from oscar_causal.data.sequences import read_dataset
from oscar_causal.score.bench.outside.table import ROWS, SETS

Oscar = Callable[..., Any]
CHEAP = ",".join(f"{name}: {row}" for name in SETS for row in ("everything present", "lift*", "iamb"))


def call(oscar: Oscar, raw: Path, out: Path, *more: object) -> Any:
    return oscar("bench", "outside", "--data", raw, "--out", out, "--sequences", 200, "--device", "cpu", *more)


def test_every_set_gets_its_files(oscar: Oscar, raw: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ran = call(oscar, raw, out, "--rows", CHEAP, "--commit", "abc", "--json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert list(found) == list(SETS)
    for name, part in found.items():
        assert part["measured"] == ["everything present", "lift", "lift (tuned)", "iamb"]
        made = part["rows"]["lift"]["provenance"]
        folder = next(out.glob(f"work/outside-{name.replace(' ', '-')}-*"))
        assert made["dataset"] == read_dataset(folder).info["digest"]
        assert (made["commit"], made["bench"]["seed"]) == ("abc", 0)
        page = Path(part["files"]["md"]).read_text(encoding="utf-8")
        assert "| lift (tuned) |" in page
        assert f"{100 * part['rows']['lift']['f1_of_means']:.1f}" in page
        assert Path(part["files"]["png"]).read_bytes().startswith(b"\x89PNG")
    assert found["telecom"]["rows"]["everything present"]["pairs"] == 1
    assert "THP" in Path(found["telecom"]["files"]["md"]).read_text(encoding="utf-8")
    again = json.loads(call(oscar, raw, out, "--rows", CHEAP, "--commit", "abc", "--missing", "--json").out)
    assert all(not part["measured"] and len(part["kept"]) == 4 for part in again.values())
    figures = ("precision", "recall", "f1_of_means", "own")
    other = json.loads(call(oscar, raw, tmp_path / "other", "--rows", CHEAP, "--json").out)
    for name, part in found.items():
        for row, told in part["rows"].items():
            assert [told[key] for key in figures] == [other[name]["rows"][row][key] for key in figures]


def test_every_row_of_a_set(oscar: Oscar, raw: Path, tmp_path: Path) -> None:
    ran = call(oscar, raw, tmp_path / "out", "--rows", "fines: *")
    assert ran.code == 0, ran.err
    assert all(f"| {row} |" in ran.out for row in ROWS)


def test_a_set_that_is_not_there_is_skipped_with_one_line(oscar: Oscar, raw: Path, tmp_path: Path) -> None:
    shutil.rmtree(raw / "telecom_alarms")
    (raw / "bpic2011" / "labels.csv.gz").unlink()
    ran = call(oscar, raw, tmp_path / "out", "--rows", "*: nothing", "--json")
    assert ran.code == 0, ran.err
    assert set(json.loads(ran.out)) == set(SETS) - {"telecom", "bpic2011"}
    lines = [line for line in ran.err.splitlines() if "skipped" in line]
    assert [line.split(":")[0] for line in lines] == ["telecom", "bpic2011"]
    assert f"no labels.csv.gz in {raw / 'bpic2011'}" in lines[1]
    nothing = call(oscar, tmp_path / "nowhere", tmp_path / "out 2", "--json")
    assert (nothing.code, json.loads(nothing.out)) == (0, {})
    assert nothing.err.count("skipped") == len(SETS)


def test_data_is_an_option_of_outside_alone(oscar: Oscar, raw: Path, tmp_path: Path) -> None:
    oscar("bench", "table-1", "--data", raw, "--out", tmp_path / "out").refused("--data", "outside")


def test_seeds_kept_for_the_record_are_refused(oscar: Oscar, raw: Path, tmp_path: Path) -> None:
    call(oscar, raw, tmp_path / "out", "--seed", 1000).refused("seed 1000", "record")


def test_time_ends_between_rows(oscar: Oscar, raw: Path, tmp_path: Path) -> None:
    found = json.loads(call(oscar, raw, tmp_path / "out", "--rows", "fines: *", "--until", 0, "--json").out)
    assert found["fines"]["left_out"] == list(ROWS)
    assert found["fines"]["files"] == {}
