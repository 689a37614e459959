"""Sparse counting against dense counting: the same cells by rows, by columns and by brute force."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oscar_causal.discovery.classical.categorical import CategoricalTable
from oscar_causal.discovery.classical.sparse import SparseTable, sparse_table
from oscar_causal.errors import DataError

MakeTable = Callable[..., SparseTable]


def brute_cells(dense: np.ndarray, target: int, given: list[int], candidates: list[int]) -> list[tuple[int, ...]]:
    """Every informative 2 × 2 table as (candidate place, n, n_x, n_y, n_xy), sorted."""
    found = []
    keys = [tuple(row) for row in dense[:, given]]
    for place, x in enumerate(candidates):
        for key in set(keys):
            rows = np.array([k == key for k in keys])
            n, n_x, n_y = int(rows.sum()), int(dense[rows, x].sum()), int(dense[rows, target].sum())
            if 0 < n_x < n and 0 < n_y < n:
                found.append((place, n, n_x, n_y, int((dense[rows, x] & dense[rows, target]).sum())))
    return sorted(found)


def as_tuples(cells: object) -> list[tuple[int, ...]]:
    parts = [getattr(cells, name).tolist() for name in ("owner", "n", "n_x", "n_y", "n_xy")]
    return sorted(zip(*parts, strict=True))


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10_000), n_given=st.integers(0, 4), density=st.floats(0.02, 0.7), few=st.booleans())
def test_cells_equal_brute_force(seed: int, n_given: int, density: float, few: bool, table_of: MakeTable) -> None:
    rng = np.random.default_rng(seed)
    dense = (rng.random((60, 9)) < density).astype(np.int64)
    columns = rng.permutation(9)
    target, given_, candidates = int(columns[0]), columns[1 : 1 + n_given].tolist(), columns[1 + n_given :]
    candidates = candidates[:1] if few else candidates
    table = table_of(dense)
    with_y = dense[:, target].astype(bool)
    strata = table._strata(given_, with_y)
    truth = brute_cells(dense, target, given_, candidates.tolist())
    assert as_tuples(table._count_by_row(strata, with_y, candidates)) == truth
    assert as_tuples(table._count_by_column(strata, with_y, candidates)) == truth
    assert as_tuples(table.cells(target, given_, candidates)) == truth


def test_many_strata_are_taken_in_turns(monkeypatch: pytest.MonkeyPatch, table_of: MakeTable) -> None:
    rng = np.random.default_rng(3)
    dense = (rng.random((400, 12)) < 0.4).astype(np.int64)
    table = table_of(dense)
    whole = as_tuples(table.cells(0, [1, 2, 3, 4], np.arange(5, 12)))
    monkeypatch.setattr("oscar_causal.discovery.classical.sparse.CELLS_AT_ONCE", 30)
    assert as_tuples(table.cells(0, [1, 2, 3, 4], np.arange(5, 12))) == whole


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), n_given=st.integers(1, 5), codes=st.sampled_from([2, 8, 1 << 16]))
def test_frequent_conditions_and_few_codes(seed: int, n_given: int, codes: int, table_of: MakeTable) -> None:
    """Where most rows hold a condition the big stratum is another one; table after table, by differences."""
    rng = np.random.default_rng(seed)
    dense = (rng.random((80, 9)) < rng.choice([0.05, 0.5, 0.95], 9)).astype(np.int64)
    table = table_of(dense)
    order = rng.permutation(9)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("oscar_causal.discovery.classical.sparse.CODES_AT_ONCE", codes)
        for size in (*range(n_given + 1), 0, n_given):
            given_, rest = order[1 : 1 + size].tolist(), order[1 + size :]
            truth = brute_cells(dense, int(order[0]), given_, rest.tolist())
            assert as_tuples(table.cells(int(order[0]), given_, rest)) == truth


def test_sets_of_rows_counted_one_after_the_other(table_of: MakeTable) -> None:
    """Rows come and go a few at a time, many at a time, or all at once."""
    rng = np.random.default_rng(11)
    dense = (rng.random((90, 7)) < 0.4).astype(np.int64)
    table = table_of(dense)
    chosen = np.zeros(90, bool)
    for share in (0.5, 0.05, 0.05, 0.9, 0.0, 0.1, 1.0, 0.02):
        chosen = chosen ^ (rng.random(90) < share)
        assert table._count_by_difference(chosen).tolist() == dense[chosen].sum(0).tolist()


def test_strata_are_numbered_by_their_conditions(table_of: MakeTable) -> None:
    """Last condition first: sums over strata keep their order, and with it their last bit."""
    rng = np.random.default_rng(5)
    dense = (rng.random((200, 6)) < 0.4).astype(np.int64)
    strata = table_of(dense)._strata([1, 2, 3, 4], dense[:, 0].astype(bool))
    _, number, size = np.unique(dense[:, [1, 2, 3, 4]] @ [1, 2, 4, 8], return_inverse=True, return_counts=True)
    assert strata.of_row.tolist() == number.tolist()
    assert strata.n.tolist() == size.tolist()
    assert strata.n_y.tolist() == np.bincount(number[dense[:, 0] == 1], minlength=len(size)).tolist()
    assert strata.touched.tolist() == np.flatnonzero(number).tolist()


def test_more_conditions_than_bits(table_of: MakeTable) -> None:
    rng = np.random.default_rng(4)
    dense = (rng.random((300, 80)) < 0.03).astype(np.int64)
    given_ = list(range(2, 78))
    assert as_tuples(table_of(dense).cells(0, given_, np.array([1]))) == brute_cells(dense, 0, given_, [1])


def test_sparse_and_categorical_tables_give_the_same_tests(table_of: MakeTable) -> None:
    rng = np.random.default_rng(6)
    dense = (rng.random((500, 10)) < rng.uniform(0.1, 0.6, 10)).astype(np.int64)
    names = [f"c{number}" for number in range(10)]
    for statistic in ("g2", "chi2"):
        for given_ in ([], [1], [1, 2, 3]):
            sparse = table_of(dense).associations(0, given_, np.arange(4, 10), statistic)
            full = CategoricalTable(dense, names).associations(0, given_, np.arange(4, 10), statistic)
            np.testing.assert_allclose(sparse.statistic, full.statistic, atol=1e-9)
            np.testing.assert_array_equal(sparse.dof, full.dof)
            np.testing.assert_array_equal(sparse.rows, full.rows)
    columns = np.arange(10)
    np.testing.assert_allclose(table_of(dense).entropies(columns), CategoricalTable(dense, names).entropies(columns))


@pytest.mark.bits
def test_categorical_turns_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = np.random.default_rng(7).integers(0, 4, (300, 8))
    table = CategoricalTable(codes, [str(number) for number in range(8)])
    whole = table.associations(0, [1], np.arange(2, 8), "g2")
    monkeypatch.setattr("oscar_causal.discovery.classical.categorical.CELLS_AT_ONCE", 100)
    parts = table.associations(0, [1], np.arange(2, 8), "g2")
    np.testing.assert_array_equal(whole.statistic, parts.statistic)
    np.testing.assert_array_equal(whole.candidates, parts.candidates)
    assert len(table.associations(0, [1], np.arange(0), "g2").candidates) == 0


def test_a_table_saved_and_opened_is_the_same(tmp_path: Path, table_of: MakeTable) -> None:
    dense = (np.random.default_rng(8).random((50, 6)) < 0.3).astype(np.int64)
    table = table_of(dense, n_events=4)
    table.save(tmp_path)
    opened = SparseTable.open(tmp_path)
    assert (opened.names, opened.n_events) == (table.names, 4)
    assert as_tuples(opened.cells(5, [0], np.arange(1, 4))) == as_tuples(table.cells(5, [0], np.arange(1, 4)))


def test_repeats_count_once() -> None:
    table = sparse_table(np.array([0, 0, 1]), np.array([1, 1, 0]), (3, 2), ["a", "b"], 2)
    assert table.totals.tolist() == [1, 1]
    many = sparse_table(np.zeros(256, np.int64), np.zeros(256, np.int64), (2, 1), ["a"], 1)
    assert many.rows_of(0).tolist() == [0]


def test_bad_tables_are_refused() -> None:
    with pytest.raises(DataError, match="one name for each of 2 columns, got 1"):
        sparse_table(np.array([0]), np.array([1]), (3, 2), ["a"], 1)
    with pytest.raises(DataError, match="expected one column"):
        CategoricalTable(np.zeros((3, 2), int), ["a"])
    with pytest.raises(DataError, match="expected codes"):
        CategoricalTable(np.full((3, 1), -1), ["a"])
    with pytest.raises(DataError, match="expected codes"):
        CategoricalTable(np.zeros((3, 1)), ["a"])
