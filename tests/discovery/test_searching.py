"""The search against a literal twin: every step judged by counting afresh and `Readings.log_likelihood` alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from oscar_causal.data.rules import format_rule, parse
from oscar_causal.data.sequences import Dataset
from oscar_causal.discovery import searching
from oscar_causal.discovery.gains import PRICE, Strata
from oscar_causal.discovery.pools import Candidates, Fleet
from oscar_causal.discovery.reading import Features, count_patterns, readings_of
from oscar_causal.discovery.searching import Search

TEXTS = ["A", "A then B", "A then B within 600s", "C", "D", "D >= 2", "D >= 3", "E", "F", "n1", "n2"]


@pytest.fixture(scope="module")
def cars(decoy_garage: Callable[[int, int], Dataset]) -> Dataset:
    return decoy_garage(1500, 2)


@pytest.fixture(scope="module")
def candidates(cars: Dataset) -> Candidates:
    return Candidates(Fleet.of(cars), cars.label_names.index("fault"), [parse(text) for text in TEXTS])  # type: ignore[misc]


@pytest.fixture
def search(candidates: Candidates) -> Search:
    return Search(candidates.count([parse(text) for text in TEXTS]))  # type: ignore[misc]


def literal(cars: Dataset, chosen: list[str]) -> float:
    features = Features(tuple(chosen))
    read = readings_of(count_patterns(cars, {"fault": features}).patterns, {"fault": features})
    assert read is not None
    return read.log_likelihood("fault") - PRICE * len(chosen)


def twin(cars: Dataset, chosen: list[str]) -> list[str]:
    """Forward, then backward."""
    best = literal(cars, chosen)
    while scores := {text: literal(cars, [*chosen, text]) for text in TEXTS if text not in chosen}:
        text = max(scores, key=lambda name: scores[name])
        if scores[text] <= best:
            break
        best, chosen = scores[text], [*chosen, text]
    while len(chosen) > 1:
        scores = {text: literal(cars, [t for t in chosen if t != text]) for text in chosen}
        text = max(scores, key=lambda name: scores[name])
        if scores[text] < best:
            break
        best, chosen = scores[text], [t for t in chosen if t != text]
    return chosen


def test_scores_are_those_of_fresh_counts(cars: Dataset, candidates: Candidates, search: Search) -> None:
    rng = np.random.default_rng(0)
    for size in (1, 2, 4, 7):
        chosen = rng.choice(len(TEXTS), size, replace=False).tolist()
        expected = literal(cars, [TEXTS[k] for k in chosen])
        assert search.score(chosen) == pytest.approx(expected, abs=1e-6)
        whole = candidates.log_likelihood([search.pool.atoms[k] for k in chosen])
        assert whole == pytest.approx(expected + PRICE * size, abs=1e-6)


def test_gains_are_those_of_the_rows(candidates: Candidates, search: Search) -> None:
    for chosen in ([], [2], [2, 6, 7]):
        strata = Strata.of([candidates.rows_of(search.pool.atoms[k]) for k in chosen], candidates.came)
        assert search.gains(chosen) == pytest.approx([strata.gain(candidates.rows_of(a)) for a in search.pool.atoms])


@pytest.mark.parametrize("start", [["F", "n1"], ["A", "C", "D", "n2"]])
def test_the_search_is_the_literal_one(
    cars: Dataset, search: Search, start: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = twin(cars, start)
    few = search.improve([TEXTS.index(text) for text in start])
    monkeypatch.setattr(searching, "TRIED", len(TEXTS))
    every = search.improve([TEXTS.index(text) for text in start])
    for found in (few, every):
        assert {format_rule(search.pool.atoms[k]) for k in found} == set(expected)
    assert set(expected) - {"C"} == {"A then B within 600s", "D >= 3", "E"}


def test_boundaries_are_bounded(search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "LIMIT", 2)
    assert len(search.forward([])) == 2


def test_sides(search: Search) -> None:
    up = search.weights([7, 2, 6]) > 0  # in the order of the pool
    assert up.tolist() == [True, True, False]
    assert search.weights([]).tolist() == []
