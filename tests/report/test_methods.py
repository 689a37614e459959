"""The methods section: every figure in it is counted again here, and each estimator promises only what it keeps."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oscar_causal.data.sequences import Dataset, read_dataset
from oscar_causal.density.interface import Contexts
from oscar_causal.discovery.boundary import EventEvidence
from oscar_causal.discovery.contexts import Stream
from oscar_causal.discovery.finalists import WORTH
from oscar_causal.discovery.intervention import FALL
from oscar_causal.discovery.local import discover_folder
from oscar_causal.discovery.oneshot import DiscoveryConfig
from oscar_causal.discovery.prefix import PrefixConfig
from oscar_causal.discovery.results import read_run, read_table
from oscar_causal.report.methods import explain_run


def nothing(model: Any, sequence: Contexts, labels: Any, stream: Stream) -> list[list[EventEvidence]]:
    """nothing at all"""
    return [[] for _ in labels]


CONFIGS = {
    "intervention": DiscoveryConfig(seed=11),
    "prefix": DiscoveryConfig(estimator="prefix", prefix=PrefixConfig(context=3, contexts=5, threshold=1.5)),
    "own": DiscoveryConfig(estimator=nothing, replacement="donors", excluded=("E1", "E2")),
}


@pytest.fixture(scope="module")
def runs(toy: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("runs")
    for name, config in CONFIGS.items():
        discover_folder(toy.model, toy.fleet, place / name, config)
    return {name: place / name for name in CONFIGS}


def test_figures_are_those_of_the_files(toy: Any, runs: dict[str, Path]) -> None:
    found = explain_run(runs["intervention"])
    data: Dataset = read_dataset(toy.fleet)
    run, verdicts, causes = (
        read_run(runs["intervention"]),
        *(read_table(runs["intervention"], name).to_pylist() for name in ("verdicts", "causes")),
    )
    words = found.paragraphs
    assert f"{len(data):,} sequences of {len(set(data.subject_ids.to_pylist()))} subjects" in words["data"]
    assert f"{len(data.events.ids):,} events of {len(data.event_names)} types" in words["data"]
    assert data.info["digest"][:12] in words["data"]
    assert f"{toy.counts['unknown_events']:,} events were of types" in words["data"]
    positive = sum(row["verdict"] == "cause" for row in causes)
    empty = len(verdicts) - len({(row["sequence_id"], row["label"]) for row in causes})
    expected = f"{positive} causes and {len(causes) - positive} inhibitors were accepted, and {empty} pairs had none"
    assert f"{len(verdicts)} pairs of a sequence and a label were explained: {expected}" in words["results"]
    seen = sum(row["seen_in_training"] for row in verdicts)
    assert (f"{seen} of these" if seen else "None of these") in words["results"]
    assert "seed 11" in words["reproducibility"]
    assert run["fingerprint"][:12] in words["reproducibility"]
    assert "effects of at most 0.05" in words["error control"]
    assert found.missing == ()
    assert "$" not in found.text
    assert "None of them" not in found.text.replace("None of these", "")
    assert " None" not in found.text.replace(" None of these", "")  # no figure is missing


def test_each_estimator_promises_its_own(runs: dict[str, Path]) -> None:
    texts = {name: explain_run(folder).paragraphs for name, folder in runs.items()}
    assert "Benjamini-Hochberg" in texts["intervention"]["error control"]
    assert texts["prefix"]["error control"].startswith("No error rate is controlled")
    assert "1.5 standard deviations" in texts["prefix"]["error control"]
    assert "announces" in texts["prefix"]["assumptions"]
    assert "direct effect" not in texts["prefix"]["assumptions"]
    assert texts["own"]["error control"].startswith("No error rate is claimed")
    assert texts["own"]["estimand"].startswith(
        "Estimand: nothing at all. The estimator is a function supplied by the user"
    )
    assert "same tenth" in texts["own"]["estimand"]
    assert "2 event types were never tested" in texts["own"]["estimand"]
    for paragraphs in texts.values():
        assert list(paragraphs) == [
            *("data", "model", "estimand", "assumptions", "error control", "results", "reproducibility")
        ]
        assert "does not test" in paragraphs["assumptions"]


def test_what_chose_the_events_is_told_where_it_was_recorded(runs: dict[str, Path], tmp_path: Path) -> None:
    ways = read_table(runs["intervention"], "verdicts")["ranked_by"].to_pylist()
    assert set(ways) == {"slopes"}
    assert "The events to test were chosen by slopes of the label model." in explain_run(runs["intervention"]).text
    assert "events to test" not in explain_run(runs["prefix"]).text
    assert "events to test" not in explain_run(runs["own"]).text
    mixed = shutil.copytree(runs["intervention"], tmp_path / "mixed")
    (mixed / "checksums.json").unlink()
    shards = sorted((mixed / "verdicts").glob("*.parquet"))  # one or more: they are cut by time
    table = pa.concat_tables([pq.read_table(shard) for shard in shards])
    place = table.column_names.index("ranked_by")
    column = pa.array([*(["screen"] * 3), None, *ways[4:]], pa.string())
    pq.write_table(table.set_column(place, "ranked_by", column), shards[0])
    for shard in shards[1:]:
        shard.unlink()
    told = (
        f"chosen by slopes of the label model in {len(ways) - 4} pairs and by a screen of random contexts in 3 pairs."
    )
    assert told in explain_run(mixed).text


def test_what_has_moved_is_said_and_can_be_named(
    toy: Any, runs: dict[str, Path], tmp_path: Path, oscar: Callable[..., Any]
) -> None:
    shutil.copytree(runs["prefix"], tmp_path / "results")
    (tmp_path / "results" / "checksums.json").unlink()
    run = json.loads((tmp_path / "results" / "run.json").read_text())
    run["dataset"]["path"], run["model"]["path"] = "gone", "gone too"
    (tmp_path / "results" / "run.json").write_text(json.dumps(run))
    ran = oscar("explain-run", tmp_path / "results")
    assert ran.err.count("not at hand") == 2
    assert oscar("explain-run", tmp_path / "results", "--quiet").err == ""
    words = ["explain-run", tmp_path / "results", "--dataset", toy.fleet, "--model", toy.model, "--json"]
    found = json.loads(oscar(*words).out)
    assert found["missing"] == []
    assert found["text"] == explain_run(runs["prefix"]).text


def test_baselines_and_other_folders(toy: Any, tmp_path: Path, oscar: Callable[..., Any]) -> None:
    assert oscar("baseline", "iamb", toy.fleet, "--out", tmp_path / "iamb").code == 0
    found = explain_run(tmp_path / "iamb").paragraphs
    assert "level 0.01, corrected by Bonferroni" in found["error control"]
    assert "No predictive model" in found["model"]
    oscar("explain-run", toy.fleet).refused("run.json")
    oscar("explain-run", tmp_path / "nowhere").refused("run.json")
    html = explain_run(tmp_path / "iamb")._repr_html_()
    assert html.startswith("<p>")


def test_acceptance_by_score_is_told_with_its_thresholds(runs: dict[str, Path], tmp_path: Path) -> None:
    told = explain_run(runs["intervention"]).paragraphs
    ways = read_table(runs["intervention"], "causes")["accepted_by"].to_pylist()
    counts = f"Of the accepted events {ways.count('test')} were accepted by test, {ways.count('score')} by score."
    assert counts in told["results"]
    assert "2000 redraws at first, more where few of them reached what was seen" in told["error control"]
    assert f"at least {WORTH} of the strongest one's" in told["error control"]
    told_fall = f"at least {FALL} of themselves without it; no error rate is controlled for types accepted by score"
    assert told_fall in told["error control"]
    assert "by score" not in explain_run(runs["prefix"]).text
    for value, words in ((True, "Nothing was accepted that a test had not shown."), (None, "at least 2000 redraws")):
        folder = shutil.copytree(runs["intervention"], tmp_path / str(value))
        (folder / "checksums.json").unlink()
        run = json.loads((folder / "run.json").read_text())
        del run["config"]["intervention"]["tested_only"]
        run["config"]["intervention"] |= {} if value is None else {"tested_only": value}
        (folder / "run.json").write_text(json.dumps(run))
        error = explain_run(folder).paragraphs["error control"]
        assert words in error
        assert "accepted by score" not in error
