"""`oscar graph` and `oscar report` through the command, on results written by hand; and what they refuse."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import pyarrow as pa
import pytest

from oscar_causal.data.sequences import read_dataset
from oscar_causal.data.writer import write_dataset
from oscar_causal.discovery.boundary import Boundary, EventEvidence
from oscar_causal.discovery.results import ResultsWriter
from oscar_causal.verbs.graph import ENDINGS

Oscar = Callable[..., Any]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three cars whose rule is known, and results of a method without a model."""
    place = tmp_path_factory.mktemp("place")
    rows = [
        {"sequence_id": f"car {i}", "events": ["A", "B", "C"], "times": [0.0, 1.0, 2.0], "labels": ["worn"]}
        for i in range(3)
    ]
    write_dataset(place / "fleet", [pa.Table.from_pylist(rows)])
    (place / "fleet" / "rules.json").write_text('{"worn": "A & B"}')
    told = {"path": str(place / "fleet"), "digest": read_dataset(place / "fleet").info["digest"]}
    writer = ResultsWriter(place / "results", {"estimator": "iamb", "dataset": told, "fingerprint": "x"})
    events = (
        EventEvidence("A", (0,), "cause", 0.5, indicator=0.5),
        EventEvidence("C", (2,), "inhibitor", -0.2, indicator=-0.2),
    )
    writer.write_shard(0, [Boundary(f"car {i}", "worn", True, None, events[: 1 + i % 2]) for i in range(3)])
    writer.finish()
    return place


@pytest.mark.parametrize("ending", sorted(ENDINGS))
def test_every_ending_writes_its_format(oscar: Oscar, place: Path, tmp_path: Path, ending: str) -> None:
    ran = oscar("graph", place / "results", "--out", tmp_path / f"all{ending}", "--json")
    assert ran.code == 0, ran.err
    told = json.loads(ran.out)
    assert (told["format"], told["events"], told["labels"], told["edges"]) == (ENDINGS[ending], 2, 1, 2)
    assert (tmp_path / f"all{ending}").stat().st_size > 50


def test_one_sequence_and_filters(oscar: Oscar, place: Path, tmp_path: Path) -> None:
    out = tmp_path / "one.graphml"
    assert oscar("graph", place / "results", "--sequence", "car 1", "--out", out).code == 0
    assert set(nx.read_graphml(out)) == {"event:A", "event:C", "label:worn"}
    again = oscar("graph", place / "results", "--sign", "inhibitor", "--top", 5, "--out", out, "--force")
    assert again.code == 0
    assert set(nx.read_graphml(out)) == {"event:C", "label:worn"}


def test_a_report_scores_what_is_known(oscar: Oscar, place: Path, tmp_path: Path) -> None:
    ran = oscar("report", place / "results", "--out", tmp_path / "page.html", "--json")
    assert ran.code == 0, ran.err
    told = json.loads(ran.out)
    assert (told["sequences"], told["labels"]) == (3, 1)
    assert told["bytes"] == (tmp_path / "page.html").stat().st_size
    assert len(told["missing"]) == 1
    data = json.loads((tmp_path / "page.html").read_text().split('id="data">')[1].split("</script>")[0])
    scores = {row["truth"]: row for row in data["scores"]}
    assert (scores["rule_present"]["precision"], scores["rule_present"]["recall"]) == (1, 0.5)
    assert data["causes"]["known"] == [1, 1, None, 1]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("graph", "RESULTS", "--out", "x.gexf"), "x.gexf"),
        (("graph", "RESULTS", "--out", "x.png", "--format", "tiff"), "tiff"),
        (("graph", "RESULTS", "--out", "x.png", "--sequence", "nobody"), "nobody"),
        (("graph", "RESULTS", "--out", "x.png", "--label", "nothing"), "nothing"),
        (("graph", "RESULTS", "--out", "x.png", "--sign", "plus"), "plus"),
        (("graph", "RESULTS", "--out", "x.png", "--top", "0"), "at least 1"),
        (("graph", "RESULTS", "--out", "x.png", "--population"), "population.json"),
        (("graph", "RESULTS", "--out", "x.png", "--population", "--sequence", "car 1"), "--sequence"),
        (("graph", "FLEET", "--out", "x.png"), "run.json"),
        (("report", "FLEET", "--out", "x.html"), "run.json"),
        (("report", "RESULTS", "--out", "x.html", "--dataset", "nowhere"), "nowhere"),
        (("report", "RESULTS", "--out", "x.html", "--model", "nowhere"), "nowhere"),
        (("report", "RESULTS", "--out", "x.html", "--limit", "0"), "limit"),
        (("report", "RESULTS", "--out", "x.html", "--sequence", "nobody"), "nobody"),
        (("report", "RESULTS", "--out", "x.html", "--population", "nowhere"), "population.json"),
        (("report", "RESULTS", "--out", "."), "folder"),
    ],
)
def test_mistakes_are_one_line(
    oscar: Oscar, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    places = {"RESULTS": place / "results", "FLEET": place / "fleet"}
    oscar(*(str(places.get(word, word)) for word in words)).refused(expected)
    assert not list(tmp_path.iterdir())


def test_a_report_tells_its_memory_before_it_begins(
    oscar: Oscar, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oscar_causal.verbs.output.TOLD_FROM", 0)
    ran = oscar("report", place / "results", "--out", tmp_path / "page.html", "--memory", 4, "--json")
    assert ran.code == 0, ran.err
    assert ran.err.startswith(
        "memory: about 0.00 GiB (weights 0.00, dataset 0.00, results 0.00, page 0.00), at most 4.00"
    )
    assert json.loads(ran.out)["memory"]["total_gib"] > 0


def test_a_report_without_room_is_one_line(oscar: Oscar, place: Path, tmp_path: Path) -> None:
    ran = oscar("report", place / "results", "--out", tmp_path / "page.html", "--memory", 0.00001)
    assert ran.code == 2
    assert len(ran.err.splitlines()) == 1
    assert "--memory: expected at least 0.00 GiB for a page of 3 explained pairs with 4 causes" in ran.err
    assert not list(tmp_path.iterdir())
