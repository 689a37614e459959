"""The kernel scheme against Shapley values counted out, and additive functions."""

from __future__ import annotations

from itertools import combinations
from math import factorial

import numpy as np
import pytest

from oscar_causal.discovery.contexts import Stream
from oscar_causal.score.bench.ladder.kernel_shap import coalitions, kernel_values

STREAM = Stream(0, "s", "coalitions")


def shapley(values: dict[frozenset[int], float], types: int) -> list[float]:
    """The definition."""
    found = []
    for t in range(types):
        others = [s for s in range(types) if s != t]
        every = [frozenset(s) for n in range(types) for s in combinations(others, n)]
        share = {s: factorial(len(s)) * factorial(types - len(s) - 1) / factorial(types) for s in every}
        found.append(sum(share[s] * (values[s | {t}] - values[s]) for s in every))
    return found


@pytest.mark.parametrize("types", [2, 3, 4, 5])
def test_all_coalitions_give_the_shapley_values(types: int) -> None:
    luck = np.random.default_rng(types)
    values = {frozenset(s): luck.random() for n in range(types + 1) for s in combinations(range(types), n)}
    kept, weights = coalitions(types, 100, STREAM)
    assert len({row.tobytes() for row in kept}) == len(kept) == 2**types - 2
    outcomes = np.array([[values[frozenset(np.flatnonzero(row).tolist())]] for row in kept])
    ends = values[frozenset()], values[frozenset(range(types))]
    found = kernel_values(kept, weights, outcomes, *(np.array([end]) for end in ends))
    np.testing.assert_allclose(found[:, 0], shapley(values, types), atol=1e-12)


@pytest.mark.parametrize("samples", [40, 90, 400])
def test_of_an_additive_function_they_are_its_weights(samples: int) -> None:
    parts = np.random.default_rng(1).normal(size=(11, 2))
    kept, weights = coalitions(11, samples, STREAM)
    assert samples - 2 <= len(kept) <= samples
    assert weights.sum() == pytest.approx(1)
    found = kernel_values(kept, weights, 0.3 + kept @ parts, np.full(2, 0.3), 0.3 + parts.sum(0))
    np.testing.assert_allclose(found, parts, atol=1e-9)


def test_sampled_coalitions_have_the_weights_of_all() -> None:
    """The size of a coalition is as frequent, by weight, as the kernel (K - 1) / (n (K - n)) says."""
    kept, weights = coalitions(9, 400, STREAM)
    sizes = kept.sum(1)
    found = np.bincount(sizes, weights, minlength=9)[1:9]
    kernel = np.array([8 / (n * (9 - n)) for n in range(1, 9)])
    np.testing.assert_allclose(found, kernel / kernel.sum(), atol=0.02)
    assert (sizes == 1).sum() == (sizes == 8).sum() == 9  # taken whole


def test_one_type_has_everything() -> None:
    kept, weights = coalitions(1, 10, STREAM)
    found = kernel_values(kept, weights, np.zeros((0, 1)), np.array([0.2]), np.array([0.9]))
    np.testing.assert_allclose(found, [[0.7]])
