"""`oscar bench outside`: one file, rows that are kept, sets that are not there, folds that cut no subject."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from oscar_causal.data.sequences import read_dataset
from oscar_causal.score.bench.ladder.rows import OUTSIDE, TRAINED
from oscar_causal.score.bench.outside.ground import SETS, OutsideGround

Oscar = Callable[..., Any]


def call(oscar: Oscar, raw: Path, out: Path, *more: object) -> Any:
    sizes = ("--sequences", 200, "--runs", 1, "--workers", 1)
    return oscar("bench", "outside", "--data", raw, "--out", out, *sizes, *more)


def test_every_set_gets_its_rows(oscar: Oscar, raw: Path, tmp_path: Path) -> None:
    out, rows = tmp_path / "out", "everything present,lift*,iamb"
    ran = call(oscar, raw, out, "--rows", rows, "--commit", "abc", "--json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    names = ("everything present", "lift", "lift (tuned)", "iamb")
    assert set(found["rows"]) == {f"{kind}/0/{row}" for kind in SETS for row in names}
    for kind in SETS:
        row = found["rows"][f"{kind}/0/lift"]
        folder = next(out.glob(f"work/outside-{kind.replace(' ', '-')}-*"))
        assert (row["digest"], row["commit"]) == (read_dataset(folder).info["digest"], "abc")
    page = Path(found["files"]["md"]).read_text(encoding="utf-8")
    assert all(f"## {kind}" in page for kind in SETS)
    assert "THP" in page
    assert Path(found["files"]["png"]).read_bytes().startswith(b"\x89PNG")
    assert found["rows"]["telecom/0/everything present"]["pairs"] == 1
    again = call(oscar, raw, out, "--rows", rows, "--missing", "--json")
    assert json.loads(again.out)["rows"] == found["rows"]
    assert "F1" not in again.err  # nothing measured
    other = json.loads(call(oscar, raw, tmp_path / "other", "--rows", rows, "--json").out)
    figures = ("precision", "recall", "f1", "own")
    for key, told in found["rows"].items():
        assert [told[name] for name in figures] == [other["rows"][key][name] for name in figures]


def test_every_row_without_a_network_of_a_set(oscar: Oscar, raw: Path, tmp_path: Path) -> None:
    rows = [row for row in OUTSIDE if row not in TRAINED] + ["pattern reading"]
    ran = call(oscar, raw, tmp_path / "out", "--worlds", "fines", "--rows", ",".join(f"{row[:12]}*" for row in rows))
    assert ran.code == 0, ran.err
    assert all(f"| {row} |" in ran.out for row in rows)


def test_a_set_that_is_not_there_is_skipped_with_one_line(oscar: Oscar, raw: Path, tmp_path: Path) -> None:
    shutil.rmtree(raw / "telecom_alarms")
    (raw / "bpic2011" / "labels.csv.gz").unlink()
    ran = call(oscar, raw, tmp_path / "out", "--rows", "nothing", "--json")
    assert ran.code == 0, ran.err
    assert {key.split("/")[0] for key in json.loads(ran.out)["rows"]} == set(SETS) - {"telecom", "bpic2011"}
    lines = [line for line in ran.err.splitlines() if "skipped" in line]
    assert [line.split(":")[0] for line in lines] == ["telecom", "bpic2011"]
    assert f"no labels.csv.gz in {raw / 'bpic2011'}" in lines[1]
    nothing = call(oscar, tmp_path / "nowhere", tmp_path / "out 2", "--json")
    assert (nothing.code, json.loads(nothing.out)["rows"]) == (0, {})
    assert nothing.err.count("skipped") == len(SETS)


@pytest.mark.parametrize("kind", SETS)
def test_parts_never_cut_a_subject_and_cover_the_scored_pairs(kind: str, raw: Path, tmp_path: Path) -> None:
    ground = OutsideGround(kind, 0, raw, tmp_path, 200)
    ground.make()
    asked = set()
    for part in ground.parts():
        learn, judge, train, test = (
            set(some.subject_ids.to_pylist()) for some in (part.learn, part.judge, part.train, part.test)
        )
        assert not train & test
        assert not learn & judge
        assert learn | judge <= train
        assert {name for name, _ in part.known} <= set(part.judge.sequence_ids.to_pylist())
        asked |= set(part.test.sequence_ids.to_pylist())
    assert {name for name, _ in ground.scored} == asked


def test_data_is_an_option_of_outside_alone(oscar: Oscar, raw: Path, tmp_path: Path) -> None:
    oscar("bench", "table-1", "--data", raw, "--out", tmp_path / "out").refused("--data", "outside")


def test_seeds_kept_for_the_record_are_refused(oscar: Oscar, raw: Path, tmp_path: Path) -> None:
    call(oscar, raw, tmp_path / "out", "--seed", 1000).refused("seed 1000", "record")
