"""Make, train, discover, explain and score through the command, small enough to be quick; and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Oscar = Callable[..., Any]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which `oscar demo` has run on a very small fleet."""
    return tmp_path_factory.mktemp("work") / "demo"


@pytest.fixture
def demo(oscar: Oscar, work: Path) -> Path:
    if not work.exists():
        ran = oscar(
            *f"demo --out {work} --sequences 400 --steps 12 --contexts 24 --explain 12 --json".split(),
        )
        assert ran.code == 0, ran.err
        (work / "demo.json").write_text(ran.out)
    return work


def test_demo_reports_every_stage(demo: Path) -> None:
    figures = json.loads((demo / "demo.json").read_text())
    assert figures["sequences"] == 400
    assert figures["explained"] == 12
    assert set(figures["why"]) == {"intervention", "prefix"}
    for scores in figures["why"].values():
        assert 0 <= scores["sample"]["f1_of_means"] <= 1
    assert {path.name for path in demo.iterdir()} == {
        "fleet",
        "model",
        "intervention",
        "prefix",
        "page.html",
        "demo.json",
    }


def test_discover_and_score(oscar: Oscar, demo: Path, tmp_path: Path) -> None:
    words = [demo / "model", demo / "fleet", "--out", tmp_path / "r", "--held-out", "--contexts", "16", "--json"]
    found = oscar("discover", *map(str, words))
    assert found.code == 0, found.err
    summary = json.loads(found.out)
    assert summary["explained"] > 0
    assert summary["seen"] == 0
    scored = json.loads(oscar("score", str(tmp_path / "r"), "--json").out)
    assert {"why", "why_necessary", "rule_present", "rule_all"} == set(scored["truth"])
    oscar("discover", *map(str, words)).refused("exists already")


def test_explain_from_dataset_and_file(oscar: Oscar, demo: Path, tmp_path: Path) -> None:
    fleet, model = str(demo / "fleet"), str(demo / "model")
    told = oscar("explain", model, "s0000000", "--dataset", fleet, "--contexts", "16")
    assert told.code == 0, told.err
    (tmp_path / "one.json").write_text(json.dumps({"events": ["X", "Y", "X"], "labels": []}))
    told = oscar("explain", model, str(tmp_path / "one.json"), "--contexts", "16", "--json")
    assert told.code == 0, told.err
    assert isinstance(json.loads(told.out), list)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("explain", "MODEL", "nobody", "--dataset", "FLEET"), "nobody"),
        (("explain", "MODEL", "missing.json"), "missing.json"),
        (("discover", "MODEL", "FLEET", "--out", "OUT", "--alpha", "3"), "alpha"),
        (("discover", "MODEL", "FLEET", "--out", "OUT", "--contexts", "3"), "contexts"),
        (("discover", "MODEL", "FLEET", "--out", "OUT", "--estimator", "magic"), "magic"),
        (("discover", "MODEL", "FLEET", "--out", "OUT", "--label", "no such label"), "no such label"),
        (("discover", "FLEET", "FLEET", "--out", "OUT"), "config.json"),
        (("score", "FLEET"), "run.json"),
    ],
)
def test_mistakes_are_one_line(oscar: Oscar, demo: Path, tmp_path: Path, words: tuple[str, ...], expected: str) -> None:
    places = {"MODEL": demo / "model", "FLEET": demo / "fleet", "OUT": tmp_path / "out"}
    oscar(*(str(places.get(word, word)) for word in words)).refused(expected)
    assert not list(tmp_path.iterdir())
