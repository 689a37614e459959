"""Folders written by earlier versions are read by today's code and still say what they said."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch

from oscar_causal.data import schema
from oscar_causal.data.digest import ContentDigest
from oscar_causal.data.folders import read_json
from oscar_causal.data.rules import format_rule, read_rules
from oscar_causal.data.sequences import Dataset, read_dataset
from oscar_causal.data.stream import stream_tables, stream_why
from oscar_causal.density import checkpoint
from oscar_causal.density.checkpoint import load_model, model_digest
from oscar_causal.density.folds import load_models
from oscar_causal.density.interface import Contexts
from oscar_causal.discovery import results
from oscar_causal.discovery.prior_files import read_prior
from oscar_causal.discovery.results import read_run, read_table
from oscar_causal.graph import population_folder
from oscar_causal.graph.boundary_graph import read_boundaries
from oscar_causal.graph.statistics import read_statistics
from oscar_causal.score.scoring import score_results

HERE = Path(__file__).parent
FORMATS = HERE.parents[1] / "docs" / "formats.md"
STEERING, CAFE = "steering degraded", "café ☕ closed"
VERSIONS = {
    "dataset": schema.FORMAT_VERSION,
    "model": checkpoint.FORMAT_VERSION,
    "results": results.FORMAT_VERSION,
    "population": population_folder.FORMAT_VERSION,
}


@pytest.fixture(scope="module", params=range(1, schema.FORMAT_VERSION + 1))
def fleet(request: pytest.FixtureRequest) -> Dataset:
    return read_dataset(HERE / f"dataset-{request.param}")


@pytest.mark.parametrize(("kind", "newest"), VERSIONS.items(), ids=str)
def test_every_version_of_every_format_is_kept(kind: str, newest: int) -> None:
    kept = sorted(int(re.sub(r"\D", "", path.name)) for path in HERE.glob(f"{kind}-*"))
    assert kept == list(range(1, newest + 1))


def test_golden_folders_are_small_and_name_no_machine() -> None:
    files = [path for path in HERE.rglob("*") if path.is_file() and path.parent != HERE]
    assert sum(path.stat().st_size for path in files if path.suffix != ".pyc") < 450_000
    for path in HERE.rglob("*.json"):
        assert not re.search(r'"/|[A-Z]:\\\\', path.read_text(encoding="utf-8")), path


def test_dataset_has_every_part_of_the_format(fleet: Dataset) -> None:
    assert (len(fleet), fleet.channels) == (160, ("mileage",))
    assert set(fleet.label_names) == {STEERING, CAFE}
    row = next(stream_tables(HERE / "dataset-1")).slice(1, 1).to_pylist()[0]
    assert (row["sequence_id"], row["subject_id"]) == ("drive 001", "car 00")
    assert row["start"].isoformat() == "2026-01-01T06:00:00+00:00"
    assert dict(row["static"]) == {"variant": "estate"}
    assert row["label_times"] == [row["times"][-1]] * len(row["labels"])
    assert read_json(HERE / "dataset-1" / "names.json")["C0051"] == "steering angle sensor"


def test_labels_and_reasons_follow_the_rules(fleet: Dataset) -> None:
    """By sets, without our evaluator of rules."""
    assert {label: format_rule(item.rule) for label, item in read_rules(HERE / "dataset-1" / "rules.json").items()} == {
        STEERING: "C0051 & U0126",
        CAFE: "P0A1F",
    }
    causes = {STEERING: {"C0051", "U0126"}, CAFE: {"P0A1F"}}
    why = pa.concat_tables(stream_why(HERE / "dataset-1")).to_pylist()
    labelled = 0
    for index, sequence_id in enumerate(fleet.sequence_ids.to_pylist()):
        if not fleet.labelled[index]:
            continue
        labelled += 1
        events = fleet.events_of(index)
        expected = {label for label, needed in causes.items() if needed <= set(events)}
        assert set(fleet.labels_of(index)) == expected
        reasons = [row for row in why if row["sequence_id"] == sequence_id]
        assert {(row["label"], row["event"]) for row in reasons} == {(y, x) for y in expected for x in causes[y]}
        assert all(events[place] == row["event"] for row in reasons for place in row["positions"])
    assert labelled == 156


def test_the_content_still_has_its_digest(fleet: Dataset) -> None:
    digest = ContentDigest()
    for table in stream_tables(HERE / "dataset-1"):
        digest.update(table)
    assert digest.hexdigest() == fleet.info["digest"] == read_run(HERE / "results-1")["dataset"]["digest"]


def test_the_model_still_gives_the_probabilities_that_results_recorded(fleet: Dataset) -> None:
    model = load_model(HERE / "model-1")
    assert model_digest(HERE / "model-1") == read_run(HERE / "results-1")["model"]["digest"]
    verdicts = read_table(HERE / "results-1", "verdicts").to_pylist()
    assert len(verdicts) > 15
    for row in verdicts:
        index = int(fleet.index_of([row["sequence_id"]])[0])
        begin, end = fleet.events.offsets[index : index + 2]
        sequence = Contexts(
            torch.tensor([[model.vocabulary.event_ids[name] for name in fleet.events_of(index)]]),
            torch.tensor(fleet.times[begin:end]),
            torch.tensor(fleet.channel("mileage")[begin:end, None]),
        )
        label = torch.tensor([model.vocabulary.labels.index(row["label"])])
        probability = model.label_probs(sequence, label, torch.tensor([end - begin])).item()
        assert probability == pytest.approx(row["probability"], abs=1e-4)


@pytest.mark.parametrize("name", ["verdicts", "evidence", "causes"])
def test_every_column_of_results_is_described(name: str) -> None:
    text = re.sub(r"```.*?```", "", FORMATS.read_text(encoding="utf-8"), flags=re.DOTALL)
    described = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", text))))
    assert set(read_table(HERE / "results-1", name).column_names) <= described


def test_results_still_read_and_score() -> None:
    boundaries = read_boundaries(HERE / "results-1")
    found = {(item.label, cause.event) for item in boundaries for cause in item.causes}
    assert {(CAFE, "P0A1F"), (STEERING, "C0051"), (STEERING, "U0126")} <= found
    figures = score_results(HERE / "results-1", dataset=HERE / "dataset-1")["truth"]["why"]["micro"]
    causes = read_table(HERE / "results-1", "causes").to_pylist()
    right = sum(row["event"] in {"P0A1F"} if row["label"] == CAFE else row["event"] != "U0428" for row in causes)
    assert figures["precision"] == pytest.approx(right / len(causes))


def test_folds_still_know_whom_they_saw(fleet: Dataset) -> None:
    folds = load_models(HERE / "folds-1")
    assert len(folds.models) == 2
    assert not folds.seen_in_training(fleet.subject_ids).any()
    assert set(folds.routes(fleet.subject_ids).tolist()) == {0, 1}
    assert load_models(HERE / "model-1").seen_in_training(fleet.subject_ids).mean() == pytest.approx(0.75, abs=0.1)


@pytest.mark.parametrize("version", range(1, population_folder.FORMAT_VERSION + 1))
def test_a_population_still_reads(version: int) -> None:
    folder = HERE / f"population-{version}"
    assert population_folder.read_info(folder)["inputs"]
    labels = {row["label"]: row for row in population_folder.read_part(folder, "labels.parquet").to_pylist()}
    recorded = read_table(HERE / "results-1", "verdicts")["label"].to_pylist()
    assert {label: row["sequences"] for label, row in labels.items()} == {y: recorded.count(y) for y in set(recorded)}
    assert labels[CAFE]["causes"] == ["P0A1F"]
    sums = read_statistics(folder)
    assert sum(sums.labels["sequences"].to_pylist()) == len(recorded)
    assert (len(sums.cells) > 0) is (version > 1)  # cells of format 1 have another alphabet
    rates = read_prior(folder).rates
    assert np.isfinite(rates).all()
    assert ((rates > 0) & (rates < 1)).all()
