"""The ladder: true probabilities as the label model, rows that stay, a record nobody can skip."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from oscar_causal.data.batches import encode
from oscar_causal.data.synthetic.worlds import draw, make_world
from oscar_causal.density.model import sequence_contexts
from oscar_causal.errors import UsageError
from oscar_causal.score.bench.ladder import tables
from oscar_causal.score.bench.ladder.interface import Part
from oscar_causal.score.bench.ladder.measuring import Measuring, measure
from oscar_causal.score.bench.ladder.models import true_model
from oscar_causal.score.bench.ladder.rows import FEW_WORLDS, METHODS
from oscar_causal.score.bench.ladder.tables import RodSettings, bench_ladder
from oscar_causal.score.bench.ladder.worlds import WorldGround
from oscar_causal.score.bench.running import choose_rows


def test_true_probabilities_reach_the_estimators(part: Callable[..., Part]) -> None:
    """Through contexts, vocabulary and encoding the model still gives the world's own P."""
    given, world = part(), make_world("static", 5)
    model = true_model(given, given.train, given.test)
    expected = world.probs(draw(world, 60, "test").recorded)
    encoded = encode(given.test, model.vocabulary, max_length=model.max_length, channels=())
    labels = torch.arange(len(model.vocabulary.labels))
    order = [world.label_names.index(name) for name in model.vocabulary.labels]
    for i in range(40):
        sequence = sequence_contexts(encoded, i)
        whole = torch.tensor([sequence.event_ids.shape[1]])
        np.testing.assert_allclose(model.label_probs(sequence, labels, whole)[0, 0], expected[i][order], rtol=1e-6)


def test_slopes_of_true_probabilities_are_differences_of_log_odds(part: Callable[..., Part]) -> None:
    """With nothing faded the slope of a type is the fall of the log odds without it."""
    given = part()
    model = true_model(given, given.train, given.test)
    encoded = encode(given.test, model.vocabulary, max_length=model.max_length, channels=())
    seen = 0
    for i in range(20):
        sequence = sequence_contexts(encoded, i)
        length = sequence.event_ids.shape[1]
        labels = torch.arange(len(model.vocabulary.labels))
        slopes = model.label_slopes(sequence, labels, torch.empty(0), (0.0,))[0]
        for position, label in slopes.nonzero().tolist():
            event = sequence.event_ids[0, position]
            gone = torch.where(sequence.event_ids == event, model.vocabulary.event_ids["READOUT"], sequence.event_ids)
            pair = torch.cat([sequence.event_ids, gone])
            contexts = type(sequence)(pair, sequence.times, sequence.channels)
            p = model.label_probs(contexts, labels[label : label + 1], torch.tensor([length]))[:, 0, 0].double()
            odds = torch.log(p / (1 - p))
            assert float(slopes[position, label]) == pytest.approx(float(odds[0] - odds[1]), abs=1e-3)
            seen += 1
    assert seen > 10


def settings_for(folder: Path, **given: Any) -> RodSettings:
    return RodSettings(
        **{"out": folder / "out", "grounds": "static", "seed": 5, "runs": 1, "train": 200, "test": 40, **given}
    )


def test_rows_are_kept_and_the_same_again(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, rows="perfect*,lift,true P: leave-one-out,true P: slopes alone")
    said: list[str] = []
    first = bench_ladder(settings, said.append)
    assert {line.split(":")[0] for line in said} >= {"static/5", "static/5/true P"}
    figures = {key: row["f1"] for key, row in first["rows"].items()}
    assert figures["static/5/true P: leave-one-out"] == 1.0  # one necessary cause, a perfect model
    assert figures["static/5/perfect boundary by presence"] < 0.85
    row = first["rows"]["static/5/true P: leave-one-out"]
    assert row["minus_presence"]["difference"] == 1.0 - figures["static/5/perfect boundary by presence"]
    assert row["minus_presence"]["low"] > 0
    said.clear()
    again = bench_ladder(replace(settings, missing=True), said.append)
    assert said == ["static/5: there already"]
    assert again["rows"] == first["rows"]
    (tmp_path / "out" / "ladder.json").unlink()
    measured = bench_ladder(settings, said.append)
    assert {key: row["f1"] for key, row in measured["rows"].items()} == figures
    assert "| lift |" in (tmp_path / "out" / "ladder.md").read_text()
    assert (tmp_path / "out" / "ladder.png").read_bytes().startswith(b"\x89PNG")


def test_no_row_begins_too_late(tmp_path: Path) -> None:
    found = bench_ladder(settings_for(tmp_path, rows="lift", until=0.0), lambda line: None)
    assert (found["rows"], found["files"]) == ({}, {})


def test_what_is_kept_for_the_record_needs_a_prediction(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="seed 1000: is kept for the record"):
        bench_ladder(settings_for(tmp_path, seed=1000), print)
    with pytest.raises(UsageError, match="world network: is kept for the record"):
        bench_ladder(settings_for(tmp_path, grounds="network"), print)
    with pytest.raises(UsageError, match="expected some of .* got 'mars'"):
        bench_ladder(settings_for(tmp_path, grounds="mars"), print)
    told = "presence alone stays below 0.9"
    sizes = {"grounds": "unanswered", "seed": 1000, "train": 30, "test": 20, "rows": "perfect*"}
    bench_ladder(settings_for(tmp_path, record=told, **sizes), lambda line: None)
    lines = (tmp_path / "out" / "record.jsonl").read_text().splitlines()
    assert [json.loads(line)["prediction"] for line in lines] == [told]


def test_a_missing_package_leaves_its_row_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    ground = WorldGround("static", 5, tmp_path, train=60, test=20, judge=10)
    ground.make()
    told = measure(ground, ground.digest, "L1 logistic")
    assert "needs the package sklearn" in told["left_out"]


def test_dear_rows_and_hardly_trained_networks_run_on_few_worlds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Measuring] = []
    monkeypatch.setattr(tables, "run", lambda settings, on_row: asked.append(settings) or {"rows": {}})
    bench_ladder(RodSettings(tmp_path), print)
    bench_ladder(RodSettings(tmp_path, quick=True), print)
    usual, quick = (settings.only for settings in asked)
    assert set(usual) == set(FEW_WORLDS)
    assert usual["kernel shap"] == tables.DEAR
    assert "intervention" not in usual
    assert quick["intervention"] == tables.QUICK_TRAINED
    assert quick["true P: kernel shap"] == ()
    seeds = {kind: sum(ground.name.startswith(f"{kind}/") for ground in asked[0].grounds) for kind in ("decay", "xor")}
    assert seeds == {"decay": 3, "xor": 1}  # three on the core


def test_every_row_can_be_asked_for_by_its_name() -> None:
    for name in METHODS:
        assert choose_rows(METHODS, name) == [name]
