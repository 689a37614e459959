"""Negative controls against enumeration of every guess."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from oscar_causal.data.sequences import Dataset, from_records
from oscar_causal.score.controls import control_counts, controls, present_events
from oscar_causal.score.matching import match, summarise

RECORDS = [
    {"sequence_id": "s1", "events": ["A", "B", "C", "A"], "times": [0, 1, 2, 3], "labels": ["x", "y"]},
    {"sequence_id": "s2", "events": ["C", "D", "E", "F"], "times": [0, 1, 2, 3], "labels": ["x"]},
    {"sequence_id": "s3", "events": ["C", "F"], "times": [0, 1], "labels": []},
]
FOUND = {("s1", "x"): frozenset("AB"), ("s1", "y"): frozenset(), ("s2", "x"): frozenset("C")}
TRUTH = {("s1", "x"): frozenset("A"), ("s1", "y"): frozenset("B"), ("s2", "x"): frozenset("DEZ")}  # Z is absent


@pytest.fixture
def data() -> Dataset:
    return from_records(RECORDS)


def test_a_random_guess_is_the_mean_over_all_guesses(data: Dataset) -> None:
    present = {"s1": "ABC", "s2": "CDEF"}
    every = [[frozenset(guess) for guess in combinations(present[pair[0]], len(FOUND[pair]))] for pair in FOUND]
    outcomes = []
    for first in every[0]:
        for second in every[1]:
            for third in every[2]:
                guess = dict(zip(FOUND, (first, second, third), strict=True))
                outcomes.append(summarise(match(guess, TRUTH)))
    expected = controls(match(FOUND, TRUTH), TRUTH, present_events(data, list(FOUND)))["random"]
    for average in ("sample", "micro", "macro", "weighted"):
        for figure in ("precision", "recall", "f1"):
            mean = np.mean([outcome[average][figure] for outcome in outcomes])
            assert expected[average][figure] == pytest.approx(mean, abs=1e-12), (average, figure)


def test_a_guess_is_never_larger_than_what_is_present(data: Dataset) -> None:
    pair, truth = ("s3", "x"), {("s3", "x"): frozenset("CF")}
    counts = control_counts(match({pair: frozenset("ABCDE")}, truth), truth, present_events(data, [pair]))
    for scores in counts.values():
        assert (scores.found.tolist(), scores.common.tolist()) == ([2.0], [2.0])


@pytest.mark.parametrize(("size", "guess"), [(0, ""), (1, "C"), (2, "CF"), (3, "CFD"), (4, "CFDE"), (9, "CFDE")])
def test_the_most_frequent_events_present(data: Dataset, size: int, guess: str) -> None:
    """C comes 3 times, A and F twice, B, D and E once; ties go by name. s2 holds C, D, E, F."""
    pair, found = ("s2", "x"), frozenset(str(k) for k in range(size))
    for event in "ABCDEFZ":
        truth = {pair: frozenset(event)}
        counts = control_counts(match({pair: found}, truth), truth, present_events(data, [("s1", "x"), pair]))
        assert counts["frequent"].common.tolist() == [float(event in guess)], event


def test_both_controls_are_summaries(data: Dataset) -> None:
    found = controls(match(FOUND, TRUTH), TRUTH, present_events(data, list(FOUND)))
    assert found["frequent"]["sample"]["recall"] == pytest.approx((1 + 0 + 0) / 3)
    assert found["random"]["sample"]["recall"] == pytest.approx((2 / 3 + 0 + 1 * (2 / 4) / 3) / 3)
