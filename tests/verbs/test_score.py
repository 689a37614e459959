"""`oscar score` through the command: one folder, several, comparisons, mistakes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from oscar_causal.data.rules import parse, write_rules
from oscar_causal.data.writer import dataset_writer
from oscar_causal.discovery.boundary import Boundary, EventEvidence
from oscar_causal.discovery.results import ResultsWriter

Oscar = Callable[..., Any]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fleet of six cars, and three results for it: one right, one that finds the wrong event, one both."""
    folder = tmp_path_factory.mktemp("score")
    rows = [{"sequence_id": f"s{k}", "events": ["A", "B", "C"], "times": [0, 1, 2], "labels": ["x"]} for k in range(6)]
    with dataset_writer(folder / "fleet") as writer:
        writer.write(pa.Table.from_pylist(rows))
        write_rules(writer.folder / "rules.json", {"x": parse("A & B")})
    by_test, by_score = (
        EventEvidence(event, (0,), "cause", 0.5, q_value=q, accepted_by=by)  # type: ignore[arg-type]
        for event, q, by in (("C", 0.01, "test"), ("B", 0.3, "score"))
    )
    right = EventEvidence("A", (0,), "cause", 0.5, q_value=0.01)
    for name, evidence in (("right", (right,)), ("wrong", (by_test,)), ("mixed", (by_test, by_score))):
        run = {"estimator": name, "dataset": {"path": str(folder / "fleet")}, "fingerprint": name}
        results = ResultsWriter(folder / name, run)
        results.write_shard(0, [Boundary(f"s{k}", "x", True, 0.9, evidence) for k in range(6)])
        results.finish(seconds=1.0)
    return folder


def test_one_folder(oscar: Oscar, work: Path) -> None:
    scores = json.loads(oscar("score", work / "right", "--folds", "2", "--json").out)
    assert scores["truth"]["rule_present"]["sample"]["recall"] == 0.5
    assert scores["truth"]["rule_present"]["over_folds"]["sd"]["sample"]["recall"] == 0.0
    told = oscar("score", work / "right", "--folds", "2", "--details")
    assert (told.code, told.err) == (0, "")
    for words in (
        "rule_present",
        "mean ± sd over folds",
        "by causes",
        "by size",
        "by frequency",
        "by label (",
        "controls",
    ):
        assert words in told.out


def test_several_folders(oscar: Oscar, work: Path) -> None:
    found = json.loads(oscar("score", work / "right", work / "wrong", "--compare", "--draws", "20", "--json").out)
    (difference,) = found["differences"]
    figure = difference["truth"]["rule_all"]["weighted"]["recall"]
    assert figure == {"difference": -0.5, "low": -0.5, "high": -0.5}
    told = oscar("score", work / "right", work / "wrong", "--compare", "--draws", "20")
    assert "2: wrong minus 1: right" in told.out
    assert "mean ± sd over 2 results" in oscar("score", work / "right", work / "right").out
    told = oscar("score", work / "right", work / "wrong", "--details", "--folds", "2").out
    for number, name in ((1, "right"), (2, "wrong")):
        for words in ("mean ± sd over folds", "by causes (sample)", "by label (rule_present)"):
            assert f"{number}: {name}: {words}" in told


def test_mistakes_are_one_line(oscar: Oscar, work: Path) -> None:
    oscar("score", work / "fleet").refused("run.json")
    oscar("score", work / "right", "--compare").refused("at least two")
    oscar("score", work / "right", "--folds", "1").refused("folds")
    oscar("score", work / "right", "--dataset", work / "nowhere").refused("nowhere", "--dataset")
    oscar("score", work / "right", work / "wrong", "--compare", "--draws", "0").refused("draws")
    oscar("score", work / "right", work / "wrong", "--compare", "--seed", "-1").refused("seed", "-1")
    oscar("score", work / "right", "--seed", "1").refused("--seed", "--compare")
    oscar("score", work / "right", work / "wrong", "--draws", "9").refused("--draws", "--compare")


def test_what_a_test_and_what_a_score_accepted(oscar: Oscar, work: Path) -> None:
    told = oscar("score", work / "mixed", "--details").out
    rows = [line.replace("│", " ").split() for line in told[told.index("by acceptance") :].splitlines()]
    assert ["test", "6", "rule_present", "6", "0.000"] in rows
    assert ["score", "6", "rule_present", "6", "1.000"] in rows
    assert "by acceptance" not in oscar("score", work / "mixed").out
    assert "by acceptance" not in oscar("score", work / "right", "--details").out  # a run that does not say
    found = json.loads(oscar("score", work / "mixed", "--json").out)["accepted_by"]
    assert {way: part["precision"]["rule_present"] for way, part in found.items()} == {"test": 0.0, "score": 1.0}
