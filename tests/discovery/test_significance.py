"""The tests keep their promise for any outcome that ignores the tested column; intervals cover what they say."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from oscar_causal.discovery.significance import (
    FEW,
    FLAT,
    MAX_CONDITIONING,
    STRONG,
    benjamini_hochberg,
    bounded_interval,
    column_test,
    inverted_interval,
    leading_columns,
    standardised,
)

Outcome = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def test_further_redraws_refine_small_p_values_and_leave_the_rest() -> None:
    rng = np.random.default_rng(4)
    masks = (rng.random((60, 6)) < 0.3).astype(float)
    outcome = 0.9 - 0.8 * masks[:, 0] + 0.1 * rng.random(60)
    uniforms, rates = rng.random((5000, 60)), np.full(6, 0.3)
    coarse = column_test(outcome, masks, rates, uniforms[:500])
    fine = column_test(outcome, masks, rates, uniforms[:500], more=(uniforms[500:2000], uniforms[2000:]))
    whole = column_test(outcome, masks, rates, uniforms)
    rare = coarse.p_values <= (1 + FEW) / 501
    assert rare.tolist() == [True] + [False] * 5
    assert fine.p_values[rare].tolist() == whole.p_values[rare].tolist()
    assert fine.p_values[~rare].tolist() == coarse.p_values[~rare].tolist()


def test_p_values_with_further_redraws_are_super_uniform() -> None:
    """Columns that the outcome ignores: small p-values are no more frequent than they say, on both sides of FEW."""
    rng, found = np.random.default_rng(9), []
    rates, more = np.full(4, 0.4), rng.random((4000, 30))
    for _ in range(400):
        masks = (rng.random((30, 4)) < 0.4).astype(float)
        outcome = rng.random(30) ** 3
        found += column_test(outcome, masks, rates, rng.random((99, 30)), more=[more]).p_values.tolist()
    p = np.array(found)
    for t in (0.005, 0.02, 0.05, 0.1, 0.11, 0.12, 0.2, 0.5):
        assert (p <= t).mean() <= t + 3 * math.sqrt(t * (1 - t) / len(p))
    assert (p <= 0.1).mean() > 0.06  # and it is no empty promise


# --- a literal twin of the column test ---


def twin_z(outcome: list[float], column: list[float], rate: float, rows: list[int]) -> float:
    mean = sum(outcome[n] for n in rows) / len(rows) if rows else 0.0
    top = sum((rate - column[n]) * (outcome[n] - mean) for n in rows)
    spread = math.sqrt(sum((outcome[n] - mean) ** 2 for n in rows) * rate * (1 - rate))
    return top / spread if spread > FLAT * math.sqrt(rate * (1 - rate)) else 0.0


def twin_leading(outcome: list[float], masks: np.ndarray, rates: list[float], columns: list[int]) -> list[int]:
    rows, found = list(range(len(outcome))), list[int]()
    while len(found) < min(MAX_CONDITIONING, len(columns)) and len(rows) >= 6:
        scores = {k: 0.0 if k in found else abs(twin_z(outcome, masks[:, k].tolist(), rates[k], rows)) for k in columns}
        best = max(columns, key=lambda k: (scores[k], -k))
        if scores[best] < STRONG:
            break
        found.append(best)
        rows = [n for n in rows if masks[n, best] == 0]
    return found


def twin_test(
    outcome: list[float], masks: np.ndarray, rates: list[float], uniforms: np.ndarray, t: int, side: int = 0
) -> list[float]:
    """p-value, score and effect of column t. The others are chosen without a look at column t: that is the promise."""
    rest = [k for k in range(masks.shape[1]) if k != t]
    others = twin_leading(outcome, masks, rates, rest)
    everywhere = list(range(len(outcome)))
    sets = [everywhere, [n for n in everywhere if all(masks[n, k] == 0 for k in others)]]
    for k in rest:
        sets.append([n for n in everywhere if masks[n, k] == 1 and all(masks[n, o] == 0 for o in others if o != k)])

    def statistic(column: list[float]) -> list[float]:
        z = [twin_z(outcome, column, rates[t], rows) for rows in sets]
        return [side * value if side else abs(value) for value in z]

    observed = statistic(masks[:, t].tolist())
    at = max(range(len(sets)), key=lambda s: (observed[s], -s))
    redrawn = [max(statistic([float(u < rates[t]) for u in row])) for row in uniforms]
    p = (1 + sum(value >= observed[at] - 1e-9 for value in redrawn)) / (len(uniforms) + 1)
    with_, without = ([outcome[n] for n in sets[at] if masks[n, t] == on] for on in (0, 1))
    effect = sum(with_) / len(with_) - sum(without) / len(without) if with_ and without else 0.0
    return [p, observed[at], effect]


def and_of(*columns: int) -> Outcome:
    return lambda masks, rng: np.where(masks[:, list(columns)].any(1), 0.03, 0.9)


def or_of(*columns: int) -> Outcome:
    return lambda masks, rng: np.where(masks[:, list(columns)].all(1), 0.03, 0.9)


def xor_of(a: int, b: int) -> Outcome:
    return lambda masks, rng: np.where(masks[:, a] != masks[:, b], 0.1, 0.8)


def skewed(masks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Heavy-tailed noise whose spread depends on column 1."""
    return np.clip(rng.exponential(0.02 + 0.3 * masks[:, 1]) ** 2, 0, 1)


@pytest.mark.parametrize("outcome", [and_of(0, 1), or_of(0, 1), xor_of(1, 3), and_of(0, 1, 2, 3), skewed])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_column_test_equals_its_literal_twin(outcome: Outcome, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rates = np.array([0.3, 0.3, 0.2, 0.4, 0.3])
    masks = (rng.random((36, 5)) < rates).astype(float)
    values = outcome(masks, rng)
    uniforms = rng.random((60, 36))
    got = column_test(values, masks, rates, uniforms)
    for t in range(5):
        twin = twin_test(values.tolist(), masks, rates.tolist(), uniforms, t)
        assert [got.p_values[t], got.scores[t], got.effects[t]] == pytest.approx(twin, abs=1e-9)


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_a_null_of_small_effects_is_tested_on_both_sides(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rates, delta = np.full(4, 0.3), 0.1
    masks = (rng.random((36, 4)) < rates).astype(float)
    values = 0.3 + masks[:, :2] @ [0.25, -0.2] + 0.1 * rng.random(36)
    uniforms = rng.random((60, 36))
    got = column_test(values, masks, rates, uniforms, delta=delta)
    for t in range(4):
        sides = []
        for side, share in ((1, 0.75), (-1, 0.25)):
            shifted = (values - side * delta * (1 - masks[:, t])).tolist()
            p, score, _ = twin_test(shifted, masks, rates.tolist(), uniforms, t, side)
            sides.append((min(1.0, p / share), score))
        best = min(sides, key=lambda item: (item[0], -item[1]))
        assert (got.p_values[t], got.scores[t]) == pytest.approx(best, abs=1e-9)


# --- validity ---


@pytest.mark.parametrize(
    ("outcome", "nulls"),
    [
        (and_of(0, 1), [2, 3, 4]),
        (or_of(0, 1), [2, 3, 4]),
        (xor_of(0, 1), [2, 3, 4]),
        (and_of(0, 1, 2, 3), [4]),
        (skewed, [0, 2, 3, 4]),
        (lambda masks, rng: rng.random(len(masks)) ** 8, [0, 1, 2, 3, 4]),
        (lambda masks, rng: (rng.random(len(masks)) < 0.1).astype(float), [0, 1, 2, 3, 4]),
    ],
    ids=["and", "or", "xor", "and of four", "skewed", "noise", "rare coin"],
)
def test_p_values_of_ignored_columns_are_super_uniform(outcome: Outcome, nulls: list[int]) -> None:
    rng = np.random.default_rng(11)
    rates, runs = np.array([0.3, 0.3, 0.15, 0.5, 0.3]), 500
    p_values = []
    for _ in range(runs):
        masks = (rng.random((40, 5)) < rates).astype(float)
        tests = column_test(outcome(masks, rng), masks, rates, rng.random((199, 40)))
        p_values.append(tests.p_values[nulls])
    for column in np.array(p_values).T:
        for alpha in (0.01, 0.05, 0.1, 0.25, 0.5):
            most = scipy.stats.binom.ppf(1 - 1e-4, runs, alpha)
            assert (column <= alpha + 1e-12).sum() <= most


@pytest.mark.parametrize("effect", [-0.1, 0.05, 0.1])
@pytest.mark.parametrize("others", [0.0, 0.4])
def test_effects_up_to_delta_are_rarely_rejected_and_larger_ones_are(effect: float, others: float) -> None:
    """Exact at the border (a constant effect of delta), conservative inside, with other effects around."""
    rng = np.random.default_rng(22)
    rates, p_values, larger = np.full(4, 0.3), [], []
    for _ in range(300):
        masks = (rng.random((40, 4)) < rates).astype(float)
        base = 0.15 + others * (1 - masks[:, 1]) + 0.1 * rng.random(40) + 0.2 * others * masks[:, 2]
        uniforms = rng.random((199, 40))
        p_values.append(column_test(base + effect * (1 - masks[:, 0]), masks, rates, uniforms, delta=0.1).p_values[0])
        larger.append(column_test(base + 0.3 * (1 - masks[:, 0]), masks, rates, uniforms, delta=0.1).p_values[0])
    for alpha in (0.01, 0.05, 0.1, 0.25):
        assert (np.array(p_values) <= alpha + 1e-12).sum() <= scipy.stats.binom.ppf(1 - 1e-4, 300, alpha)
    assert (np.array(larger) <= 0.05).mean() > 0.8


def test_p_values_of_causes_are_small() -> None:
    """The same machinery is not merely timid."""
    rng = np.random.default_rng(12)
    rates = np.full(6, 1 / 3)
    masks = (rng.random((60, 6)) < rates).astype(float)
    tests = column_test(and_of(0, 1, 2)(masks, rng), masks, rates, rng.random((1999, 60)))
    assert (tests.p_values[:3] < 0.01).all()
    assert (tests.p_values[3:] > 0.01).all()
    assert (tests.effects[:3] > 0.5).all()
    tests = column_test(or_of(0, 1)(masks, rng), masks, rates, rng.random((1999, 60)))
    assert (tests.p_values[:2] < 0.01).all()


def test_the_sign_of_the_effect_says_whether_keeping_raises() -> None:
    rng = np.random.default_rng(13)
    rates = np.array([0.4, 0.4])
    masks = (rng.random((80, 2)) < rates).astype(float)
    outcome = 0.2 + 0.5 * masks[:, 0] + 0.2 * (1 - masks[:, 1])  # keeping column 0 lowers, keeping column 1 raises
    effects = column_test(outcome, masks, rates, rng.random((199, 80))).effects
    assert effects == pytest.approx([-0.5, 0.2], abs=0.06)


@pytest.mark.parametrize("value", [0.0, 0.4, 1.0])
def test_an_outcome_that_never_moves_has_p_one(value: float) -> None:
    rng = np.random.default_rng(14)
    masks = (rng.random((40, 3)) < 0.3).astype(float)
    tests = column_test(np.full(40, value), masks, np.full(3, 0.3), rng.random((99, 40)))
    assert tests.p_values.tolist() == [1.0, 1.0, 1.0]
    assert leading_columns(np.full(40, value), masks, np.full(3, 0.3)) == []


def test_a_column_that_was_never_replaced_proves_nothing() -> None:
    rng = np.random.default_rng(15)
    masks = np.zeros((40, 2))
    masks[:, 1] = rng.random(40) < 0.3
    tests = column_test(1 - 0.8 * masks[:, 1], masks, np.array([0.01, 0.3]), rng.random((499, 40)))
    assert tests.p_values[0] > 0.2
    assert tests.effects[0] == 0.0


def test_leading_columns_come_in_order_and_leave_out_rows_that_replace_them() -> None:
    rng = np.random.default_rng(16)
    masks = (rng.random((300, 6)) < 0.25).astype(float)
    outcome = and_of(1, 4)(masks, rng)
    found = leading_columns(outcome, masks, np.full(6, 0.25))
    assert set(found[:2]) == {1, 4}
    rows = (masks[:, found[:2]] == 0).all(1)
    assert np.ptp(outcome[rows]) == 0  # nothing is left to explain, so nothing else is leading
    assert len(found) == 2


def test_standardised_is_in_units_of_its_own_redraws() -> None:
    rng = np.random.default_rng(17)
    outcome, rows = rng.random(50), rng.random(50) < 0.7
    masks = (rng.random((50, 4000)) < 0.3).astype(float)  # 4000 redraws of one column
    z = standardised(outcome, masks, np.full(4000, 0.3), rows)
    assert z.std() == pytest.approx(1.0, abs=0.05)
    assert z.mean() == pytest.approx(0.0, abs=0.06)


# --- Benjamini-Hochberg ---


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_benjamini_hochberg_is_scipys(p_values: list[float]) -> None:
    values = np.array(p_values)
    assert benjamini_hochberg(values) == pytest.approx(scipy.stats.false_discovery_control(values), abs=1e-12)


# --- intervals ---


def coverage(runs: int, truth: float, draw: Callable[[int], tuple[float, float]]) -> int:
    return sum(low - 1e-9 <= truth <= high + 1e-9 for low, high in map(draw, range(runs)))


@pytest.mark.parametrize("effect", [-0.3, 0.0, 0.4])
@pytest.mark.parametrize("rate", [0.15, 0.5])
def test_inverted_intervals_cover_constant_effects(effect: float, rate: float) -> None:
    rng = np.random.default_rng(18)
    uniforms = rng.random((400, 40))

    def draw(_: int) -> tuple[float, float]:
        masks = (rng.random((40, 2)) < rate).astype(float)
        base = 0.35 + 0.2 * masks[:, 1] + 0.05 * rng.random(40) ** 3
        return inverted_interval(base + effect * (1 - masks[:, 0]), masks[:, 0], rate, uniforms, 0.95)

    assert scipy.stats.binom.ppf(1e-4, 600, 0.95) <= coverage(600, effect, draw) <= 600


def test_the_inverted_interval_is_the_set_of_effects_that_are_not_rejected() -> None:
    """Literal inversion: subtract a constant effect, redraw the column, compare the differences in means."""
    rng = np.random.default_rng(19)
    mask = (rng.random(30) < 0.4).astype(float)
    outcome = rng.random(30) * 0.4 + 0.3 * (1 - mask)
    uniforms = rng.random((300, 30))
    low, high = inverted_interval(outcome, mask, 0.4, uniforms, 0.9)

    def share_below(tau: float) -> float:
        base = outcome - tau * (1 - mask)
        observed = outcome[mask == 0].mean() - outcome[mask == 1].mean()
        below = 0
        for row in uniforms:
            z = (row < 0.4).astype(float)
            imagined = base + tau * (1 - z)
            below += imagined[z == 0].mean() - imagined[z == 1].mean() <= observed
        return below / len(uniforms)

    assert share_below(low - 0.01) > 0.95 > share_below(low + 0.01)
    assert share_below(high - 0.01) > 0.05 > share_below(high + 0.01)


@pytest.mark.parametrize("interval", ["inverted", "bounded"])
@pytest.mark.parametrize("mask", [np.zeros(20), np.ones(20)])
def test_without_a_contrast_the_interval_says_nothing(interval: str, mask: np.ndarray) -> None:
    outcome = np.linspace(0, 1, 20)
    if interval == "bounded":
        assert bounded_interval(outcome, mask, 0.95) == (-1.0, 1.0)
    else:
        assert inverted_interval(outcome, mask, 0.3, np.random.default_rng(0).random((50, 20)), 0.95) == (-1.0, 1.0)


PATTERNS = np.array(list(itertools.product([0.0, 1.0], repeat=5)))

EFFECTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "null": lambda masks: np.where(masks[:, 1:3].any(1), 0.02, 0.95),
    "and": lambda masks: np.where(masks[:, :3].any(1), 0.02, 0.95),
    "or": lambda masks: np.where(masks[:, :2].all(1), 0.02, 0.95),
    "inhibitor": lambda masks: np.where(masks[:, 1:3].any(1) | (masks[:, 0] == 0), 0.02, 0.95),
    "weak": lambda masks: 0.1 + 0.05 * (1 - masks[:, 0]) + 0.5 * (1 - masks[:, 1]),
}


@pytest.mark.parametrize("name", EFFECTS)
@pytest.mark.parametrize("rate", [0.12, 0.25, 0.5])
def test_bounded_intervals_cover_the_effect_over_the_design(name: str, rate: float) -> None:
    answer = EFFECTS[name]
    weights = np.where(PATTERNS == 1, rate, 1 - rate).prod(1)
    replaced = PATTERNS[:, 0] == 1
    means = [np.average(answer(PATTERNS[arm]), weights=weights[arm]) for arm in (~replaced, replaced)]
    rng = np.random.default_rng(20)

    def draw(_: int) -> tuple[float, float]:
        masks = (rng.random((42, 5)) < rate).astype(float)
        return bounded_interval(answer(masks), masks[:, 0], 0.95)

    assert coverage(400, float(means[0] - means[1]), draw) >= scipy.stats.binom.ppf(1e-4, 400, 0.95)


@settings(deadline=None, max_examples=25)
@given(
    kept=st.floats(0, 1), replaced=st.floats(0, 1), rate=st.sampled_from([0.12, 0.3, 0.5]), coin=st.sampled_from([0, 1])
)
def test_bounded_intervals_cover_for_coins_and_for_less_spread_outcomes(
    kept: float, replaced: float, rate: float, coin: int
) -> None:
    rng = np.random.default_rng(21)

    def draw(_: int) -> tuple[float, float]:
        mask = rng.random(42) < rate
        means = np.where(mask, replaced, kept)
        spread = np.minimum(means, 1 - means)
        outcome = rng.random(42) < means if coin else means + spread * rng.choice([-1, 1], 42)
        return bounded_interval(outcome.astype(float), mask.astype(float), 0.95)

    assert coverage(300, kept - replaced, draw) >= scipy.stats.binom.ppf(1e-6, 300, 0.95)


@pytest.mark.parametrize(("number", "rate"), [(24, 0.3), (42, 0.12), (42, 0.25)])
def test_bounded_intervals_cover_every_pair_of_coins_by_enumeration(number: int, rate: float) -> None:
    """No sampling: all numbers of replaced rows and of heads, weighted by their probabilities."""
    grid = np.array([0.0, 0.01, 0.03, 0.1, 0.3, 0.5, 0.8, 0.95, 0.99, 1.0])
    covered, total = np.zeros((len(grid), len(grid))), 0.0
    difference = grid[:, None] - grid  # kept - replaced
    for replaced in range(1, number):
        weight = scipy.stats.binom.pmf(replaced, number, rate)
        if weight < 1e-4:
            continue
        total += weight
        mask = np.repeat([0.0, 1.0], [number - replaced, replaced])
        for heads in np.ndindex(number - replaced + 1, replaced + 1):
            outcome = np.concatenate([np.arange(number - replaced) < heads[0], np.arange(replaced) < heads[1]])
            low, high = bounded_interval(outcome.astype(float), mask, 0.95)
            sides = scipy.stats.binom.pmf(heads, (number - replaced, replaced), grid[:, None])  # (grid, 2)
            inside = (low - 1e-9 <= difference) & (difference <= high + 1e-9)
            covered += weight * sides[:, :1] * sides[:, 1] * inside
    assert (covered / total).min() >= 0.95


def test_bounded_limits_of_one_arm_are_clopper_pearson() -> None:
    """With the other arm endless and constant the interval is that of a single proportion."""
    heads, number = 7, 20
    replaced = np.repeat([1.0, 0.0], [heads, number - heads])
    outcome = np.concatenate([np.ones(200_000), replaced])
    mask = np.repeat([0.0, 1.0], [200_000, number])
    wanted = scipy.stats.binomtest(heads, number).proportion_ci(0.95, method="exact")
    low, high = bounded_interval(outcome, mask, 0.95)
    assert (low, high) == pytest.approx((1 - wanted.high, 1 - wanted.low), abs=1e-4)
