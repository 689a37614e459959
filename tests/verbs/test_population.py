"""`oscar population` and `oscar discover --population` through the command, on a very small fleet."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oscar_causal.data.sequences import read_dataset
from oscar_causal.data.writer import write_dataset

Oscar = Callable[..., Any]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("population")


@pytest.fixture
def fleet(oscar: Oscar, work: Path) -> Path:
    """A fleet, a model that has hardly learnt anything, results, and a population of them."""
    if not (work / "demo").exists():
        words = f"demo --out {work}/demo --sequences 300 --steps 3 --contexts 40 --explain 25 --json"
        assert oscar(*words.split()).code == 0
        baseline = oscar("baseline", "iamb", work / "demo/fleet", "--out", work / "iamb", "--workers", "1", "--json")
        assert baseline.code == 0, baseline.err
        places = ["--dataset", work / "demo/fleet", "--model", work / "demo/model"]
        options = ["--classical", work / "iamb", "--looks", "2", "--contexts", "40", "--window", "180"]
        made = oscar(
            "population", work / "demo/intervention", "--out", work / "p", *places, *options, "--no-rules", "--json"
        )
        assert made.code == 0, made.err
        (work / "made.json").write_text(made.out)
    return work


def test_the_summary_and_the_files_agree(fleet: Path) -> None:
    summary = json.loads((fleet / "made.json").read_text())
    rows = pq.read_table(fleet / "p" / "boundaries.parquet").to_pylist()
    assert summary["pairs"] == len(rows)
    assert summary["prior"] is True
    assert summary["cause"] == sum(row["verdict"] == "cause" for row in rows)
    assert {row["classical"] for row in rows} <= {True, False, None}
    assert (fleet / "p" / "drift.parquet").exists()


def test_discover_with_the_population_tells_every_source(oscar: Oscar, fleet: Path, tmp_path: Path) -> None:
    words = [fleet / "demo/model", fleet / "demo/fleet", "--out", tmp_path / "r", "--held-out", "--contexts", "40"]
    found = oscar("discover", *words, "--population", fleet / "p", "--json")
    assert found.code == 0, found.err
    run = json.loads((tmp_path / "r" / "run.json").read_text())
    assert run["estimator"] == "fused"
    assert run["config"]["fused"]["digest"]
    rows = pq.read_table(tmp_path / "r" / "evidence").to_pylist()
    judged = [row for row in rows if row["posterior"] is not None]
    assert judged
    assert all(0 <= row["posterior"] <= 1 and 0 < row["prior"] < 1 for row in judged)
    flags = pq.read_table(tmp_path / "r" / "verdicts")["flags"].to_pylist()
    assert all("classical boundary learnt with this subject" in some for some in flags)  # learnt from the whole fleet


def test_rules_come_back_and_what_does_not_merge_is_told(oscar: Oscar, toy: Any, tmp_path: Path) -> None:
    """Labels x and y come with E0 and E1, in the model and in the fleet: their rules say so."""
    rng = np.random.default_rng(3)
    for half in ("a", "b"):
        rows = []
        for k in range(60):
            events = [f"E{e}" for e in rng.choice(20, 10, replace=False)]
            labels = [label for label, event in (("x", "E0"), ("y", "E1")) if event in events]
            times = list(map(float, range(10)))
            rows.append({"sequence_id": f"{half}{k}", "events": events, "times": times, "labels": labels})
        write_dataset(tmp_path / f"fleet-{half}", [pa.Table.from_pylist(rows)])
        words = [toy.model, tmp_path / f"fleet-{half}", "--out", tmp_path / half, "--contexts", "40", "--json"]
        assert oscar("discover", *words).code == 0
    less = ["--looks", "1", "--contexts", "40", "--json"]
    one = oscar("population", tmp_path / "a", "--out", tmp_path / "p", *less)
    assert one.code == 0, one.err
    assert json.loads(one.out)["rules"] == 2
    assert json.loads((tmp_path / "p" / "rules.json").read_text()) == {"x": "E0", "y": "E1"}
    assert "alone" not in one.err
    both = oscar("population", tmp_path / "b", tmp_path / "a", "--out", tmp_path / "both", *less)
    assert json.loads((tmp_path / "both" / "rules.json").read_text()) == {"x": "E0", "y": "E1"}
    assert f"rules and label interplay: from {tmp_path / 'b'} alone, the first of 2 results folders" in both.err
    merged = oscar("population", tmp_path / "p", "--out", tmp_path / "merged", "--json")
    assert json.loads(merged.out)["rules"] == 0
    assert "rules, label interplay and world tests of populations are not merged: name a results folder" in merged.err
    again = oscar("population", tmp_path / "p", tmp_path / "b", "--out", tmp_path / "again", *less, "--no-rules")
    assert f"not merged: those here are from {tmp_path / 'b'}" in again.err
    refused = oscar("population", tmp_path / "p", "--out", tmp_path / "out", "--world", "3")
    refused.refused("--world", "results folder", "populations alone")


def test_a_population_of_another_fleet_is_refused(oscar: Oscar, fleet: Path, toy: Any, tmp_path: Path) -> None:
    words = [toy.model, toy.fleet, "--out", tmp_path / "r", "--contexts", "40"]
    oscar("discover", *words, "--population", fleet / "p").refused("another fleet", "2 labels of the run")
    assert not list(tmp_path.iterdir())


def test_a_lost_part_is_told(oscar: Oscar, fleet: Path, tmp_path: Path) -> None:
    shutil.copytree(fleet / "demo/intervention", tmp_path / "r")
    (tmp_path / "r" / "verdicts" / "part-00001.parquet").unlink()
    places = ["--dataset", fleet / "demo/fleet", "--model", fleet / "demo/model", "--no-rules", "--looks", "0"]
    oscar("population", tmp_path / "r", "--out", tmp_path / "p", *places).refused(
        "verdicts", "part-00001.parquet: missing"
    )
    oscar("score", tmp_path / "r", "--dataset", fleet / "demo/fleet").refused("verdicts", "part-00001.parquet: missing")


def test_explain_with_the_population(oscar: Oscar, fleet: Path) -> None:
    words = [fleet / "demo/model", "s0000000", "--dataset", fleet / "demo/fleet", "--population", fleet / "p"]
    told = oscar("explain", *words, "--contexts", "40", "--json")
    assert told.code == 0, told.err


def test_mistakes_are_one_line(oscar: Oscar, fleet: Path, tmp_path: Path) -> None:
    model, data, out = fleet / "demo/model", fleet / "demo/fleet", tmp_path / "out"
    oscar("population", data, "--out", out).refused("run.json")
    oscar("population", fleet / "demo/intervention", "--out", fleet / "p").refused("exists already")
    results = fleet / "demo/intervention"
    twice = ["population", results, results, "--dataset", data, "--model", model, "--no-rules"]
    oscar(*twice, "--looks", "0", "--out", out).refused("twice")
    oscar("discover", model, data, "--out", out, "--population", data).refused("prior.json")
    oscar("discover", model, data, "--out", out, "--estimator", "fused").refused("population")
    oscar("discover", model, data, "--out", out, "--estimator", "prefix", "--population", fleet / "p").refused("fused")
    oscar("population", results, "--dataset", data, "--model", model, "--out", out, "--alpha", "2").refused("alpha")
    oscar("population", fleet / "iamb", "--dataset", data, "--out", out).refused("iamb")
    oscar("population", results, "--out", out, "--seed", "-1").refused("seed", "-1")
    oscar("population", results, "--out", out, "--world", "-3").refused("--world", "-3")
    oscar("population", results, "--out", out, "--device", "moon").refused("--device", "moon")
    for days in ("1e9", "1e-9", "nan"):
        oscar("population", results, "--out", out, "--window", days).refused("window", "36525 days")
    oscar("population", fleet / "p", "--out", out, "--no-rules").refused("windows")
    assert not out.exists()


def test_labels_nobody_recorded_count_and_are_told_apart(oscar: Oscar, fleet: Path, tmp_path: Path) -> None:
    """One label explained in every sequence: where it is recorded not to have come it counts nowhere; without any
    recorded labels the model's word stands alone, looks are taken all the same, and no rule is recovered."""
    model, data = fleet / "demo/model", read_dataset(fleet / "demo/fleet")
    some = data.take(np.arange(0, 24))
    label = next(name for k in range(24) for name in some.labels_of(k))
    came = sum(label in some.labels_of(k) for k in range(24))
    times = [some.times[a:b].tolist() for a, b in pairwise(some.events.offsets)]
    ids, events = [f"s{k}" for k in range(24)], [some.events_of(k) for k in range(24)]
    columns = {"sequence_id": ids, "subject_id": ids, "events": events, "times": times}
    recorded = [some.labels_of(k) for k in range(24)]
    write_dataset(tmp_path / "known", [pa.table({**columns, "labels": recorded})])
    none = pa.nulls(24, pa.list_(pa.string()))
    write_dataset(tmp_path / "unknown", [pa.table({**columns, "labels": none})])
    for name, counts in (("known", (came, 0, 24 - came)), ("unknown", (24, 24, 0))):
        words = [
            model,
            tmp_path / name,
            "--out",
            tmp_path / f"r-{name}",
            "--label",
            label,
            "--contexts",
            "40",
            "--json",
        ]
        assert oscar("discover", *words).code == 0
        made = oscar("population", tmp_path / f"r-{name}", "--out", tmp_path / f"p-{name}", "--looks", "2",
                     "--contexts", "40", *([] if name == "unknown" else ["--no-rules"]), "--json")  # fmt: skip
        assert made.code == 0, made.err
        summary = json.loads(made.out)
        assert (summary["sequences"], summary["unlabelled"], summary["absent"]) == counts
        assert summary["prior"] is True
        assert summary["rules"] == 0
        (row,) = pq.read_table(tmp_path / f"p-{name}" / "labels.parquet").to_pylist()
        assert (row["sequences"], row["unlabelled"], row["absent"]) == counts
    assert "no rules" in made.err
