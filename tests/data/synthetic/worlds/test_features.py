"""Each feature against a literal twin that reads one sequence at a time, event by event."""

from __future__ import annotations

import math

import numpy as np
import pytest

from oscar_causal.data.synthetic.worlds.features import (
    Burst,
    Chain,
    Dose,
    Excitation,
    Presence,
    PresenceWhere,
    Recency,
    Unanswered,
    Value,
)
from oscar_causal.data.synthetic.worlds.occurrences import NONE, Recorded

EVENTS = list[tuple[int, float, float]]


def logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def burst(events: EVENTS, kind: int, count: int, window: float) -> float:
    times = [t for k, t, _ in events if k == kind]
    return float(any(sum(a <= b <= a + window for b in times) >= count for a in times))


def unanswered(events: EVENTS, alarm: int, answer: int, window: float) -> float:
    answers = [t for k, t, _ in events if k == answer]
    return float(any(not any(t <= a <= t + window for a in answers) for k, t, _ in events if k == alarm))


def chain(events: EVENTS, kinds: tuple[int, ...], gaps: tuple[float, ...]) -> float:
    def follows(at: int, since: float) -> bool:
        if at == len(kinds):
            return True
        return any(k == kinds[at] and 0 < t - since <= gaps[at - 1] and follows(at + 1, t) for k, t, _ in events)

    return float(any(k == kinds[0] and follows(1, t) for k, t, _ in events))


def value(events: EVENTS, kind: int, threshold: float, slope: float) -> float:
    seen = [v for k, _, v in events if k == kind and not math.isnan(v)]
    step = math.isinf(slope)
    return max([float(v > threshold) if step else logistic(slope * (v - threshold)) for v in seen], default=0.0)


TWINS = {
    "presence": (Presence(1), lambda e, end, s: float(any(k == 1 for k, _, _ in e))),
    "recency": (
        Recency(0, 9.0),
        lambda e, end, s: max([math.exp(-(end - t) / 9) for k, t, _ in e if k == 0], default=0),
    ),
    "excitation": (
        Excitation(2, 20.0, 1.2, 0.3),
        lambda e, end, s: logistic((sum(math.exp(-(end - t) / 20) for k, t, _ in e if k == 2) - 1.2) / 0.3),
    ),
    "burst": (Burst(1, 3, 30.0), lambda e, end, s: burst(e, 1, 3, 30.0)),
    "dose": (Dose(0, 2.5, 0.3), lambda e, end, s: logistic((sum(k == 0 for k, _, _ in e) - 2.5) / 0.3)),
    "value step": (Value(2, 0.2, math.inf), lambda e, end, s: value(e, 2, 0.2, math.inf)),
    "value smooth": (Value(1, -0.3, 4.0), lambda e, end, s: value(e, 1, -0.3, 4.0)),
    "where": (PresenceWhere(0, 1, 30, 50), lambda e, end, s: float(30 <= s[1] < 50 and any(k == 0 for k, _, _ in e))),
    "unanswered": (Unanswered(0, 1, 15.0), lambda e, end, s: unanswered(e, 0, 1, 15.0)),
    "chain": (Chain((2, 0, 1), (25.0, 30.0)), lambda e, end, s: chain(e, (2, 0, 1), (25.0, 30.0))),
}


def random_sequences(seed: int, count: int = 400) -> tuple[Recorded, list[EVENTS]]:
    """Events of types 0 to 4 of which the label knows 3; the last event ends the record."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        times = np.sort(rng.uniform(0, 100, size=rng.integers(1, 12)))
        kinds = rng.integers(0, 5, size=len(times))
        values = np.where(rng.random(len(times)) < 0.2, np.nan, rng.normal(size=len(times)))
        rows.append([*zip(kinds.tolist(), times.tolist(), values.tolist(), strict=True), (5, 100.0, math.nan)])
    flat = np.array([event for row in rows for event in row])
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    static = np.column_stack([rng.integers(0, 4, size=count), rng.integers(20, 81, size=count)]).astype(float)
    return Recorded(offsets, flat[:, 0].astype(np.int64), flat[:, 1], flat[:, 2], static), rows


@pytest.mark.parametrize("name", TWINS)
def test_feature_equals_its_literal_twin(name: str) -> None:
    feature, literal = TWINS[name]
    recorded, rows = random_sequences(seed=len(name))
    seen = recorded.occurrences([0, 1, 2], 6)
    expected = [literal(row, 100.0, static) for row, static in zip(rows, recorded.static, strict=True)]
    np.testing.assert_allclose(feature.of(seen), expected, atol=1e-12)
    assert 0.02 < np.mean(np.array(expected) > 0.5) < 0.98  # both states are met


def test_removed_occurrences_are_gone_and_nothing_moves() -> None:
    recorded, rows = random_sequences(seed=7)
    seen = recorded.occurrences([0, 1, 2], 6)
    without = seen.keep(seen.types != 1)
    assert not without.present(1).any()
    assert (without.present(0) == seen.present(0)).all()
    expected = [chain([e for e in row if e[0] != 1], (2, 0, 1), (25.0, 30.0)) for row in rows]
    np.testing.assert_array_equal(Chain((2, 0, 1), (25.0, 30.0)).of(without), expected)
    expected = [unanswered([e for e in row if e[0] != 1], 0, 1, 15.0) for row in rows]
    np.testing.assert_array_equal(Unanswered(0, 1, 15.0).of(without), expected)


def test_occurrences_of_chosen_rows() -> None:
    recorded, rows = random_sequences(seed=8)
    chosen = np.array([5, 0, 5])
    part = recorded.rows(chosen).occurrences([4, 2], 6)
    for i, row in enumerate(chosen):
        own = [(0 if k == 4 else 1, t) for k, t, _ in rows[row] if k in (4, 2)]
        known = part.types[i] != NONE
        assert list(zip(part.types[i][known], part.times_s[i][known], strict=True)) == own
