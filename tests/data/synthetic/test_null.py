"""A null fleet: the same events, labels that depend on nothing."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import stats

from oscar_causal.data.sequences import Dataset, read_dataset
from oscar_causal.data.synthetic import World, make_world

Fleet = Any  # of conftest.py

KNOBS = {"sequences": 6000, "mean_length": 30.0, "sd_length": 10.0, "hidden_driver": 0.5, "labels_per_sequence": 2.0}


@pytest.fixture(scope="module")
def pair(make_fleet: Callable[..., Fleet]) -> tuple[Fleet, Fleet]:
    return make_fleet("hard", **KNOBS), make_fleet("hard", null=True, **KNOBS)


def p_value(a: np.ndarray, b: np.ndarray) -> float:
    """Chi-square test of independence of two binary columns."""
    table = np.array([[(x & y).sum() for y in (b, ~b)] for x in (a, ~a)])
    return float(stats.chi2_contingency(table, correction=False).pvalue)


def cause_p_values(data: Dataset, world: World) -> list[float]:
    """One test per label, of a true cause where counts allow it (several of one label would not be independent)."""
    events, labels = data.events.indicator(len(data.event_names)), data.labels.indicator(len(data.label_names))
    found = []
    for y, law in enumerate(world.laws[: world.config.labels]):
        label = labels[:, data.label_names.index(world.label_names[y])]
        for event in law.causes:
            here = events[:, data.event_names.index(world.event_names[event])]
            if here.sum() * label.sum() / len(data) >= 5:
                found.append(p_value(here, label))
                break
    return found


def test_same_events_other_labels(pair: tuple[Fleet, Fleet]) -> None:
    real, null = pair
    for column in ("sequence_id", "subject_id", "start", "events", "times", "static"):
        assert [row[column] for row in real.rows] == [row[column] for row in null.rows], column
    assert [row["labels"] for row in real.rows] != [row["labels"] for row in null.rows]
    assert (null.path / "names.json").read_bytes() == (real.path / "names.json").read_bytes()


def test_labels_are_as_frequent_as_in_the_real_fleet(pair: tuple[Fleet, Fleet]) -> None:
    counts = []
    for fleet in pair:
        data = read_dataset(fleet.path)
        counts.append(np.bincount(data.labels.ids, minlength=len(data.label_names)))
    z = (counts[0] - counts[1]) / np.sqrt(counts[0] + counts[1])
    assert len(z) == 24
    assert np.abs(z).max() < 4


def test_no_label_depends_on_its_former_causes(pair: tuple[Fleet, Fleet]) -> None:
    real, null = (read_dataset(fleet.path) for fleet in pair)
    world = make_world(pair[0].config, 5)
    found = cause_p_values(null, world)
    assert len(found) > 20
    assert stats.kstest(found, "uniform").pvalue > 0.001
    assert min(found) > 0.001 / len(found)
    assert np.median(cause_p_values(real, world)) < 1e-20  # the same test sees the real dependence


def test_labels_do_not_depend_on_each_other_or_on_the_start(pair: tuple[Fleet, Fleet]) -> None:
    data = read_dataset(pair[1].path)
    labels = data.labels.indicator(len(data.label_names))
    late = np.array([row["start"].timestamp() for row in pair[1].rows])
    late = late > np.median(late)
    found = [p_value(labels[:, a], labels[:, b]) for a, b in combinations(range(24), 2)]
    assert stats.kstest(found, "uniform").pvalue > 0.001
    assert min(found) > 0.001 / len(found)
    assert min(p_value(labels[:, y], late) for y in range(24)) > 0.001 / 24


def test_a_null_fleet_has_neither_rules_nor_reasons(pair: tuple[Fleet, Fleet]) -> None:
    _, null = pair
    assert not (null.path / "rules.json").exists()
    assert not (null.path / "why").exists()
    assert null.info["generator"]["hidden_rules"] == []
    assert null.info["generator"]["graded_labels"] == {}
    assert null.info["presence_oracle"]["f1"] is None
    assert null.info["bayes"] == {"macro_f1": 0.0, "micro_f1": 0.0, "weighted_f1": 0.0}
    counts = null.info["label_counts"]
    assert counts["false"] == counts["recorded"] > 0
