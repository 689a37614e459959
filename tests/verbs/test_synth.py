"""`oscar synth`: JSON, the summary, options, and one clear line for what cannot be."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Oscar = Callable[..., Any]


def test_json_is_the_whole_of_stdout(oscar: Oscar, tmp_path: Path) -> None:
    out = tmp_path / "fleet"
    ran = oscar("synth", "--preset", "demo", "--seed", 4, "--sequences", 30, "--out", out, "--json")
    assert ran.code == 0
    told = json.loads(ran.out)
    assert told["sequences"] == 30
    assert told["generator"]["seed"] == 4
    assert told["bayes"]["weighted_f1"] == 1
    assert json.loads((out / "dataset.json").read_text()).items() <= told.items()


def test_options_reach_the_config(oscar: Oscar, tmp_path: Path) -> None:
    options = ["--sequences", 40, "--event-types", 400, "--labels", 5, "--length", 32, "--null", "--workers", 1]
    knobs = ["--set", "lost_labels=0.25", "--set", "boundary_sizes=1:1,2:3"]
    ran = oscar("synth", "--preset", "demo", *options, *knobs, "--out", tmp_path / "fleet", "--json")
    assert ran.code == 0, ran.err
    config = json.loads(ran.out)["generator"]["config"]
    assert (config["sequences"], config["event_types"], config["labels"]) == (40, 400, 5)
    assert (config["mean_length"], config["sd_length"]) == (32, 10)  # the preset's ratio of spread to mean
    assert (config["null"], config["lost_labels"], config["boundary_sizes"]) == (True, 0.25, {"1": 1, "2": 3})


def test_a_world_is_two_datasets_with_their_truth(oscar: Oscar, tmp_path: Path) -> None:
    options = ["--world", "static", "--seed", 3, "--sequences", 40, "--test", 30, "--out", tmp_path / "world"]
    ran = oscar("synth", *options, "--json")
    assert ran.code == 0, ran.err
    told = json.loads(ran.out)
    assert told["pairs"] >= told["pairs_with_cause"] > 0
    parts = [json.loads((tmp_path / "world" / part / "dataset.json").read_text()) for part in ("train", "test")]
    assert [part["sequences"] for part in parts] == [40, 30]
    assert parts[1]["truth"]["decoy_share"] == told["decoy_share"]


def test_worlds_are_listed_and_take_no_knobs(oscar: Oscar, tmp_path: Path) -> None:
    assert "hidden-driver" in oscar("synth", "--worlds").out
    for wrong in (["--world", "xor", "--labels", 3], ["--test", 5], ["--world", "unheard"]):
        ran = oscar("synth", *wrong, "--out", tmp_path / "w")
        assert ran.code == 2
        assert len(ran.err.splitlines()) == 1


def test_the_summary_is_for_people(oscar: Oscar, tmp_path: Path) -> None:
    ran = oscar("synth", "--sequences", 30, "--out", tmp_path / "fleet")
    assert ran.code == 0
    for words in ("sequences", "presence oracle F1", "best possible weighted F1"):
        assert words in ran.out


def test_knobs_are_listed_without_an_out(oscar: Oscar) -> None:
    ran = oscar("synth", "--knobs")
    assert ran.code == 0
    assert "what it does" in " ".join(ran.out.split())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--preset", "huge"], ["preset", "demo, small, paper, hard, temporal", "'huge'"]),
        (["--sequences", 0], ["sequences", "from 1", "got 0"]),
        (["--event-types", 20], ["event_types", "got 20"]),
        (["--labels", -1], ["labels", "got -1"]),
        (["--length", "nan"], ["mean_length", "nan"]),
        (["--seed", -2], ["seed", "got -2"]),
        (["--workers", 0], ["workers", "got 0"]),
        (["--set", "colour=red"], ["colour", "a knob among"]),
        (["--set", "drift=often"], ["drift=often", "a number"]),
        (["--set", "drift=7"], ["drift", "from 0 to 1", "got 7"]),
        (["--set", "labels=3", "--labels", 3], ["labels", "once"]),
        (["--set", "mean_length=30", "--length", 30], ["mean_length", "once"]),
    ],
)
def test_bad_options_are_one_line(oscar: Oscar, tmp_path: Path, options: list[Any], words: list[str]) -> None:
    oscar("synth", *options, "--out", tmp_path / "fleet").refused(*words)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_out_is_refused(oscar: Oscar, tmp_path: Path) -> None:
    (tmp_path / "fleet").mkdir()
    oscar("synth", "--sequences", 30, "--out", tmp_path / "fleet").refused("fleet", "--force")
    assert oscar("synth", "--sequences", 30, "--out", tmp_path / "fleet", "--force").code == 0
