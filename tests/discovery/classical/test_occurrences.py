"""Counts and orders read from occurrences: the same rows as the index of rules finds one by one, ties and all."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oscar_causal.data.rules import And, AtLeast, Event, EventIndex, Then, format_rule
from oscar_causal.data.sequences import Dataset, from_records
from oscar_causal.discovery.classical.features import occurrences_of, presence_table
from oscar_causal.discovery.classical.occurrences import FeatureReader, Occurrences
from oscar_causal.errors import UsageError

NAMES = ("A", "B", "C", "D")


def random_dataset(seed: int, sequences: int = 40) -> Dataset:
    """Short sequences over few events and few moments, so that repeats and ties are the rule; some are unlabelled."""
    rng = np.random.default_rng(seed)
    records = []
    for number in range(sequences):
        length = int(rng.integers(1, 9))
        records.append(
            {
                "sequence_id": str(number),
                "events": [NAMES[k] for k in rng.choice(4, length, p=[0.4, 0.3, 0.2, 0.1])],
                "times": np.sort(rng.integers(0, 6, length)).astype(float),
                "labels": None if number and rng.random() < 0.2 else (["y", "z"] if number % 3 else ["y"]),
            }
        )
    return from_records(records)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_the_index_of_rules_says_the_same(seed: int) -> None:
    data = random_dataset(seed)
    labelled = data.take(data.labelled)
    names = list(data.event_names)
    ids = {name: number for number, name in enumerate(names)}
    index = EventIndex(labelled.events.offsets, labelled.events.ids, labelled.times, ids)
    reader = FeatureReader(occurrences_of(data), names)
    atoms = [AtLeast(Event(name), count) for name in names for count in (2, 3, 4)]
    pairs = [pair for pair in product(names, names) if pair[0] != pair[1]]
    atoms += [Then(Event(a), Event(b), within) for a, b in pairs for within in (None, 1.0, 2.0, 4.5)]
    for atom in atoms:
        assert reader.rows_of(atom).tolist() == np.flatnonzero(index.holds(atom)).tolist(), format_rule(atom)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), keep=st.integers(1, 40))
def test_presence_is_what_the_sequences_hold(seed: int, keep: int) -> None:
    """Also where an event or a label of the dataset occurs in none of the sequences taken."""
    data = random_dataset(seed).take(np.arange(keep))
    held = [i for i in range(len(data)) if data.labelled[i]]
    table = presence_table(data)
    truth = [[row for row, i in enumerate(held) if name in data.events_of(i)] for name in data.event_names]
    truth += [[row for row, i in enumerate(held) if name in data.labels_of(i)] for name in data.label_names]
    assert [table.rows_of(column).tolist() for column in range(table.n_columns)] == truth
    by_row = [table.columns[a:b].tolist() for a, b in zip(table.row_offsets, table.row_offsets[1:], strict=False)]
    assert by_row == [[c for c, rows in enumerate(truth) if row in rows] for row in range(len(held))]


def test_saved_occurrences_are_the_same(tmp_path: Path) -> None:
    data = random_dataset(5)
    made = occurrences_of(data)
    made.save(tmp_path)
    opened = Occurrences.open(tmp_path, data.event_names)
    atom = Then(Event("A"), Event("B"), 2.0)
    rows = FeatureReader(made, ["A", "B"]).rows_of(atom).tolist()
    assert len(rows) > 3
    assert FeatureReader(opened, ["B", "A"]).rows_of(atom).tolist() == rows


def test_other_rules_are_refused() -> None:
    reader = FeatureReader(occurrences_of(random_dataset(6)), ["A", "B"])
    with pytest.raises(UsageError, match="expected a count or an order of two events"):
        reader.rows_of(And((Event("A"), Event("B"))))  # type: ignore[arg-type]
