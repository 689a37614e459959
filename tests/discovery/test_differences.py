"""Differences of means, their errors and falls of odds against scipy and plain arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from oscar_causal.discovery.differences import differences, odds_fall


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.8])
def test_differences_are_those_of_welchs_test(rate: float) -> None:
    rng = np.random.default_rng(1)
    outcome, masks = rng.random(60), rng.random((60, 5)) < rate
    found = differences(outcome, masks, 0.95)
    for k, mask in enumerate(masks.T):
        test = scipy.stats.ttest_ind(outcome[~mask], outcome[mask], equal_var=False)
        assert found.effects[k] == pytest.approx(outcome[~mask].mean() - outcome[mask].mean())
        assert found.error(k) == pytest.approx(found.effects[k] / test.statistic)
        assert (found.kept[k], found.replaced[k]) == ((~mask).sum(), mask.sum())


def test_without_a_contrast_there_is_no_effect_and_no_error() -> None:
    masks = np.array([[True, False, True], [True, False, False], [True, False, False]])
    found = differences(np.array([0.2, 0.5, 0.9]), masks, 0.95)
    assert found.effects.tolist() == pytest.approx([0.0, 0.0, 0.5])
    assert [found.error(k) for k in range(3)] == [None, None, None]
    assert (found.low[:2].tolist(), found.high[:2].tolist()) == ([-1.0, -1.0], [1.0, 1.0])


@pytest.mark.parametrize(("probability", "fall"), [(0.9, 0.3), (0.5, 0.1), (0.02, 0.015), (0.99, 0.5)])
def test_the_fall_is_of_odds(probability: float, fall: float) -> None:
    def odds(p: float) -> float:
        return p / (1 - p)

    share = (odds(probability) - odds(probability - fall)) / odds(probability)
    assert float(odds_fall(probability, fall)) == pytest.approx(share)
    assert float(odds_fall(probability, -fall / 100)) == 0.0
