"""Drawn sequences, times and labels against the exact laws (five standard errors, fixed seeds)."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare

from oscar_causal.data.solvable import EXAMPLES, example

COUNT = 20_000


@pytest.mark.parametrize("name", EXAMPLES)
def test_label_rates_and_calibration(name):
    process = example(name)
    drawn = process.sample(COUNT, np.random.default_rng(31))
    rate = process.label_probs_prefix([])
    assert (np.abs(drawn.labels.mean(axis=0) - rate) < 5 * np.sqrt(rate * (1 - rate) / COUNT)).all()
    for length in (2, process.length):
        probs = process.label_probs_prefix(drawn.event_ids[:, :length])  # (n, Y)
        for label in range(probs.shape[1]):
            likely = probs[:, label] > np.median(probs[:, label])
            for group in (likely, ~likely):
                expected = probs[group, label]
                error = np.sqrt((expected * (1 - expected)).sum())
                assert abs(drawn.labels[group, label].sum() - expected.sum()) <= 5 * error


@pytest.mark.parametrize("name", ["announcer", "hidden", "ties"])
def test_next_events_follow_the_law(name):
    process = example(name)
    drawn = process.sample(COUNT, np.random.default_rng(32)).event_ids
    laws = process.next_event_probs_along(drawn)  # (n, L, V)
    for i in range(process.length):
        after_a = (drawn[:, i - 1] == 0) if i else np.ones(COUNT, dtype=bool)
        counts = np.bincount(drawn[after_a, i], minlength=laws.shape[-1])
        expected = laws[after_a, i].sum(axis=0)
        assert (np.abs(counts - expected) < 5 * np.sqrt(expected) + 3).all()


def test_whole_sequences_follow_the_law(case):
    drawn = case.process.sample(COUNT, np.random.default_rng(33)).event_ids
    codes = np.ravel_multi_index(tuple(drawn.T), (len(case.literal.types),) * case.process.length)
    counts = np.bincount(codes, minlength=len(case.literal.sequences))
    probs = np.array([case.literal.prob(x) for x in case.literal.sequences])
    order = np.argsort(probs)
    fortieths = (np.cumsum(probs[order]) * 40).astype(int).clip(0, 39)
    _, bins = np.unique(fortieths, return_inverse=True)  # about forty groups of about equal probability
    expected = np.bincount(bins, weights=probs[order]) * COUNT
    assert chisquare(np.bincount(bins, weights=counts[order]), expected).pvalue > 1e-4


def test_labels_and_driver_given_each_other(case):
    drawn = case.process.sample(COUNT, np.random.default_rng(34))
    for driver in range(len(case.literal.drivers)):
        group = drawn.hidden == bool(driver)
        share = case.literal.drivers[driver]
        assert abs(group.mean() - share) <= 5 * np.sqrt(share * (1 - share) / COUNT)
        distinct, counts = np.unique(drawn.event_ids[group], axis=0, return_counts=True)
        probs = np.array([case.literal.mechanism(tuple(x), driver) for x in distinct.tolist()])  # (sequences, Y)
        error = np.sqrt(counts @ (probs * (1 - probs)))
        assert (np.abs(drawn.labels[group].sum(axis=0) - counts @ probs) <= 5 * error).all()


def test_times_rise_except_inside_ties():
    process = example("ties")
    drawn = process.sample(300, np.random.default_rng(35))
    gaps = np.diff(drawn.times, axis=1)
    tied = np.isin(np.arange(1, process.length), process.config.tied)
    assert (gaps[:, tied] == 0).all()
    assert (gaps[:, ~tied] >= 1).all()
    assert (drawn.times[:, 0] == 0).all()
    assert drawn.event_ids.dtype == np.int32
    assert drawn.labels.shape == (300, 2)
    assert not drawn.hidden.any()


def test_one_seed_one_sample_and_none_is_fine():
    process = example("hidden")
    first, second = (process.sample(50, np.random.default_rng(36)) for _ in range(2))
    np.testing.assert_array_equal(first.event_ids, second.event_ids)
    np.testing.assert_array_equal(first.times, second.times)
    np.testing.assert_array_equal(first.labels, second.labels)
    assert process.sample(0, np.random.default_rng(0)).event_ids.shape == (0, process.length)
