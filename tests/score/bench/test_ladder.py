"""The ladder: one denominator, true probabilities as the label model, rows that stay, a record nobody can skip."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from oscar_causal.data.batches import encode
from oscar_causal.data.synthetic.worlds import draw, make_world
from oscar_causal.data.synthetic.worlds.write import write_world
from oscar_causal.density.model import sequence_contexts
from oscar_causal.errors import UsageError
from oscar_causal.score.bench.ladder.measuring import LadderSettings, run_ladder
from oscar_causal.score.bench.ladder.methods import METHODS, Stand
from oscar_causal.score.bench.ladder.truth import PairTruth, Scores, score

NOTHING = frozenset[str]()


@pytest.fixture(scope="module")
def static_world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("worlds") / "static"
    write_world("static", 5, folder, train=200, test=60)
    return folder


def test_nothing_returned_is_zero_and_neutral_events_do_not_count() -> None:
    truth = {
        ("1", "a"): PairTruth(frozenset("AB"), frozenset("N")),
        ("2", "a"): PairTruth(frozenset("A"), NOTHING),
        ("3", "a"): PairTruth(NOTHING, frozenset("N")),
        ("4", "a"): PairTruth(NOTHING, NOTHING),
    }
    found = {("1", "a"): frozenset("AN"), ("3", "a"): frozenset("N"), ("4", "a"): frozenset("B")}
    scores = score(found, truth)
    assert scores.precision.tolist() == [1.0, 0.0]
    assert scores.recall.tolist() == [0.5, 0.0]
    assert scores.alarms.tolist() == [0.0, 1.0]
    assert scores.f1() == pytest.approx(2 * 0.5 * 0.25 / 0.75)


def test_the_interval_resamples_sequences_not_pairs() -> None:
    """Ten equal pairs of one sequence are worth one: the interval is as wide as with single pairs."""
    rng = np.random.default_rng(0)
    right = (rng.random(80) < 0.6).astype(float)
    single = Scores(tuple(map(str, range(80))), right, right, np.empty(0))
    tenfold = Scores(tuple(str(i) for i in range(80) for _ in range(10)), *[np.repeat(right, 10)] * 2, np.empty(0))
    assert single.interval() == pytest.approx(tenfold.interval())
    low, high = single.interval()
    expected = 1.96 * np.sqrt(0.6 * 0.4 / 80)
    assert high - low == pytest.approx(2 * expected, rel=0.25)
    assert low < single.f1() < high


def test_true_probabilities_reach_the_estimators(static_world: Path) -> None:
    """Through contexts, vocabulary and encoding the model still gives the world's own P."""
    stand = Stand(static_world, 60)
    model = stand.true_model()
    drawn = draw(make_world("static", 5), 60, "test")
    expected = stand.world.probs(drawn.recorded)
    encoded = encode(stand.test, model.vocabulary, max_length=model.max_length, channels=())
    labels = torch.arange(len(model.vocabulary.labels))
    order = [stand.world.label_names.index(name) for name in model.vocabulary.labels]
    for i in range(60):
        sequence = sequence_contexts(encoded, i)
        whole = torch.tensor([sequence.event_ids.shape[1]])
        np.testing.assert_allclose(model.label_probs(sequence, labels, whole)[0, 0], expected[i][order], rtol=1e-6)


def test_slopes_of_true_probabilities_are_differences_of_log_odds(static_world: Path) -> None:
    """With nothing faded the slope of a type is the fall of the log odds without it."""
    stand = Stand(static_world, 60)
    model, world = stand.true_model(), stand.world
    encoded = encode(stand.test, model.vocabulary, max_length=model.max_length, channels=())
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
    assert world.kind == "static"


def test_rows_are_kept_and_the_same_again(tmp_path: Path) -> None:
    rows = ("perfect boundary by presence", "true P: leave-one-out", "true P: slopes alone")
    settings = LadderSettings(tmp_path / "out", tmp_path / "work", ("static",), (5,), rows, train=200, test=40)
    said: list[str] = []
    first = run_ladder(settings, said.append)
    assert {line.split(":")[0] for line in said} >= {"static-5", "static/5/true P"}
    figures = {key: row["f1"] for key, row in first["rows"].items()}
    assert figures["static/5/true P: leave-one-out"] == 1.0  # one necessary cause, a perfect model
    assert figures["static/5/perfect boundary by presence"] < 0.85
    said.clear()
    again = run_ladder(settings, said.append)
    assert said == ["static-5: there already"]
    assert again["rows"] == first["rows"]
    (tmp_path / "out" / "ladder.json").unlink()
    measured = run_ladder(settings)
    assert {key: row["f1"] for key, row in measured["rows"].items()} == figures
    assert "static/5" in (tmp_path / "out" / "ladder.md").read_text()


def test_what_is_kept_for_the_record_needs_a_prediction(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="seed 1000: is kept for the record"):
        LadderSettings(tmp_path, tmp_path, ("decay",), (1000,))
    with pytest.raises(UsageError, match="world network: is kept for the record"):
        LadderSettings(tmp_path, tmp_path, ("network",), (1,))
    rows = ("perfect boundary by presence",)
    sizes = {"train": 30, "test": 20, "record": "presence alone stays below 0.9"}
    run_ladder(LadderSettings(tmp_path / "out", tmp_path / "work", ("unanswered",), (1000,), rows, **sizes))
    lines = (tmp_path / "out" / "record.jsonl").read_text().splitlines()
    assert [json.loads(line)["prediction"] for line in lines] == ["presence alone stays below 0.9"]


def test_every_method_says_what_it_costs(static_world: Path) -> None:
    stand = Stand(static_world, 4)
    for name, method in METHODS.items():
        answer = method(stand)
        assert (answer.passes is None) == (not name.startswith("true P"))
        assert set(answer.found) <= set(stand.truth)
