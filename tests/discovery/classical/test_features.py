"""Counts and orders as columns: against a slow reader of sequences, and in what they are for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oscar_causal.data.rules import AtLeast, Event, Then, format_rule
from oscar_causal.data.sequences import Dataset, from_records
from oscar_causal.discovery.classical.features import (
    FeatureConfig,
    feature_table,
    features_of,
    occurrences_of,
    presence_table,
)
from oscar_causal.discovery.classical.learning import learn_boundaries
from oscar_causal.discovery.classical.methods import BaselineConfig
from oscar_causal.errors import DataError, UsageError


def random_dataset(sequences: int, seed: int, label: Any = None) -> Dataset:
    """Sequences of events A .. F at times with ties; `label(events, times)` decides the label y."""
    rng = np.random.default_rng(seed)
    records = []
    for number in range(sequences):
        events = [str(name) for name in rng.choice(list("ABCDEF"), rng.integers(2, 9))]
        times = np.sort(rng.integers(0, 50, len(events))).astype(float)
        labels = ["y"] if (label(events, times) if label else rng.random() < 0.3) else []
        records.append({"sequence_id": f"{number}", "events": events, "times": times, "labels": labels})
    return from_records(records)


def holds(atom: Any, events: list[str], times: np.ndarray) -> bool:
    """One feature in one sequence, read slowly."""
    match atom:
        case Event(name):
            return name in events
        case AtLeast(Event(name), count):
            return events.count(name) >= count
        case Then(Event(first), Event(second), within):
            gaps = [
                times[j] - times[i]
                for i, a in enumerate(events)
                for j, b in enumerate(events)
                if a == first and b == second and times[j] > times[i]
            ]
            return any(within is None or gap <= within for gap in gaps)
    raise AssertionError(atom)


def test_every_column_holds_where_a_slow_reader_says() -> None:
    data = random_dataset(150, 1)
    config = FeatureConfig(("presence", "counts", "order"), most_count=3, windows=(5.0, 20.0), least_rows=1)
    presence = presence_table(data)
    index = occurrences_of(data)
    columns = list(range(len(data.event_names)))
    table, atoms = feature_table(presence, columns, [presence.n_events], index, config)
    assert len(atoms) == 6 + 6 * 2 + 30 * 3
    assert table.n_events == len(atoms)
    assert table.rows_of(len(atoms)).tolist() == presence.rows_of(presence.n_events).tolist()
    offsets = data.events.offsets
    for column, atom in enumerate(atoms):
        truth = [
            row
            for row in range(len(data))
            if holds(atom, data.events_of(row), data.times[offsets[row] : offsets[row + 1]])
        ]
        assert table.rows_of(column).tolist() == truth, format_rule(atom)


def test_rare_features_and_weak_events_get_no_columns() -> None:
    data = random_dataset(60, 2)
    presence = presence_table(data)
    index = occurrences_of(data)
    config = FeatureConfig(("order",), screened=2, windows=(), least_rows=1)
    _, atoms = feature_table(presence, [3, 1, 0], [presence.n_events], index, config)
    assert [format_rule(atom) for atom in atoms] == ["D", "B", "A", "D then B", "B then D"]
    _, few = feature_table(presence, [3, 1], [presence.n_events], index, FeatureConfig(("order",), least_rows=10**6))
    assert len(few) == 2


def test_names_that_look_like_rules_stay_names() -> None:
    names = ["A then B", "x >= 2", '"']
    atoms = list(features_of(names, FeatureConfig(("counts", "order"), windows=())))
    assert {name for atom in atoms for name in _names(atom)} == set(names)


def _names(atom: Any) -> list[str]:
    return [atom.event.name] if isinstance(atom, AtLeast) else [atom.first.name, atom.second.name]


def test_order_is_found_where_presence_cannot_see_it() -> None:
    def a_before_b(events: list[str], times: np.ndarray) -> bool:
        return holds(Then(Event("A"), Event("B")), events, times)

    data = random_dataset(1500, 3, a_before_b)
    by_presence = learn_boundaries(data)[0]
    by_order = learn_boundaries(data, BaselineConfig(features=FeatureConfig(("order",))))[0]
    assert by_presence.events == ("A", "B") or by_presence.events == ("B", "A")
    assert [member.feature for member in by_order.members] == ["A then B"]
    assert by_order.members[0].effect == pytest.approx(1.0)


def test_counts_are_found_where_presence_cannot_see_them() -> None:
    data = random_dataset(1500, 4, lambda events, times: events.count("C") >= 2)
    config = BaselineConfig(features=FeatureConfig(("counts",)))
    assert [member.feature for member in learn_boundaries(data, config)[0].members] == ["C >= 2"]


def test_labels_related_to_nothing_get_no_features() -> None:
    config = BaselineConfig(features=FeatureConfig(("counts", "order")))
    found = [learn_boundaries(random_dataset(200, 100 + seed), config)[0] for seed in range(40)]
    assert sum(bool(boundary.members) for boundary in found) <= 2
    assert max(boundary.tests for boundary in found if not boundary.members) <= 6


def test_unlabelled_sequences_are_left_out() -> None:
    records = [
        {"sequence_id": "1", "events": ["A"], "times": [0], "labels": ["y"]},
        {"sequence_id": "2", "events": ["A", "B"], "times": [0, 1], "labels": None},
        {"sequence_id": "3", "events": ["B"], "times": [0], "labels": []},
    ]
    table = presence_table(from_records(records))
    assert table.n_rows == 2
    assert table.totals.tolist() == [1, 1, 1]
    with pytest.raises(DataError, match="none with a label"):
        presence_table(from_records(records[1:]))


@pytest.mark.parametrize(
    "wrong",
    [{"kinds": ("colour",)}, {"most_count": 1}, {"screened": 1}, {"windows": (0.0,)}, {"windows": (float("nan"),)}],
)
def test_bad_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="expected"):
        FeatureConfig(**wrong)
