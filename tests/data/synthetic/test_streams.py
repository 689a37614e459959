"""Tables of quantiles against scipy's distributions; streams that depend on their key only."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from oscar_causal.data.synthetic.streams import (
    PURPOSES,
    apportion,
    below,
    choose,
    gap_table,
    length_table,
    look_up,
    permutation,
    poisson_table,
    span_table,
    stream,
)


def test_streams_are_fixed_by_their_key_and_differ_between_keys() -> None:
    keys = [
        (seed, purpose, block, shadow)
        for seed in (0, 1, 2**32)
        for purpose in PURPOSES
        for block in (0, 1)
        for shadow in (0, 1)
    ]
    draws = [stream(seed, purpose, block, shadow=bool(shadow)).random(4) for seed, purpose, block, shadow in keys]
    again = [stream(seed, purpose, block, shadow=bool(shadow)).random(4) for seed, purpose, block, shadow in keys]
    assert np.array_equal(draws, again)
    assert len({tuple(draw) for draw in draws}) == len(keys)


def test_the_first_bits_of_a_stream_are_those_numpy_promises() -> None:
    """PCG64 seeded through SeedSequence is stable across numpy versions; the fleets' digests rest on it."""
    assert stream(0, "names").random() == np.random.default_rng(0).random() == 0.6369616873214543
    expected = np.random.Generator(np.random.PCG64(np.random.SeedSequence([4, 7, 0, 3]))).random(3)
    assert np.array_equal(stream(3, "background", 7).random(3), expected)


@pytest.mark.parametrize(("mean", "sd"), [(150.0, 90.0), (64.0, 20.0), (10.0, 30.0)])
def test_lengths_are_gamma(mean: float, sd: float) -> None:
    table = length_table(mean, sd, least=1)
    gamma = stats.gamma((mean / sd) ** 2, scale=sd**2 / mean)
    assert np.quantile(table, [0.1, 0.5, 0.9]) == pytest.approx(np.maximum(gamma.ppf([0.1, 0.5, 0.9]), 1), abs=1)
    assert length_table(mean, 0.0, least=1).tolist() == [round(mean)]
    assert length_table(mean, sd, least=40).min() == 40


def test_gaps_have_ties_and_an_exponential_rest() -> None:
    table = gap_table(25.0, zeros=0.3)
    assert (table == 0).mean() == pytest.approx(0.3, abs=0.01)
    assert stats.kstest(table[table > 0] - 0.5, stats.expon(scale=25).cdf).statistic < 0.03


def test_spans_are_log_normal() -> None:
    assert np.median(span_table(1000.0, 0.8, least=1)) == pytest.approx(1000, abs=1)
    assert np.std(np.log(span_table(1e6, 0.8, least=1))) == pytest.approx(0.8, rel=0.01)


def test_poisson_draws() -> None:
    table = poisson_table(1.7)
    assert table[:6] == pytest.approx(stats.poisson(1.7).cdf(np.arange(6)), rel=1e-12)
    assert poisson_table(0.0)[0] == 1


def test_uniform_draws() -> None:
    rng = np.random.default_rng(1)
    drawn = below(rng, np.full(30_000, 3))
    assert stats.chisquare(np.bincount(drawn)).pvalue > 0.001
    assert sorted(permutation(rng, 50).tolist()) == list(range(50))
    assert stats.chisquare(np.bincount([permutation(rng, 4)[0] for _ in range(4000)])).pvalue > 0.001
    assert np.bincount(look_up(np.array([2, 2, 5]), rng, 3000)).tolist()[:2] == [0, 0]


def test_choose_takes_all_when_there_are_too_few() -> None:
    rng = np.random.default_rng(0)
    assert choose(rng, np.array([4, 9]), 5).tolist() == [4, 9]
    assert len(set(choose(rng, np.arange(100), 30).tolist())) == 30


@given(
    st.dictionaries(st.integers(1, 100), st.integers(1, 50), min_size=1, max_size=10),
    st.integers(1, 400),
)
def test_apportionment_is_within_one_of_the_share(weights: dict[int, int], count: int) -> None:
    sizes = tuple(sorted(weights.items()))
    values = apportion(sizes, count)
    assert len(values) == count
    for size, weight in sizes:
        assert abs((values == size).sum() - count * weight / sum(weights.values())) <= 1
