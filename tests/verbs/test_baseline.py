"""`oscar baseline` from the command line: results in the shared format, scored by the shared verb, resumable."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oscar_causal.data.rules import parse, write_rules
from oscar_causal.data.writer import write_dataset
from oscar_causal.discovery.classical import folder, learning
from oscar_causal.discovery.classical.folder import read_boundaries
from oscar_causal.discovery.results import read_run, read_table

NAME = 'steering "degraded",\n🚗'


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """600 sequences, two labels with rules `A & B` and `C`."""
    rng = np.random.default_rng(0)
    rows = []
    for number in range(600):
        events = [name for name in "ABCDEFGH" if rng.random() < 0.4] or ["H"]
        labels = ([NAME] if "A" in events and "B" in events else []) + (["other"] if "C" in events else [])
        times = [float(place) for place in range(len(events))]
        rows.append({"sequence_id": f"car {number}", "events": events, "times": times, "labels": labels})
    path = tmp_path_factory.mktemp("fleet") / "data"
    write_dataset(path, [pa.Table.from_pylist(rows)])
    write_rules(path / "rules.json", {NAME: parse("A & B"), "other": parse("C")})
    return path


def test_results_are_scored_like_any_other(fleet: Path, tmp_path: Path, oscar: Callable[..., Any]) -> None:
    out = tmp_path / "results"
    ran = oscar("baseline", "iamb", fleet, "--out", out, "--workers", 1, "--json")
    assert ran.code == 0, ran.err
    told = json.loads(ran.out)
    assert told["boundaries"] == {NAME: ["A", "B"], "other": ["C"]} or told["boundaries"][NAME] == ["B", "A"]
    assert told["incomplete_labels"] == 0
    scores = json.loads(oscar("score", out, "--json").out)
    assert scores["estimator"] == "iamb"
    assert scores["truth"]["rule_present"]["micro"]["f1"] == 1.0
    run = read_run(out)
    assert run["config"]["tests"]["alpha"] == 0.01
    assert run["dataset"]["path"] == str(fleet)
    causes = read_table(out, "causes").to_pylist()
    assert {row["event"] for row in causes} == {"A", "B", "C"}
    assert all(row["indicator"] == pytest.approx(1.0) and row["q_value"] is None for row in causes)
    assert len(read_table(out, "verdicts")) == sum(item.positives for item in read_boundaries(out / "boundaries.jsonl"))


def test_options_reach_the_method(fleet: Path, tmp_path: Path, oscar: Callable[..., Any]) -> None:
    words = ["--alpha", 0.2, "--correction", "bh", "--statistic", "chi2", "--features", "counts,order", "--window", 60]
    words += ["--labels", "other", "--max-given", 2, "--label-time-limit", 0, "--as-published", "--time-limit", 99]
    ran = oscar("baseline", "pcd-by-pcd", fleet, "--out", tmp_path / "r", "--workers", 1, *words)
    assert ran.code == 0, ran.err
    assert "other" in ran.out
    config = read_run(tmp_path / "r")["config"]
    assert config["tests"] | {"rows_per_dof": 0, "exact": 0} == {
        "alpha": 0.2, "correction": "bh", "statistic": "chi2", "max_given": 2, "rows_per_dof": 0, "exact": 0,
    }  # fmt: skip
    assert config["features"]["kinds"] == ["presence", "counts", "order"]
    assert config["features"]["windows"] == [60.0]
    assert (config["outcomes"], config["label_time_limit"], config["time_limit"]) == (False, None, 99.0)
    assert read_run(tmp_path / "r")["labels"] == ["other"]


def test_a_killed_run_goes_on_where_it_stopped(
    fleet: Path, tmp_path: Path, oscar: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, out = tmp_path / "whole", tmp_path / "cut"
    assert oscar("baseline", "iamb", fleet, "--out", whole, "--workers", 1).code == 0
    learn_one, learnt = learning._learn_one, []

    def once(label: int) -> Any:
        if learnt:
            raise KeyboardInterrupt
        learnt.append(label)
        return learn_one(label)

    monkeypatch.setattr(learning, "_learn_one", once)
    with pytest.raises(KeyboardInterrupt):
        folder.baseline_folder(fleet, out)
    assert not out.exists()
    log = tmp_path / "cut.partial" / "boundaries.jsonl"
    assert len(read_boundaries(log)) == 1
    with log.open("a", encoding="utf-8") as lines:
        lines.write('{"label": "oth')  # a line cut short
    monkeypatch.setattr(learning, "_learn_one", learn_one)
    oscar("baseline", "iamb", fleet, "--out", out, "--workers", 1).refused("unfinished run", "--resume")
    oscar("baseline", "cmb", fleet, "--out", out, "--workers", 1, "--resume").refused("other settings")
    shutil.copytree(fleet, other := tmp_path / "other")
    (other / "checksums.json").unlink()
    (part,) = (other / "sequences").iterdir()
    pq.write_table(pq.read_table(part), part, compression="none")  # the same content in other bytes
    oscar("baseline", "iamb", other, "--out", out, "--workers", 1, "--resume").refused("other settings, data")
    assert oscar("baseline", "iamb", fleet, "--out", out, "--workers", 1, "--resume").code == 0
    assert [item.label for item in read_boundaries(out / "boundaries.jsonl")] == ["other", NAME]
    for name in ("verdicts", "evidence", "causes"):
        assert read_table(out, name) == read_table(whole, name)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["pc"], "expected one of iamb, cmb"),
        (["iamb", "--alpha", "3"], "alpha: expected a number between 0 and 1, got 3"),
        (["iamb", "--correction", "holm"], "correction: expected one of bonferroni"),
        (["iamb", "--features", "colour"], "features: expected some of presence, counts, order, got 'colour'"),
        (["iamb", "--labels", "fire"], "label 'fire': not among the 2 labels"),
        (["iamb", "--workers", "0"], "workers: expected at least 1, got 0"),
        (["iamb", "--label-time-limit", "-1"], "label time limit: expected"),
        (["iamb", "--time-limit", "0"], "time limit: expected a number of seconds above 0"),
        (["mi-mcf", "--k1", "2"], "k1: expected a number between 0 and 1, got 2"),
    ],
)
def test_bad_options_are_one_line(
    fleet: Path, tmp_path: Path, oscar: Callable[..., Any], words: list[str], said: str
) -> None:
    oscar("baseline", words[0], fleet, "--out", tmp_path / "r", *words[1:]).refused(said)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_out_is_an_error_unless_forced(fleet: Path, tmp_path: Path, oscar: Callable[..., Any]) -> None:
    out = tmp_path / "r"
    assert oscar("baseline", "mi-mcf", fleet, "--out", out, "--workers", 1).code == 0
    oscar("baseline", "mi-mcf", fleet, "--out", out, "--workers", 1).refused("exists already")
    assert oscar("baseline", "mi-mcf", fleet, "--out", out, "--workers", 1, "--force").code == 0
