"""Dependence within strata against scipy and enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2, chi2_contingency, hypergeom, kstest

from oscar_causal.graph.stratified import dependence


def columns(seed: int, n: int = 400, pull: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    a = rng.random(n) < 0.3
    return a, rng.random(n) < 0.2 + pull * a


def test_one_stratum_is_the_chi_squared_test_and_phi() -> None:
    a, b = columns(0)
    found = dependence(a, b, np.zeros(400, int), np.random.default_rng(0))
    table = np.array([[(a & b).sum(), (a & ~b).sum()], [(~a & b).sum(), (~a & ~b).sum()]])
    statistic = chi2_contingency(table, correction=False).statistic
    assert found.correlation == pytest.approx(np.corrcoef(a, b)[0, 1])
    assert found.p_value == pytest.approx(chi2.sf(statistic * 399 / 400, 1))
    assert found.settled == 1.0


def test_small_counts_are_enumerated() -> None:
    a = np.array([1, 1, 1, 0, 0, 0, 0, 0], bool)
    b = np.array([1, 1, 0, 1, 0, 0, 0, 0], bool)
    found = dependence(a, b, np.zeros(8, int), np.random.default_rng(0))
    both = np.arange(4)
    chances = hypergeom(8, 3, 3).pmf(both)
    exact = chances[np.abs(both - 9 / 8) >= abs(2 - 9 / 8) - 1e-9].sum()
    assert found.p_value == pytest.approx(exact, abs=0.02)


def test_dependence_that_strata_explain_goes_away() -> None:
    rng = np.random.default_rng(3)
    cause = rng.random(4000) < 0.3
    a, b = (rng.random(4000) < np.where(cause, 0.8, 0.05) for _ in range(2))
    before = dependence(a, b, np.zeros(4000, int), rng)
    after = dependence(a, b, cause.astype(int), rng)
    assert before.p_value < 1e-10
    assert abs(after.correlation) < 0.05
    assert after.p_value > 0.01


def test_p_values_are_uniform_without_dependence() -> None:
    rng = np.random.default_rng(1)
    found = []
    for _ in range(200):
        strata = rng.integers(0, 8, 300)
        a, b = (rng.random(300) < 0.2 + 0.05 * strata for _ in range(2))
        found.append(dependence(a, b, strata, rng).p_value)
    assert kstest(found, "uniform").pvalue > 0.001


def test_strata_that_decide_everything_leave_nothing() -> None:
    a, b = columns(0)
    found = dependence(a, b, a.astype(int), np.random.default_rng(0))
    assert (found.correlation, found.p_value) == (0.0, 1.0)


def test_strata_of_single_rows_settle_nothing() -> None:
    a, b = columns(0)
    assert dependence(a, b, np.arange(400), np.random.default_rng(0)).settled == 0.0
