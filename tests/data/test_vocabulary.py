"""The vocabulary against counts made by hand."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oscar_causal.data.sequences import from_records
from oscar_causal.data.vocabulary import SPECIAL_IDS, UNKNOWN_ID, Vocabulary, build_vocabulary
from oscar_causal.errors import DataError, UsageError

events = st.lists(st.sampled_from("ABCDEF"), min_size=1, max_size=6)
sequences = st.lists(st.tuples(events, st.sets(st.sampled_from("xyz"))), min_size=1, max_size=8)


def records(rows: list[Any]) -> list[dict[str, Any]]:
    return [
        {"sequence_id": str(i), "events": list(events), "times": [0.0] * len(events), "labels": sorted(labels)}
        for i, (events, labels) in enumerate(rows)
    ]


@settings(deadline=None)
@given(rows=sequences, min_count=st.integers(1, 4), most=st.none() | st.integers(0, 4))
def test_frequent_events_first_ties_by_name(rows: list[Any], min_count: int, most: int | None) -> None:
    counts = Counter(event for events, _ in rows for event in events)
    wanted = sorted((name for name in counts if counts[name] >= min_count), key=lambda name: (-counts[name], name))
    found = build_vocabulary(from_records(records(rows)), min_count=min_count, max_events=most)
    assert list(found.events) == wanted[:most]
    assert found.labels == tuple(sorted({label for _, labels in rows for label in labels}))
    assert found.size == SPECIAL_IDS + len(found.events)
    assert Vocabulary.from_json(found.to_json()) == found


def test_ids() -> None:
    found = Vocabulary(("B", "A"), ("y", "z"))
    assert found.event_table(["A", "gone", "B"]).tolist() == [SPECIAL_IDS + 1, UNKNOWN_ID, SPECIAL_IDS]
    assert found.label_table(["z", "gone", "y"]).tolist() == [1, -1, 0]
    assert [found.name(i) for i in range(found.size)] == ["<pad>", "<unknown>", "<start>", "B", "A"]
    assert found.event_table([]).tolist() == []


def test_labels_that_no_sequence_carries_are_left_out() -> None:
    data = from_records(records([(["A"], {"x"}), (["A"], {"y"})]))
    assert build_vocabulary(data.take([1])).labels == ("y",)


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"events": ["A"], "labels": "y"},
        {"events": [1], "labels": []},
        {"events": ["A", "A"], "labels": []},
    ],
)
def test_damaged_vocabularies(value: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="vocabulary: expected"):
        Vocabulary.from_json(value)


def test_bad_requests() -> None:
    with pytest.raises(UsageError, match="min_count"):
        build_vocabulary(from_records(records([(["A"], set())])), min_count=0)
