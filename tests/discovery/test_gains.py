"""What a feature adds by counts alone, against a count by hand; windows that other features have to uncover."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import betaln

from oscar_causal.discovery.gains import Strata, best_window, parted, round_number
from oscar_causal.discovery.reading import IMAGINED_IN_SEARCH


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def some_rows(rng: np.random.Generator, rows: int, share: float) -> np.ndarray:
    return np.flatnonzero(rng.random(rows) < share)


def by_hand(features: list[np.ndarray], came: np.ndarray, rows: np.ndarray) -> float:
    """Beta-binomial marginal likelihoods, stratum by stratum."""
    held = [set(part.tolist()) for part in features]
    strata: dict[tuple[bool, ...], list[int]] = {}
    for row in range(len(came)):
        strata.setdefault(tuple(row in part for part in held), []).append(row)
    total, new = 0.0, set(rows.tolist())
    for inside in strata.values():
        share = IMAGINED_IN_SEARCH * np.mean(came[inside])
        if 0 < share < IMAGINED_IN_SEARCH:
            parts = [[row for row in inside if row in new], [row for row in inside if row not in new]]
            total += sum(_marginal(came[part], share) for part in parts) - _marginal(came[inside], share)
    return total


def _marginal(came: np.ndarray, yes: float) -> float:
    no = IMAGINED_IN_SEARCH - yes
    return float(betaln(came.sum() + yes, (~came).sum() + no) - betaln(yes, no))


def test_gain_is_that_of_a_count_by_hand(rng: np.random.Generator) -> None:
    features = [some_rows(rng, 400, share) for share in (0.3, 0.1, 0.05)]
    came = rng.random(400) < 0.2
    came[features[1]] = True
    for used in ([], features[:1], features):
        rows = some_rows(rng, 400, 0.15)
        assert Strata.of(used, came).gain(rows) == pytest.approx(by_hand(used, came, rows))


def test_every_time_is_judged_as_a_feature_of_its_own(rng: np.random.Generator) -> None:
    came, rows = rng.random(500) < 0.3, some_rows(rng, 500, 0.4)
    gaps = rng.integers(1, 30, len(rows)).astype(np.float64)
    strata = Strata.of([some_rows(rng, 500, 0.3), some_rows(rng, 500, 0.2)], came)
    times, gains = strata.gain_by_time(rows, gaps)
    assert times.tolist() == sorted(set(gaps.tolist()))
    assert gains == pytest.approx([strata.gain(rows[gaps <= time]) for time in times])


def test_a_window_shows_given_the_route_that_hides_it(rng: np.random.Generator) -> None:
    """The label comes by the order within 600 s, or by another route that brings the same order, mostly too late."""
    rows = np.arange(400)
    other = rng.random(400) < 0.5
    gaps = np.where(other, rng.uniform(500, 5000, 400), rng.uniform(1, 1200, 400))
    came = np.append(other | (gaps <= 600), np.zeros(4000, bool))
    alone, _ = best_window(Strata.of([], came), rows, gaps)
    given, nats = best_window(Strata.of([np.flatnonzero(other)], came), rows, gaps)
    assert alone is None or alone > 1200
    assert given == 600
    assert nats > 50


def test_no_window_without_need(rng: np.random.Generator) -> None:
    rows, gaps = np.arange(200), rng.uniform(1, 1000, 200)
    came = np.append(np.ones(200, bool), np.zeros(1000, bool))
    assert best_window(Strata.of([], came), rows, gaps)[0] is None
    assert best_window(Strata.of([], came), rows[:0], gaps[:0]) == (None, 0.0)
    assert best_window(Strata.of([rows], came), rows, gaps) == (None, 0.0)  # nothing is left to be told


def test_parting_nothing_is_worth_nothing() -> None:
    whole, came = np.array([10, 10]), np.array([3, 3])
    assert parted(whole, came, np.array([0, 10]), np.array([0, 3])).tolist() == [0.0, 0.0]


def test_round_numbers_lie_where_they_must(rng: np.random.Generator) -> None:
    for low, width in zip(rng.uniform(0.001, 1e6, 200), rng.uniform(1e-9, 10, 200), strict=True):
        assert low <= round_number(low, low * (1 + width)) < low * (1 + width)
    assert round_number(1200.0, 1200.0000001) == 1200.0
