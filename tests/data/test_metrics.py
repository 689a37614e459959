"""Scores against scikit-learn, on random tables with empty labels, ties and extremes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve
from sklearn.metrics import average_precision_score, precision_recall_fscore_support

from oscar_causal.data.metrics import (
    average_precision,
    averages,
    count,
    harmonic,
    label_scores,
    reliability,
)

SEEDS = st.integers(0, 2**32 - 1)


def table(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities on a coarse grid (ties!) and truths; some labels never occur, some always."""
    rng = np.random.default_rng(seed)
    rows, labels = int(rng.integers(1, 40)), int(rng.integers(2, 6))  # one column alone is binary to scikit-learn
    probs = np.round(rng.random((rows, labels)), int(rng.integers(1, 4)))
    truth = rng.random((rows, labels)) < rng.choice([0.0, 0.1, 0.5, 1.0], labels)
    return probs, truth


@given(SEEDS)
@settings(max_examples=80, deadline=None)
def test_scores_are_scikit_learns(seed: int) -> None:
    probs, truth = table(seed)
    predicted = probs > 0.5
    counts = count(predicted, truth)
    precision, recall, f1, support = precision_recall_fscore_support(
        truth, predicted, average=None, zero_division=0, labels=range(truth.shape[1])
    )
    found = label_scores(counts)
    for one, two in zip(found, (precision, recall, f1), strict=True):
        np.testing.assert_allclose(one, two)
    np.testing.assert_array_equal(counts.support, support)
    told = averages(counts)
    occurs = np.flatnonzero(support)
    for name in ("micro", "macro", "weighted"):
        labels = None if name == "micro" else occurs
        if name != "micro" and not len(occurs):
            assert set(told[name].values()) == {0.0}
            continue
        p, r, f, _ = precision_recall_fscore_support(truth, predicted, average=name, labels=labels, zero_division=0)
        assert told[name]["precision"] == pytest.approx(p)
        assert told[name]["recall"] == pytest.approx(r)
        assert told[name]["f1"] == pytest.approx(f)
        assert told[name]["f1_of_means"] == pytest.approx(2 * p * r / (p + r) if p + r else 0)


@given(SEEDS)
@settings(max_examples=80, deadline=None)
def test_average_precision_is_scikit_learns(seed: int) -> None:
    probs, truth = table(seed)
    for j, found in enumerate(average_precision(probs, truth)):
        if truth[:, j].any():
            assert found == pytest.approx(average_precision_score(truth[:, j], probs[:, j]))
        else:
            assert math.isnan(found)


@given(SEEDS)
@settings(max_examples=80, deadline=None)
def test_counts_of_parts_add_up(seed: int) -> None:
    probs, truth = table(seed)
    cut = len(probs) // 2
    whole = count(probs > 0.5, truth)
    merged = count(probs[:cut] > 0.5, truth[:cut]) + count(probs[cut:] > 0.5, truth[cut:])
    for name in ("hits", "false_alarms", "misses"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(merged, name))


@given(SEEDS, st.integers(2, 12))
@settings(max_examples=80, deadline=None)
def test_reliability_is_a_literal_count(seed: int, bins: int) -> None:
    probs, truth = table(seed)
    rows, error = reliability(probs, truth, bins=bins)
    cells = list(zip(probs.ravel().tolist(), truth.ravel().tolist(), strict=True))
    expected = 0.0
    for b in range(bins):
        mine = [(p, t) for p, t in cells if min(int(p * bins), bins - 1) == b]
        row = [r for r in rows if r["from"] == b / bins]
        assert len(row) == bool(mine)
        if mine:
            predicted, observed = np.mean(mine, axis=0)
            assert row[0]["count"] == len(mine)
            assert row[0]["predicted"] == pytest.approx(predicted)
            assert row[0]["observed"] == pytest.approx(observed)
            expected += abs(predicted - observed) * len(mine) / len(cells)
    assert error == pytest.approx(expected)


def test_reliability_follows_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    probs = rng.random(5000)
    truth = rng.random(5000) < probs**2
    rows, _ = reliability(probs, truth)
    observed, predicted = calibration_curve(truth, probs, n_bins=10)
    np.testing.assert_allclose([row["observed"] for row in rows], observed)
    np.testing.assert_allclose([row["predicted"] for row in rows], predicted)


def test_edges() -> None:
    assert harmonic(0, 0) == 0
    assert harmonic(1, 0.5) == pytest.approx(2 / 3)
    assert reliability(np.empty((0, 2)), np.empty((0, 2), bool)) == ([], 0.0)
    rows, error = reliability(np.array([0.0, 1.0]), np.array([False, True]))
    assert error == 0
    assert [row["count"] for row in rows] == [1, 1]
