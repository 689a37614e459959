"""The exact law against plain enumeration, and its error rate under permutation."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from oscar_causal.discovery.classical.ci_tests import Cells, chi2_of_cells, g2_of_cells, log_chi2_tail
from oscar_causal.discovery.classical.exact import exact_p_value, needs_exact
from oscar_causal.discovery.classical.tester import SPARE_NATS


def cells_of(margins: list[tuple[int, int, int]], both: list[int]) -> Cells:
    n, x, y = np.array(margins, np.int64).T
    return Cells(np.zeros(len(both), np.int64), n, x, y, np.array(both, np.int64))


def ranges(margins: list[tuple[int, int, int]]) -> list[range]:
    return [range(max(0, x + y - n), min(x, y) + 1) for n, x, y in margins]


def enumerate_p(margins: list[tuple[int, int, int]], both: list[int], statistic: str) -> float:
    """P(statistic >= observed) by going through every combination of tables."""
    value = g2_of_cells if statistic == "g2" else chi2_of_cells
    observed = float(value(cells_of(margins, both)).sum())
    total = 0.0
    for combination in product(*ranges(margins)):
        if float(value(cells_of(margins, list(combination))).sum()) >= observed * (1 - 1e-9):
            total += float(
                np.prod([stats.hypergeom.pmf(b, n, x, y) for b, (n, x, y) in zip(combination, margins, strict=True)])
            )
    return total


MARGINS = st.integers(4, 25).flatmap(
    lambda n: st.tuples(st.just(n), st.integers(1, min(6, n - 1)), st.integers(1, min(6, n - 1)))
)


@settings(max_examples=40, deadline=None)
@given(MARGINS, st.integers(0, 6), st.sampled_from(["g2", "chi2"]))
def test_one_table_equals_enumeration(margin: tuple[int, int, int], pick: int, statistic: str) -> None:
    values = ranges([margin])[0]
    both = values[pick % len(values)]
    found = exact_p_value(cells_of([margin], [both]), statistic)
    assert found == pytest.approx(min(1.0, enumerate_p([margin], [both], statistic)), rel=1e-6)


@settings(max_examples=30, deadline=None)
@given(st.lists(MARGINS, min_size=2, max_size=3), st.lists(st.integers(0, 6), min_size=3, max_size=3))
def test_several_tables_lie_between_slightly_shifted_enumerations(
    margins: list[tuple[int, int, int]], picks: list[int]
) -> None:
    """On the grid a table's value moves by at most half a step of observed / 16384."""
    both = [values[pick % len(values)] for values, pick in zip(ranges(margins), picks, strict=False)]
    observed = float(g2_of_cells(cells_of(margins, both)).sum())
    found = exact_p_value(cells_of(margins, both), "g2", bins=1 << 14)
    if observed <= 0:
        assert found == 1.0
        return
    slack = observed * len(both) / (1 << 14)
    low, high = 0.0, 0.0
    for combination in product(*ranges(margins)):
        value = float(g2_of_cells(cells_of(margins, list(combination))).sum())
        weight = np.prod([stats.hypergeom.pmf(b, n, x, y) for b, (n, x, y) in zip(combination, margins, strict=True)])
        low += float(weight) * (value >= observed + slack)
        high += float(weight) * (value >= observed - slack)
    assert low - 1e-9 <= found <= high + 1e-9


def test_large_counts_approach_the_chi2_law() -> None:
    cells = cells_of([(4000, 1500, 1800), (3000, 900, 1200)], [742, 390])
    by_law = np.exp(log_chi2_tail(g2_of_cells(cells).sum(keepdims=True), np.array([2])))[0]
    assert exact_p_value(cells, "g2") == pytest.approx(by_law, rel=0.1)
    assert not needs_exact(cells)


def test_chi2_law_misjudges_coincidences_among_few_rows() -> None:
    cells = cells_of([(60, 3, 3)], [3])
    by_law = float(np.exp(log_chi2_tail(g2_of_cells(cells), np.array([1])))[0])
    assert needs_exact(cells)
    assert exact_p_value(cells, "g2") > 20 * by_law


def test_permuted_targets_reject_at_most_as_often_as_stated() -> None:
    rng = np.random.default_rng(5)
    n, x, y = 40, np.arange(40) < 5, np.arange(40) < 9
    p_values = []
    for _ in range(3000):
        both = int((x & rng.permutation(y)).sum())
        p_values.append(exact_p_value(cells_of([(n, 5, 9)], [both]), "g2"))
    for level in (0.01, 0.05, 0.2):
        assert np.mean(np.array(p_values) <= level) <= level + 3 * np.sqrt(level / 3000)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.integers(10, 3000), st.integers(1, 400), st.integers(1, 400)), min_size=1, max_size=3),
    st.booleans(),
)
def test_the_two_laws_never_differ_by_more_than_the_tester_allows(
    sizes: list[tuple[int, int, int]], positive: bool
) -> None:
    """The most extreme tables: where the χ² law is SPARE_NATS below a threshold, the exact law is below it too."""
    margins = [(n, min(x, n - 1), min(y, n - 1)) for n, x, y in sizes]
    both = [values[-1] if positive else values[0] for values in ranges(margins)]
    cells = cells_of(margins, both)
    by_law = float(log_chi2_tail(g2_of_cells(cells).sum(keepdims=True), np.array([len(both)]))[0])
    assert np.log(exact_p_value(cells, "g2") + 1e-300) <= max(by_law, -600.0) + SPARE_NATS


def test_a_sum_that_stops_at_the_ceiling_gives_the_same_verdict() -> None:
    rng = np.random.default_rng(12)
    above = below = stopped = 0
    for _ in range(200):
        margins = [(int(n), int(n * rng.uniform(0.05, 0.5)) + 1, int(n * 0.2) + 1) for n in rng.integers(8, 60, 6)]
        cells = cells_of(margins, [int(rng.choice(span)) for span in ranges(margins)])
        whole = exact_p_value(cells, "g2")
        for ceiling in (1e-8, 1e-4, 0.01):
            part = exact_p_value(cells, "g2", ceiling=ceiling)
            assert (part > ceiling) == (whole > ceiling)
            assert part == whole if whole <= ceiling else part <= whole * (1 + 1e-9)
            above, below, stopped = above + (whole > ceiling), below + (whole <= ceiling), stopped + (part < whole)
    assert min(above, below, stopped) > 50
