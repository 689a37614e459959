"""Thresholds of a label's own: what scikit-learn's F1 is best at, and never judged where they were chosen."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import f1_score

from oscar_causal.density.quality import CUTS, MIN_POSITIVES, PULL, THRESHOLD, best_thresholds, crossed, overall


@pytest.fixture(scope="module")
def doubtful() -> tuple[np.ndarray, np.ndarray]:
    """Four labels whose probabilities are right, too low, too high and worth nothing; the last is rare."""
    rng = np.random.default_rng(5)
    chance = rng.beta(0.3, 0.9, (1200, 4))
    truth = rng.random((1200, 4)) < chance
    truth[:, 3] = rng.random(1200) < 0.002
    log_odds = np.log(chance / (1 - chance)) + np.array([0.0, -2.0, 2.0, 0.0])
    return 1 / (1 + np.exp(-log_odds)), truth


def test_they_are_those_with_the_best_f1(doubtful: tuple[np.ndarray, np.ndarray]) -> None:
    probs, truth = doubtful
    found = best_thresholds(probs, truth)
    for j in range(3):
        scores = [
            f1_score(truth[:, j], probs[:, j] > cut, zero_division=0) * (1 - PULL * abs(cut - THRESHOLD))
            for cut in CUTS
        ]
        assert found[j] == CUTS[int(np.argmax(scores))]
    assert found[1] < found[0] < found[2]
    assert truth[:, 3].sum() < MIN_POSITIVES
    assert found[3] == THRESHOLD


def test_they_are_judged_on_sequences_that_did_not_choose_them(doubtful: tuple[np.ndarray, np.ndarray]) -> None:
    probs, truth = doubtful
    predicted = np.zeros_like(truth)
    predicted[::2] = probs[::2] > best_thresholds(probs[1::2], truth[1::2])
    predicted[1::2] = probs[1::2] > best_thresholds(probs[::2], truth[::2])
    told = overall(probs, truth)
    for average in ("micro", "macro", "weighted"):
        wanted = f1_score(truth, predicted, average=average, zero_division=0)
        assert told["at_own_thresholds"][average]["f1"] == pytest.approx(wanted)
    assert told["at_own_thresholds"]["weighted"]["f1"] > told["weighted"]["f1"] + 0.02


def test_luck_is_not_counted_as_skill() -> None:
    """Probabilities that say nothing: the best threshold on the same sequences looks better than it is."""
    rng = np.random.default_rng(2)
    probs, truth = rng.random((400, 30)), rng.random((400, 30)) < 0.3
    counts = crossed(probs, truth)
    honest = (2 * counts.hits / (2 * counts.hits + counts.false_alarms + counts.misses)).mean()
    cheated = np.mean([f1_score(truth[:, j], probs[:, j] > best_thresholds(probs, truth)[j]) for j in range(30)])
    assert honest < cheated


def test_one_sequence_or_none_can_be_judged() -> None:
    for size in (0, 1, 2):
        assert crossed(np.full((size, 3), 0.9), np.ones((size, 3), bool)).hits.tolist() == [size] * 3
