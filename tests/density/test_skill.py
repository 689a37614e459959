"""Skill of a label: figures against a literal twin, no trust in noise, trust in a rare label with real signal."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
import torch

from oscar_causal.density.labels import fit_calibration
from oscar_causal.density.quality import Judged, calibrated, quality_content
from oscar_causal.density.reference import Reference, base_rates
from oscar_causal.density.skill import log_losses, mean_interval, precision_interval, random_precision

RATES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.55, 0.6)


def rows_of(probs: np.ndarray, truth: np.ndarray, rates: np.ndarray | None = None) -> list[dict[str, Any]]:
    """The rows of `per_label`, every sequence of a subject of its own."""
    names = tuple(f"label {j}" for j in range(truth.shape[1]))
    rates = base_rates(truth) if rates is None else rates
    judged = Judged(probs, truth, (), np.empty((0, 0, truth.shape[1])))
    content = quality_content(judged, Reference(np.arange(len(truth)), rates), names, None, evaluated_on="a test")
    return list(content["per_label"].values())


def weighted_precision(scores: np.ndarray, truth: np.ndarray, weights: np.ndarray) -> float:
    """Average precision with weights, straight from its definition."""
    total = sum(w for w, y in zip(weights, truth, strict=True) if y)
    found = 0.0
    for score, y, w in zip(scores, truth, weights, strict=True):
        if y:
            above = [k for k in range(len(scores)) if scores[k] >= score]
            found += w * sum(weights[k] for k in above if truth[k]) / sum(weights[k] for k in above)
    return found / total


def test_log_loss_and_its_interval_by_hand() -> None:
    probs, truth = np.array([0.8, 0.5, 0.1, 0.4]), np.array([True, True, False, False])
    losses = [-math.log(0.8), -math.log(0.5), -math.log(0.9), -math.log(0.6)]
    assert log_losses(probs, truth) == pytest.approx(losses)
    gains = [math.log(2) - loss for loss in losses]  # against a base rate of 0.5
    mean = sum(gains) / 4
    single = math.sqrt(sum((g - mean) ** 2 for g in gains) / 3 / 4)
    found = mean_interval(np.array(gains), np.arange(4))
    assert (found.value, found.low, found.high) == pytest.approx(
        (mean, mean - 1.959964 * single, mean + 1.959964 * single)
    )
    pairs = [gains[0] + gains[1] - 2 * mean, gains[2] + gains[3] - 2 * mean]  # two subjects of two sequences
    error = math.sqrt(2 / 1 * (pairs[0] ** 2 + pairs[1] ** 2)) / 4
    assert mean_interval(np.array(gains), np.array([0, 0, 1, 1])).low == pytest.approx(mean - 1.959964 * error)
    assert mean_interval(np.array(gains), np.zeros(4, np.int64)).low == -math.inf  # one subject tells nothing


def test_average_precision_by_hand() -> None:
    """Ranks 1 and 3 of four are positive: (1 + 2/3) / 2; tied scores share one rank."""
    scores, truth = np.array([0.9, 0.5, 0.4, 0.1]), np.array([True, False, True, False])
    assert precision_interval(scores, truth, np.arange(4)).value == pytest.approx(5 / 6)
    assert precision_interval(np.full(4, 0.5), truth, np.arange(4)).value == pytest.approx(0.5)


@pytest.mark.parametrize("grouped", [False, True])
def test_interval_of_average_precision_is_the_delta_method(grouped: bool) -> None:
    """The twin takes the derivative by each sequence's weight numerically, ties and all."""
    rng = np.random.default_rng(3)
    truth = rng.random(30) < 0.4
    scores = np.round(rng.random(30) + 0.3 * truth, 1)
    subjects = np.arange(30) // 2 if grouped else np.arange(30)
    step, slopes = 1e-6, []
    for k in range(30):
        ends = [weighted_precision(scores, truth, 1 + sign * step * (np.arange(30) == k)) for sign in (1, -1)]
        slopes.append((ends[0] - ends[1]) / (2 * step))
    sums = [sum(s for s, g in zip(slopes, subjects, strict=True) if g == group) for group in set(subjects.tolist())]
    value, error = weighted_precision(scores, truth, np.ones(30)), math.sqrt(sum(s * s for s in sums))
    reach = 1.959964 * error / (value * (1 - value))
    ends = [1 / (1 + math.exp(-(math.log(value / (1 - value)) + sign * reach))) for sign in (-1, 1)]
    found = precision_interval(scores, truth, subjects)
    assert (found.value, found.low, found.high) == pytest.approx((value, *ends), rel=1e-5)


@pytest.mark.parametrize(("positives", "sequences"), [(1, 4), (2, 5), (3, 3), (1, 1)])
def test_average_precision_of_a_random_order_by_enumeration(positives: int, sequences: int) -> None:
    orders = list(permutations([1] * positives + [0] * (sequences - positives)))
    total = Fraction(0)
    for order in orders:
        total += sum(Fraction(sum(order[: k + 1]), k + 1) for k in range(sequences) if order[k]) / positives
    assert random_precision(positives, sequences) == pytest.approx(float(total / len(orders)))


@pytest.mark.parametrize("noise", ["beta", "shuffled", "calibrated"])
@pytest.mark.parametrize("sequences", [400, 3000])
def test_noise_is_not_trusted(noise: str, sequences: int) -> None:
    """20 labels of rates .01 to .6: noise around it, answers that belong to other sequences, calibrated noise."""
    rng = np.random.default_rng([7, sequences])
    rates = np.array(RATES * 2)
    truth = rng.random((sequences, 20)) < rates
    if noise == "shuffled":
        logits = np.log(rates / (1 - rates)) + 1.5 * rng.normal(size=(sequences, 20))
        probs = 1 / (1 + np.exp(-logits))
    else:
        probs = rng.beta(40 * rates, 40 * (1 - rates), (sequences, 20))
    if noise == "calibrated":  # on the same sequences, as training does
        logits = np.log(probs / (1 - probs)).astype(np.float32)
        probs = calibrated(logits, fit_calibration(torch.from_numpy(logits), torch.from_numpy(truth)))
    rows = rows_of(probs, truth, rates)
    assert sum(row["trusted"] for row in rows) <= 1
    assert all(row["reason"] for row in rows if not row["trusted"])


def test_a_rare_label_with_signal_is_trusted() -> None:
    """Rate .01, average precision five times that and more, F1 at 0.5 of nothing."""
    rng = np.random.default_rng(0)
    probs = 1 / (1 + np.exp(5.4 - 1.3 * rng.normal(size=(20_000, 1))))
    truth = rng.random(probs.shape) < probs
    (row,) = rows_of(probs, truth)
    assert 0.008 < row["base_rate"]["rate"] < 0.012
    assert row["average_precision"] > 5 * row["base_rate"]["rate"]
    assert row["f1"] < 0.02  # at 0.5
    assert row["f1_own"] > row["always_yes"]["f1"]
    assert row["trusted"], row["reason"]
    (few,) = rows_of(probs[:300], truth[:300])
    assert not few["trusted"]
    assert f"only {int(truth[:300].sum())} held-out sequences carry it" in few["reason"]


def test_f1_below_always_yes_is_not_trusted() -> None:
    """Always yes has .697, the model .655: a clear log loss and average precision do not help."""
    truth, said = np.zeros(2000, bool), np.zeros(2000, bool)
    truth[:1070] = True  # 2 x 1070 / 3070 = .697
    said[:660] = said[1070:1355] = True  # 2 x 660 / (945 + 1070) = .655
    order = np.random.default_rng(0).permutation(2000)
    probs = np.where(said, 660 / 945, 410 / 1055)
    (row,) = rows_of(probs[order, None], truth[order, None])
    assert (row["always_yes"]["f1"], row["f1"]) == pytest.approx((0.697, 0.655), abs=5e-4)
    assert row["log_loss_gain"]["low"] > 0
    assert row["average_precision_interval"]["low"] > row["base_rate"]["average_precision"]
    assert not row["trusted"]
    assert row["reason"] == "F1 0.655 (0.697 at its own threshold) is not above always-yes 0.697"


def test_a_high_f1_alone_decides_nothing() -> None:
    """Nine of ten sequences have the label; always saying so gives F1 .95 and no skill."""
    truth = np.random.default_rng(1).random((500, 1)) < 0.9
    (row,) = rows_of(np.full((500, 1), 0.9), truth)
    assert row["f1"] > 0.9
    assert not row["trusted"]
    assert "log loss is not clearly below" in row["reason"]
    (certain,) = rows_of(np.full((500, 1), 0.99), np.ones((500, 1), bool))
    assert "only 0 held-out sequences lack it" in certain["reason"]


def test_a_good_order_with_bad_probabilities_is_not_trusted() -> None:
    rng = np.random.default_rng(2)
    chance = rng.beta(0.5, 1.5, (800, 1))
    truth = rng.random((800, 1)) < chance
    assert rows_of(chance, truth)[0]["trusted"]
    assert "log loss" in rows_of(chance**0.1, truth)[0]["reason"]


def test_a_better_rate_without_any_order_is_not_trusted() -> None:
    """The rate has moved since training and the model knows the new one, but nothing about single sequences."""
    rng = np.random.default_rng(4)
    truth = rng.random((2000, 1)) < 0.3
    (row,) = rows_of(np.full((2000, 1), 0.3), truth, np.array([0.1]))
    assert row["log_loss_gain"]["low"] > 0
    assert not row["trusted"]
    assert "average precision is not clearly above" in row["reason"]


def test_probabilities_that_never_reach_a_tenth_can_have_skill() -> None:
    rng = np.random.default_rng(5)
    probs = np.where(rng.random((20_000, 1)) < 0.1, 0.06, 0.005)
    truth = rng.random(probs.shape) < probs
    (row,) = rows_of(probs, truth)
    assert 0.005 < row["own_threshold"] < 0.06
    assert row["trusted"], row["reason"]
