"""Pooled means: against plain formulas and by simulation, subjects that differ and repeat included."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from oscar_causal.discovery.evidence import FOLDS, GROUPS, PAIR_KEYS, PAIR_SUMS, fixed
from oscar_causal.discovery.pooling import GroupedMean, fleet_q_values, grouped_mean, pair_sums, spread


def table(effects: np.ndarray, errors: np.ndarray, groups: np.ndarray) -> pa.Table:
    """One pair, one row per sequence."""
    number = np.ones(len(effects), np.int64)
    columns = {
        "label": ["y"] * len(effects), "event": ["A"] * len(effects), "window": 0 * number, "group": groups,
        "present": number, "tested": number, "effect": fixed(effects), "effect_square": fixed(effects**2),
        "noise": fixed(errors**2), "noisy": number, "causes": 0 * number, "inhibitors": 0 * number,
    }  # fmt: skip
    assert [*columns] == [*PAIR_KEYS, *PAIR_SUMS]
    return pa.table(columns)


def test_one_sequence_per_group_is_the_textbook_mean() -> None:
    effects = np.random.default_rng(0).normal(0.2, 0.3, GROUPS)
    found = pair_sums(table(effects, np.zeros(GROUPS), np.arange(GROUPS))).mean_effect()
    assert found.mean[0] == pytest.approx(effects.mean(), abs=1e-8)
    assert found.se[0] == pytest.approx(stats.sem(effects), rel=1e-6)
    low, high = found.interval(0.95)
    assert (low[0], high[0]) == pytest.approx(
        stats.t.interval(0.95, GROUPS - 1, effects.mean(), stats.sem(effects)), abs=1e-6
    )
    assert found.p_values(0.0)[0] == pytest.approx(stats.ttest_1samp(effects, 0.0).pvalue, rel=1e-4)


def test_sequences_of_one_car_do_not_count_as_many_cars() -> None:
    rng = np.random.default_rng(1)
    alone = rng.normal(0.0, 0.3, 20)
    once = pair_sums(table(alone, np.zeros(20), np.arange(20))).mean_effect()
    often = pair_sums(table(np.repeat(alone, 50), np.zeros(1000), np.repeat(np.arange(20), 50))).mean_effect()
    assert often.se[0] == pytest.approx(once.se[0], rel=1e-6)
    assert often.groups[0] == 20


def test_the_interval_test_keeps_its_level_at_the_edge_of_the_null() -> None:
    rng, runs, delta = np.random.default_rng(2), 4000, 0.05
    groups = rng.integers(0, GROUPS, 40)
    rejected = 0
    for _ in range(runs // 40):
        cars = rng.normal(delta, 0.2, (40, 40)) + rng.normal(0, 0.05, (40, 40))
        total, count = np.zeros((40, GROUPS)), np.zeros((40, GROUPS), np.int64)
        np.add.at(total.T, groups, cars.T)
        np.add.at(count.T, groups, 1)
        rejected += int((grouped_mean(total, count, np.zeros(40)).p_values(delta) <= 0.05).sum())
    assert 0.035 < rejected / runs < 0.065


def test_few_groups_widen_everything_and_one_says_nothing() -> None:
    one = GroupedMean(np.array([0.9]), np.array([0.0]), np.array([1]))
    assert one.p_values(0.05)[0] == 1.0
    assert [float(limit[0]) for limit in one.interval(0.95)] == [-1.0, 1.0]
    assert fleet_q_values(GroupedMean(np.array([0.9]), np.array([0.01]), np.array([2])), 0.05)[0] == 1.0
    three = GroupedMean(np.array([0.5, 0.5]), np.array([0.1, 0.1]), np.array([3, 60]))
    assert three.p_values(0.05)[0] > 20 * three.p_values(0.05)[1]


def test_measurement_noise_is_a_floor_of_the_error() -> None:
    found = pair_sums(table(np.full(9, 0.4), np.full(9, 0.3), np.arange(9))).mean_effect()
    assert found.se[0] == pytest.approx(0.1, rel=1e-6)


@pytest.mark.parametrize("sd", [0.0, 0.25])
def test_spread_between_sequences_is_told_from_measurement_noise(sd: float) -> None:
    rng = np.random.default_rng(3)
    errors = np.full(6000, 0.2)
    effects = np.clip(rng.normal(0.1, sd, 6000) + rng.normal(0, errors), -1, 1)
    found, low, share = (
        float(part[0]) for part in spread(pair_sums(table(effects, errors, rng.integers(0, GROUPS, 6000))))
    )
    assert found == pytest.approx(sd, abs=0.04)
    assert low <= found
    assert (low > 0.2) == (sd > 0)
    assert share == pytest.approx(sd**2 / (sd**2 + 0.04), abs=0.04)


def test_the_bound_of_the_spread_is_rarely_above_it() -> None:
    """One-sided, 95 %: over many pairs of few sequences, about one in twenty."""
    rng, sd, above = np.random.default_rng(5), 0.2, 0
    for _ in range(400):
        effects = rng.normal(0.0, sd, 60) + rng.normal(0, 0.1, 60)
        _, low, _ = spread(pair_sums(table(np.clip(effects, -1, 1), np.full(60, 0.1), np.arange(60))))
        above += low[0] > sd
    assert 0.01 < above / 400 < 0.1


def test_a_fold_left_out_leaves_no_trace() -> None:
    rng = np.random.default_rng(4)
    groups = rng.integers(0, GROUPS, 500)
    effects = rng.normal(0, 0.3, 500)
    other = np.where(groups % FOLDS == 3, 0.9, effects)
    first, second = (
        pair_sums(table(values, np.full(500, 0.1), groups)).without_fold(3).mean_effect() for values in (effects, other)
    )
    assert (first.mean, first.se, first.groups) == (second.mean, second.se, second.groups)
    kept = effects[groups % FOLDS != 3]
    assert first.mean[0] == pytest.approx(kept.mean(), abs=1e-8)
