"""`oscar bench` through the command: make, train, discover and score, then every page from a ready model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from oscar_causal.verbs.bench import BENCHES

Oscar = Callable[..., Any]
ROWS = {
    "table-1": "prefix,intervention,iamb",
    "length": "prefix",
    "nades": "large c=4,large c=30",
    "sampling": "none,top-k=35 p=0.8",
    "contexts": "prefix N=2,prefix N=4",
    "threshold": "prefix",
}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kept")


def small(kept: Path, out: Path) -> list[object]:
    """Options of a bench that is over in seconds; the fleet and the model are made once for all tests here."""
    sizes = {"sequences": 240, "steps": 6, "test": 6, "runs": 2, "time-limit": 20}
    options = [word for key, value in sizes.items() for word in (f"--{key}", value)]
    return ["--quick", "--out", out, "--work", kept, "--device", "cpu", "--workers", 1, *options]


@pytest.mark.parametrize("name", ROWS)
def test_every_bench_writes_its_files(oscar: Oscar, kept: Path, tmp_path: Path, name: str) -> None:
    ran = oscar("bench", name, *small(kept, tmp_path), "--rows", ROWS[name], "--commit", "abc", "--json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert found["measured"] == ROWS[name].split(",")
    for row in found["rows"].values():
        assert row["provenance"]["commit"] == "abc"
        assert row["pairs"] > 0
    page = Path(found["files"]["md"]).read_text(encoding="utf-8")
    assert "The paper's settings" in page
    assert "paper" in page
    assert Path(found["files"]["png"]).stat().st_size > 1000
    assert {path.suffix for path in tmp_path.iterdir()} == {".json", ".md", ".png"}


def test_all_makes_every_table_from_one_fleet_and_model(oscar: Oscar, kept: Path, tmp_path: Path) -> None:
    rows = "prefix,none,prefix N=2,large c=15,intervention N=16"
    call = ["bench", "all", *small(kept, tmp_path), "--runs", 1, "--rows", rows, "--missing", "--json"]
    ran = oscar(*call)
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    measured = {name: part["measured"] for name, part in found.items()}
    assert measured == {
        "table-1": ["prefix"],
        "length": ["prefix"],
        "sampling": ["none"],
        "contexts": ["prefix N=2", "intervention N=16"],
        "threshold": ["prefix"],
        "nades": ["large c=15"],
        "rivals": ["prefix"],
    }
    assert len(list(kept.glob("model-*"))) == 1  # that of the other tests here, too
    assert "table-1, prefix" in ran.err
    again = oscar(*call[:-1])
    assert "measured now" not in again.out
    assert "there already: prefix N=2, intervention N=16" in again.out
    page = (tmp_path / "contexts-demo-seed0.md").read_text(encoding="utf-8")
    oscar(*call[:-2], "--until", 0)
    assert (tmp_path / "contexts-demo-seed0.md").read_text(encoding="utf-8") == page
    late = oscar("bench", "all", *small(kept, tmp_path / "new"), "--until", 0)
    assert "left out, for time: none, permutation" in late.out
    assert not list((tmp_path / "new").glob("*.json"))


def test_the_page_is_shown(oscar: Oscar, kept: Path, tmp_path: Path) -> None:
    ran = oscar("bench", "sampling", *small(kept, tmp_path), "--rows", "none")
    assert "| none |" in ran.out
    assert "14.07" in ran.out  # the paper's, beside ours
    assert "measured now: none" in ran.out


def test_mistakes_are_one_line(oscar: Oscar, tmp_path: Path) -> None:
    out = tmp_path / "out"
    oscar("bench", "table-9", "--out", out).refused("table-9", *BENCHES)
    oscar("bench", "table-1", "--out", out, "--rows", "magic").refused("magic", "prefix")
    oscar("bench", "all", "--out", out, "--rows", "magic,prefix").refused("magic", "prefix")
    oscar("bench", "table-1", "--out", out, "--quick", "--test", "0").refused("test")
    oscar("bench", "table-1", "--out", out, "--quick", "--until", "-1").refused("until")
    oscar("bench", "length", "--out", out, "--fleet", "moon").refused("moon")
    oscar("bench", "length", "--out", out, "--dataset", tmp_path / "nowhere").refused("nowhere")
    oscar("bench", "length", "--out", out, "--quick", "--device", "moon").refused("--device", "moon")
    oscar("bench", "length", "--out", out, "--quick", "--workers", "0").refused("workers")
    oscar("bench", "length", "--out", out, "--quick", "--seed", "-1").refused("seed")
    assert not out.exists() or not list(out.glob("*.json"))


def test_options_that_a_bench_would_not_look_at_are_refused(oscar: Oscar, tmp_path: Path) -> None:
    out = ["--quick", "--out", tmp_path / "out", "--device", "cpu"]
    oscar("bench", "length", *out, "--estimator", "a:b").refused("--estimator", "table-1 or all", "length")
    oscar("bench", "table-1", *out, "--sweep").refused("--sweep", "speed")
    oscar("bench", "speed", *out, "--missing").refused("--missing")
    oscar("bench", "speed", *out, "--until", "0").refused("--until")
    oscar("bench", "speed", *out, "--model", tmp_path / "m").refused("--model and --dataset", "both or neither")
    oscar("bench", "speed", *out, "--dataset", tmp_path / "d").refused("--model and --dataset", "both or neither")
    assert not (tmp_path / "out").exists()


def test_labels_run_on_worlds(oscar: Oscar, tmp_path: Path) -> None:
    sizes = ["--sequences", 150, "--test", 60, "--seed", 5, "--workers", 1, "--device", "cpu"]
    call = ["bench", "labels", "--out", tmp_path, "--worlds", "static", *sizes, "--rows", "base*"]
    ran = oscar(*call, "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["rows"]["static/5/base rate"]["skill"] == 0.0
    ran = oscar(*call)
    assert "| static/5 | 0.00 (0.00 to 0.00) |" in ran.out
    assert "static/5: there already" in ran.err
    ran = oscar("bench", "labels", "--out", tmp_path, "--worlds", "network")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "kept for the record" in ran.err
