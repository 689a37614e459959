"""Pools: where features hold and how often their patterns were met, against the rules' own index."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2, chi2_contingency

from oscar_causal.data.rules import AtLeast, Event, EventIndex, Then, parse
from oscar_causal.data.sequences import Dataset
from oscar_causal.discovery.evidence import FOLDS, subject_groups
from oscar_causal.discovery.pools import SIZE, Candidates, Fleet, strongest_types
from oscar_causal.errors import UsageError

BOUNDARY = [Then(Event("A"), Event("B"), 600.0), AtLeast(Event("D"), 3), Event("E")]


@pytest.fixture(scope="module")
def cars(decoy_garage: Callable[[int, int], Dataset]) -> Dataset:
    return decoy_garage(1500, 1)


@pytest.fixture(scope="module")
def candidates(cars: Dataset) -> Candidates:
    return Candidates(Fleet.of(cars), cars.label_names.index("fault"), BOUNDARY)


def test_features_hold_where_rules_say(cars: Dataset, candidates: Candidates) -> None:
    names = {name: number for number, name in enumerate(cars.event_names)}
    index = EventIndex(cars.events.offsets, cars.events.ids, cars.times, names)
    pool = candidates.pool(BOUNDARY)
    assert pool.atoms[:3] == tuple(BOUNDARY)
    assert 10 < len(pool.atoms) <= SIZE
    holds = np.array([index.holds(atom) for atom in pool.atoms]).T
    codes = (holds * (1 << np.arange(len(pool.atoms), dtype=object))).sum(1)
    fold = subject_groups(cars.subject_ids) % FOLDS
    met = dict(zip(pool.codes.tolist(), pool.counts, strict=True))
    assert sum(int(counts[0].sum()) for counts in met.values()) == len(cars)
    for code in set(codes.tolist()):
        for k in range(FOLDS):
            mine = (codes == code) & (fold == k)
            assert met[code][:, k].tolist() == [mine.sum(), (mine & candidates.came).sum()]


def test_strongest_types_are_those_of_the_g_test(cars: Dataset, candidates: Candidates) -> None:
    tested = {}
    for name in cars.event_names:
        held = np.array([name in cars.events_of(k) for k in range(len(cars))])
        table = [[(held & came).sum(), (~held & came).sum()] for came in (candidates.came, ~candidates.came)]
        tested[name] = chi2_contingency(table, correction=False, lambda_="log-likelihood").statistic
    order = sorted(tested, key=lambda name: -tested[name])
    found = strongest_types(candidates.fleet, cars.label_names.index("fault"))
    assert found == order[: len(found)]
    assert set("ABCDF") <= set(found)
    assert all(chi2.sf(tested[name], 1) < 0.01 / len(tested) for name in found)
    assert chi2.sf(tested[order[len(found)]], 1) > 0.0001 / len(tested)  # nothing sure is left out


def test_what_does_not_occur_holds_nowhere(candidates: Candidates) -> None:
    for text in ("never", "never >= 2", "A then never"):
        assert not len(candidates.rows_of(parse(text)))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="order of two events"):
        candidates.rows_of(parse("A then B then C"))  # type: ignore[arg-type]


def test_other_processes_see_the_same(cars: Dataset, candidates: Candidates, tmp_path: Path) -> None:
    fleet = candidates.fleet
    fleet.save(tmp_path)
    again = Candidates(Fleet.open(tmp_path), 0, BOUNDARY).pool(BOUNDARY)
    pool = Candidates(fleet, 0, BOUNDARY).pool(BOUNDARY)
    assert again.atoms == pool.atoms
    assert again.codes.tolist() == pool.codes.tolist()
    assert (again.counts == pool.counts).all()
