"""Figures of probabilities against literal loops and scikit-learn."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from oscar_causal.data.sequences import from_records
from oscar_causal.data.synthetic.worlds.write import write_world
from oscar_causal.score.bench.label_models.material import Material, Predicted
from oscar_causal.score.bench.label_models.measuring import label_figures
from oscar_causal.score.bench.label_models.scoring import base_rates, best_thresholds, figures, log_losses

NAMES = ["a", "b", "c"]


def made(seed: int = 0) -> tuple[Predicted, tuple[np.ndarray, np.ndarray], np.ndarray, Predicted]:
    """A model that hears half of the log odds; labels drawn from the true probabilities."""
    rng = np.random.default_rng(seed)
    odds = [rng.normal(-1, 1.5, size=(n, 3)).round(1) for n in (150, 200, 400)]  # rounded: there are ties
    true = [1 / (1 + np.exp(-part)) for part in odds]
    heard = [1 / (1 + np.exp(-0.5 * part)) for part in odds]
    came = [rng.random(part.shape) < part for part in true]
    return Predicted(heard[0], heard[1]), (came[0], came[1]), came[2], Predicted(true[0], true[1])


def loss(probs: np.ndarray, came: np.ndarray) -> float:
    """Mean log loss, pair by pair."""
    pairs = zip(probs.ravel().tolist(), came.ravel().tolist(), strict=True)
    return sum(-math.log(p if y else 1 - p) for p, y in pairs) / probs.size


def f1(probs: np.ndarray, came: np.ndarray, cut: float) -> float:
    hits = sum(p >= cut and y for p, y in zip(probs, came, strict=True))
    named, true = sum(p >= cut for p in probs), sum(came)
    return 2 * hits / (named + true) if named + true else 0.0


def test_every_figure_against_a_literal_computation() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    model, came, learnt, bayes = made()
    found = figures(model, came, learnt, NAMES, bayes)
    rates = (learnt.sum(0) + 0.5) / (len(learnt) + 1)
    base = loss(np.tile(rates, (200, 1)), came[1])
    assert found["log_loss"] == pytest.approx(loss(model.test, came[1]))
    assert found["log_loss_base"] == pytest.approx(base)
    expected = (base - found["log_loss"]) / (base - loss(bayes.test, came[1]))
    assert found["skill"] == pytest.approx(expected)
    assert 0.2 < found["skill_low"] < expected < found["skill_high"] < 1.0
    assert found["gain"] == pytest.approx(1 - found["log_loss"] / base)
    own = []
    for y, name in enumerate(NAMES):
        ap = metrics.average_precision_score(came[1][:, y], model.test[:, y])
        assert found["per_label"][name]["average_precision"] == pytest.approx(ap)
        at_best = max(f1(model.validation[:, y], came[0][:, y], cut) for cut in set(model.validation[:, y]))
        cut = found["per_label"][name]["threshold"]
        assert f1(model.validation[:, y], came[0][:, y], cut) == pytest.approx(at_best)
        own.append(f1(model.test[:, y], came[1][:, y], cut))
        assert found["per_label"][name]["f1"] == pytest.approx(own[-1])
        part = [loss(probs[:, [y]], came[1][:, [y]]) for probs in (np.tile(rates, (200, 1)), model.test, bayes.test)]
        assert found["per_label"][name]["skill"] == pytest.approx((part[0] - part[1]) / (part[0] - part[2]))
    assert found["f1"]["macro"] == pytest.approx(np.mean(own))
    assert found["f1_ratio"]["macro"] == pytest.approx(found["f1"]["macro"] / found["f1_bayes"]["macro"])
    # half of the log odds rank like all of them: with thresholds of their own nothing is lost
    assert found["f1_ratio"] == pytest.approx({"micro": 1.0, "macro": 1.0})


def test_thresholds_are_not_chosen_on_the_test_part() -> None:
    model, came, learnt, bayes = made()
    turned = (came[0], ~came[1])
    cuts = [figures(model, which, learnt, NAMES, bayes)["per_label"]["a"]["threshold"] for which in (came, turned)]
    assert cuts[0] == cuts[1]


def test_the_sure_and_wrong_cost_a_finite_log_loss() -> None:
    assert log_losses(np.array([[1.0]]), np.array([[False]]))[0, 0] == pytest.approx(-math.log(1e-6))
    assert base_rates(np.zeros((9, 1), bool)).tolist() == [0.05]


def test_a_label_without_positives_is_never_predicted() -> None:
    assert best_thresholds(np.full((3, 1), 0.7), np.zeros((3, 1), bool)).tolist() == [math.inf]


def test_true_probabilities_have_skill_one_and_base_rates_none(tmp_path: Path) -> None:
    write_world("static", 5, tmp_path / "world", train=400, test=150)
    from oscar_causal.data.sequences import read_dataset

    parts = [read_dataset(tmp_path / "world" / part) for part in ("train", "test")]
    known = label_figures("true P", parts[0], parts[1], tmp_path)
    assert (known["skill"], known["skill_low"], known["skill_high"]) == (1.0, 1.0, 1.0)
    assert known["f1_ratio"] == {"micro": 1.0, "macro": 1.0}
    nothing = label_figures("base rate", parts[0], parts[1], tmp_path)
    assert (nothing["skill"], nothing["gain"]) == (0.0, 0.0)
    assert nothing["f1_ratio"]["micro"] < 0.7


def test_datasets_without_truth_have_a_gain_but_no_skill(tmp_path: Path) -> None:
    rows = [{"sequence_id": str(i), "events": ["A"], "times": [0], "labels": ["y"] * (i % 3 == 0)} for i in range(90)]
    rows[0]["labels"] = None  # nobody knows: left out
    train, test = from_records(rows), from_records([*rows[:9], {**rows[9], "labels": ["new"]}])
    found = label_figures("base rate", train, test, tmp_path)
    assert (found["skill"], found["f1_ratio"], found["log_loss_bayes"]) == (None, None, None)
    assert (found["sequences"], found["labels"], found["gain"]) == (9, 1, 0.0)  # label `new`: nobody could learn it
    material = Material(train, test, tmp_path)
    assert len(material.learn) + len(material.validation) == 89
