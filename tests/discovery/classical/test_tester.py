"""Families, corrections, reliability and error rates of the tester."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oscar_causal.discovery.classical.categorical import CategoricalTable
from oscar_causal.discovery.classical.ci_tests import CiConfig, attainable_family
from oscar_causal.discovery.classical.iamb import iamb
from oscar_causal.discovery.classical.tester import CiTester


def rare_events(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Presence with a long tail: from one sequence in two to one in a hundred."""
    return (rng.random((rows, columns)) < 0.5 / np.arange(1, columns + 1) ** 0.9).astype(np.int64)


def test_the_strongest_candidate_comes_first(table_of: Any) -> None:
    rng = np.random.default_rng(0)
    label = rng.random(2000) < 0.3
    events = np.column_stack([label ^ (rng.random(2000) < noise) for noise in (0.3, 0.1, 0.5, 0.2)])
    tester = CiTester(table_of(np.column_stack([events, label]).astype(np.int64)), CiConfig())
    scan = tester.scan(4)
    assert tester.dependent(scan) == [1, 3, 0]
    assert tester.strongest(scan) == 1
    assert tester.tests == 4


def test_only_allowed_columns_are_candidates(table_of: Any) -> None:
    dense = np.tile((np.arange(400) % 2)[:, None], (1, 4))
    tester = CiTester(table_of(dense), CiConfig(), allowed=np.array([0, 2]))
    assert sorted(tester.dependent(tester.scan(3))) == [0, 2]
    assert tester.dependent(tester.scan(0)) == [2]


@pytest.mark.parametrize("correction", ["bonferroni", "bh", "none"])
def test_a_question_of_its_own_is_not_corrected(table_of: Any, correction: Any) -> None:
    dense = np.zeros((1000, 40), np.int64)
    dense[:500, 0] = 1
    dense[:, 1] = dense[:, 0]
    dense[np.r_[0:230, 500:730], 1] ^= 1  # 270 of 500 against 230 of 500: p = 0.011
    dense[:, 2:] = np.random.default_rng(1).random((1000, 38)) < 0.5
    tester = CiTester(table_of(dense), CiConfig(0.02, correction))
    _, p_value = tester.evidence(1, 0, ())
    assert 0.005 < p_value < 0.02
    assert tester.related(1, 0)
    assert tester.separated(0, (), [1]) == []
    together = 1 in tester.dependent(tester.scan(0))
    assert together == (correction == "none")


def test_a_test_that_was_not_counted_may_not_reject(table_of: Any) -> None:
    """40 copies of the target are the family; an event of 3 rows cannot reach alpha / 40, but alone would pass."""
    dense = np.zeros((100, 42), np.int64)
    dense[:20, :41] = 1
    dense[:3, 41] = 1
    tester = CiTester(table_of(dense), CiConfig(0.05, "bh"))
    scan = tester.scan(0)
    assert scan.family == 40
    assert tester.evidence(41, 0, ())[1] == pytest.approx(1140 / 161_700)  # of all draws of 3 rows, 3 of the 20
    assert sorted(tester.dependent(scan)) == list(range(1, 41))


def test_no_answer_is_not_a_no() -> None:
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 4, (60, 6))
    codes[:, 1] = codes[:, 0]
    tester = CiTester(CategoricalTable(codes, list("abcdef")), CiConfig())
    assert tester.separated(0, (2, 3), [1]) == []  # 9 dof a stratum, hardly 4 rows: cannot be asked
    assert tester.scan(0, (2, 3), [1]).ranked.tolist() == []  # nor does it count as dependence
    assert tester.separated(0, (1,), [4]) == [4]  # nothing of column 0 varies once its copy is known


def test_tests_that_could_not_reject_do_not_count(table_of: Any) -> None:
    dense = np.zeros((500, 60), np.int64)
    dense[:10, 0] = 1
    dense[:10, 1] = 1
    dense[np.arange(58), np.arange(2, 60)] = 1  # once each: whatever comes, one sequence proves nothing
    tester = CiTester(table_of(dense), CiConfig())
    scan = tester.scan(0)
    assert tester.tests == 59
    assert scan.family == attainable_family(scan.found.largest, 0.01) < 10
    assert tester.dependent(scan) == [1]


@pytest.mark.parametrize("correction", ["bonferroni", "bh"])
@pytest.mark.parametrize("statistic", ["g2", "chi2"])
def test_permuted_labels_get_a_boundary_no_more_often_than_stated(
    table_of: Any, correction: Any, statistic: Any
) -> None:
    """Family-wise error: 400 permuted labels at alpha = 0.05, rare events and rare labels included."""
    rng = np.random.default_rng(7)
    events = rare_events(rng, 400, 120)
    config = CiConfig(0.05, correction, statistic)
    wrong, tries = 0, 400
    for number in range(tries):
        label = rng.permutation(np.arange(400) < (6, 20, 80, 200)[number % 4]).astype(np.int64)
        tester = CiTester(table_of(np.column_stack([events, label]), 120), config, allowed=np.arange(120))
        wrong += bool(iamb(tester, 120).members)
    assert wrong / tries <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / tries)
    assert wrong > 0  # at this level some must slip through, else the test could not fail


def test_the_chi2_law_alone_would_not_keep_that_promise(table_of: Any) -> None:
    """Why the exact law is the default: Pearson's statistic with rare events."""
    rng = np.random.default_rng(8)
    events = rare_events(rng, 400, 120)
    wrong = 0
    for _ in range(100):
        label = rng.permutation(np.arange(400) < 6).astype(np.int64)
        table = table_of(np.column_stack([events, label]), 120)
        wrong += bool(
            iamb(CiTester(table, CiConfig(0.05, statistic="chi2", exact=False), allowed=np.arange(120)), 120).members
        )
    assert wrong > 15


def test_a_conditional_null_is_kept_too(table_of: Any) -> None:
    """Given its one true cause nothing else may enter, however rare the strata: 150 labels at alpha = 0.05."""
    rng = np.random.default_rng(9)
    events = rare_events(rng, 500, 80)
    wrong = 0
    for _ in range(150):
        label = (events[:, 3] == 1) & (rng.random(500) < 0.8)
        tester = CiTester(table_of(np.column_stack([events, label]), 80), CiConfig(0.05), allowed=np.arange(80))
        members = set(iamb(tester, 80).members)
        assert 3 in members
        wrong += members != {3}
    assert wrong / 150 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 150)
