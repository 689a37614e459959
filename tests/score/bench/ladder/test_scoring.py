"""One denominator for all: figures worked out by hand, intervals over sequences."""

from __future__ import annotations

import numpy as np
import pytest

from oscar_causal.score.bench.ladder.interface import Answer, Reasons
from oscar_causal.score.bench.ladder.scoring import Scores, score


def test_the_denominator_is_every_pair_with_a_truth() -> None:
    truth = {
        ("1", "y"): Reasons(frozenset("AB")),
        ("2", "y"): Reasons(frozenset("A"), frozenset("C")),
        ("3", "y"): Reasons(frozenset("A")),
        ("4", "y"): Reasons(frozenset()),
        ("5", "y"): Reasons(frozenset(), frozenset("C")),
    }
    answers = {
        ("1", "y"): Answer(frozenset("AX")),
        ("2", "y"): Answer(frozenset("AC")),  # C is unknown: neither right nor wrong
        ("4", "y"): Answer(frozenset("A")),
        ("5", "y"): Answer(frozenset("C")),
        ("9", "z"): Answer(frozenset("Q")),  # nobody asked
    }
    scores = score(answers, truth)
    assert scores.precision.tolist() == [0.5, 1.0, 0.0]
    assert scores.recall.tolist() == [0.5, 1.0, 0.0]
    assert scores.alarms.tolist() == [1.0, 0.0]
    found = scores.figures()
    assert (found["precision"], found["recall"], found["f1"]) == (pytest.approx(0.5),) * 3
    assert found["micro_f1"] == pytest.approx(2 * 2 / (3 + 4))  # 2 hits of 3 named and 4 true
    assert (found["pairs"], found["empty_pairs"], found["false_alarms"]) == (3, 2, 0.5)


def test_only_unknown_named_is_nothing_named() -> None:
    found = score({("1", "y"): Answer(frozenset("C"))}, {("1", "y"): Reasons(frozenset("A"), frozenset("C"))})
    assert (found.f1(), found.precision.tolist()) == (0.0, [0.0])


def test_units_are_scored_once() -> None:
    truth = {("1", "y"): Reasons(frozenset({"P=0", "P=1"}), frozenset({"Q=0"}))}
    found = score({("1", "y"): Answer(frozenset({"P=3", "R=0"}))}, truth, lambda event: event[0])
    assert (found.precision.tolist(), found.recall.tolist()) == ([0.5], [1.0])


def test_nothing_to_score() -> None:
    figures = score({}, {("1", "y"): Reasons(frozenset())}).figures()
    assert (figures["pairs"], figures["f1"], figures["false_alarms"]) == (0, 0.0, 0.0)


def scores_of(right: np.ndarray, times: int = 1) -> Scores:
    """Pairs with one cause, found or not."""
    names = tuple(str(i) for i in range(len(right)) for _ in range(times))
    right = np.repeat(right, times)
    return Scores(names, np.ones(len(right)), np.ones(len(right)), right, np.empty(0))


def test_the_interval_resamples_sequences_not_pairs() -> None:
    """Ten equal pairs of one sequence are worth one: the interval is as wide as with single pairs."""
    right = (np.random.default_rng(0).random(80) < 0.6).astype(float)
    single, tenfold = scores_of(right).figures(), scores_of(right, 10).figures()
    assert (single["f1_low"], single["f1_high"]) == pytest.approx((tenfold["f1_low"], tenfold["f1_high"]))
    assert single["f1_high"] - single["f1_low"] == pytest.approx(2 * 1.96 * np.sqrt(0.6 * 0.4 / 80), rel=0.25)
    assert single["f1_low"] < single["f1"] < single["f1_high"]


def test_differences_are_paired() -> None:
    """Two methods that differ on few sequences: the interval knows of these alone."""
    right = (np.random.default_rng(1).random(400) < 0.6).astype(float)
    better = right.copy()
    better[np.flatnonzero(right == 0)[:20]] = 1.0
    told = scores_of(better).minus(scores_of(right))
    assert told["difference"] == pytest.approx(20 / 400)
    expected = 1.96 * np.sqrt(0.05 * 0.95 / 400)
    assert (told["high"] - told["low"]) / 2 == pytest.approx(expected, rel=0.2)
    same = scores_of(right).minus(scores_of(right))
    assert (same["difference"], same["low"], same["high"]) == (0.0, 0.0, 0.0)
