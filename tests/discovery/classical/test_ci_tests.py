"""Statistics, tails and corrections against scipy, and against counting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import gammainc, log, mp
from scipy import stats

from oscar_causal.discovery.classical.ci_tests import (
    Cells,
    CiConfig,
    attainable_family,
    binary_associations,
    chi2_of_cells,
    g2_of_cells,
    largest_of_cells,
    log_chi2_tail,
    rejected,
    table_associations,
    xlogx_table,
)
from oscar_causal.errors import UsageError

TABLE = st.tuples(*[st.integers(0, 30)] * 4).filter(
    lambda t: min(t[0] + t[1], t[2] + t[3], t[0] + t[2], t[1] + t[3]) > 0
)


def cells_of(tables: list[tuple[int, int, int, int]], owners: list[int] | None = None) -> Cells:
    """Cells from (both, only x, only y, neither)."""
    array = np.array(tables, np.int64)
    both, x, y = array[:, 0], array[:, 0] + array[:, 1], array[:, 0] + array[:, 2]
    return Cells(np.array(owners or [0] * len(tables)), array.sum(1), x, y, both)


@settings(max_examples=60, deadline=None)
@given(TABLE)
def test_one_table_equals_scipy(table: tuple[int, int, int, int]) -> None:
    observed = np.array(table).reshape(2, 2)
    cells = cells_of([table])
    g2 = stats.chi2_contingency(observed, correction=False, lambda_="log-likelihood").statistic
    chi2 = stats.chi2_contingency(observed, correction=False).statistic
    assert g2_of_cells(cells)[0] == pytest.approx(g2, abs=1e-8)
    assert g2_of_cells(cells, xlogx_table(200))[0] == pytest.approx(g2, abs=1e-8)
    assert chi2_of_cells(cells)[0] == pytest.approx(chi2, abs=1e-8)


@pytest.mark.parametrize("statistic", ["g2", "chi2"])
def test_strata_add_up_and_empty_margins_cost_no_degree(statistic: str) -> None:
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 6, (3, 7, 3, 4))  # candidates, strata, values of x, values of y
    counts[0, 2] = 0
    counts[1, 3, 1:] = 0
    counts[2, :, :, 2] = 0
    found = table_associations(np.arange(3), counts, statistic)
    for candidate in range(3):
        value, dof, rows = 0.0, 0, 0
        for table in counts[candidate]:
            table = table[table.sum(1) > 0][:, table.sum(0) > 0]
            if min(table.shape, default=0) > 1:
                kind = "log-likelihood" if statistic == "g2" else "pearson"
                result = stats.chi2_contingency(table, correction=False, lambda_=kind)
                value, dof, rows = value + result.statistic, dof + result.dof, rows + table.sum()
        assert found.statistic[candidate] == pytest.approx(value)
        assert found.dof[candidate] == dof
        assert found.rows[candidate] == rows


def test_binary_tables_agree_with_full_ones() -> None:
    rng = np.random.default_rng(2)
    counts = rng.integers(1, 9, (4, 5, 2, 2))
    full = table_associations(np.arange(4), counts, "g2")
    flat = [tuple(int(v) for v in (t[1, 1], t[1, 0], t[0, 1], t[0, 0])) for t in counts.reshape(-1, 2, 2)]
    cells = cells_of(flat, np.repeat(np.arange(4), 5).tolist())
    found = binary_associations(np.arange(4), cells, "g2", xlogx_table(100))
    np.testing.assert_allclose(found.statistic, full.statistic)
    np.testing.assert_array_equal(found.dof, full.dof)
    np.testing.assert_array_equal(found.rows, full.rows)
    np.testing.assert_array_equal(found.testable(4.0), full.testable(4.0))


def test_too_few_rows_or_nothing_to_vary_is_no_test() -> None:
    found = table_associations(
        np.arange(3), np.array([[[[3, 1], [1, 3]]], [[[0, 0], [4, 4]]], [[[30, 1], [1, 30]]]]), "g2"
    )
    assert found.testable(5.0).tolist() == [True, False, True]
    assert found.testable(10.0).tolist() == [False, False, True]
    assert found.log_p[1] == 0.0


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 60), st.floats(0, 5e3))
def test_log_tail_equals_arbitrary_precision(dof: int, statistic: float) -> None:
    mp.dps = 60
    truth = float(log(gammainc(mp.mpf(dof) / 2, mp.mpf(statistic) / 2, regularized=True)))
    assert log_chi2_tail(np.array([statistic]), np.array([dof]))[0] == pytest.approx(truth, rel=1e-6, abs=1e-9)


def test_no_degree_of_freedom_has_p_one() -> None:
    assert log_chi2_tail(np.array([3.0]), np.array([0])).tolist() == [0.0]


@pytest.mark.parametrize("alpha", [0.01, 0.1, 0.3])
@pytest.mark.parametrize("seed", range(12))
def test_bh_equals_scipy(seed: int, alpha: float) -> None:
    """p-values around the line that the ranks draw, and larger ones: where ranks, and the last that passes, decide."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(6, 40))
    p_values = alpha * np.arange(1, size + 1) / size * rng.uniform(0.8, 1.2, size)
    p_values[2 * size // 3 :] = rng.uniform(alpha, 1.0, size - 2 * size // 3)
    p_values = rng.permutation(p_values)
    found = rejected(np.log(p_values), CiConfig(alpha, "bh"))
    np.testing.assert_array_equal(found, stats.false_discovery_control(p_values) <= alpha)
    assert p_values[found].max() > alpha / size


def test_bh_needs_only_the_small_p_values_when_the_family_is_named() -> None:
    p_values = np.array([0.0001, 0.001, 0.004, 0.2, 0.6, 0.9])
    config = CiConfig(0.01, "bh")
    whole = rejected(np.log(p_values), config)
    part = rejected(np.log(p_values[:3]), config, family=6)
    np.testing.assert_array_equal(whole[:3], part)


def test_bonferroni_and_none() -> None:
    log_p = np.log([0.0009, 0.002, 0.02])
    assert rejected(log_p, CiConfig(0.01, "bonferroni")).tolist() == [True, True, False]
    assert rejected(log_p, CiConfig(0.01, "bonferroni"), family=10).tolist() == [True, False, False]
    assert rejected(log_p, CiConfig(0.01, "none"), family=10).tolist() == [True, True, False]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(0, 60), min_size=1, max_size=40), st.sampled_from([0.01, 0.05]))
def test_attainable_family_is_the_smallest_k(largest: list[float], alpha: float) -> None:
    def reach(k: int) -> int:
        return int((np.array(largest) >= stats.chi2.isf(alpha / k, 1)).sum())

    smallest = next(k for k in range(1, len(largest) + 1) if reach(k) <= k)
    assert attainable_family(np.array(largest), alpha) == smallest


@settings(max_examples=40, deadline=None)
@given(TABLE, st.sampled_from(["g2", "chi2"]))
def test_largest_statistic_by_trying_every_table(table: tuple[int, int, int, int], statistic: str) -> None:
    cells = cells_of([table])
    n, x, y = int(cells.n[0]), int(cells.n_x[0]), int(cells.n_y[0])
    tries = [cells_of([(b, x - b, y - b, n - x - y + b)]) for b in range(max(0, x + y - n), min(x, y) + 1)]
    values = [float((g2_of_cells(t) if statistic == "g2" else chi2_of_cells(t))[0]) for t in tries]
    assert largest_of_cells(cells, statistic, xlogx_table(200))[0] == pytest.approx(max(values))


@pytest.mark.parametrize(
    "wrong",
    [
        {"alpha": 0.0},
        {"alpha": 3.0},
        {"correction": "holm"},
        {"statistic": "f"},
        {"rows_per_dof": -1},
        {"max_given": -1},
    ],
)
def test_bad_settings_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="expected"):
        CiConfig(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("statistic", ["g2", "chi2"])
def test_no_outcome_is_larger_than_the_largest(statistic: str) -> None:
    """Every table of up to 14 rows against every value its corner could take."""
    value = g2_of_cells if statistic == "g2" else chi2_of_cells
    margins = [(n, x, y) for n in range(2, 15) for x in range(1, n) for y in range(1, n)]
    n, x, y = np.array(margins, np.int64).T
    found = largest_of_cells(Cells(np.arange(len(n)), n, x, y, np.zeros_like(n)), statistic, xlogx_table(14))
    for place, (rows, with_x, with_y) in enumerate(margins):
        corner = np.arange(max(0, with_x + with_y - rows), min(with_x, with_y) + 1)
        same = (np.full(len(corner), margin) for margin in (place, rows, with_x, with_y))
        assert found[place] == pytest.approx(value(Cells(*same, corner)).max(), abs=1e-9)
