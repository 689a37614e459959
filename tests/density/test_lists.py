"""What labels listen to, on worlds whose rules are known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from oscar_causal.data.sequences import Dataset, from_records
from oscar_causal.data.vocabulary import Vocabulary, build_vocabulary
from oscar_causal.density.lists import boundary_lists


def world(count: int = 3000) -> Dataset:
    """`both` needs A and B and no C; `order` A before B; `follower` comes with A, `noise` with nothing."""
    rng = np.random.default_rng(5)
    records = []
    for k in range(count):
        events = [e for e in "ABCDEGH" if rng.random() < 0.4] or ["D"]
        rng.shuffle(events)
        events += ["follower"] * ("A" in events and rng.random() < 0.9)
        there = {"A", "B"} <= set(events)
        labels = [
            *(["both"] if there and "C" not in events else []),
            *(["order"] if there and events.index("A") < events.index("B") else []),
            *(["noise"] if rng.random() < 0.3 else []),
        ]
        times = [float(t) for t in range(len(events))]
        records.append({"sequence_id": str(k), "events": events, "times": times, "labels": labels if k % 7 else None})
    return from_records(records)


def named(lists: np.ndarray, vocabulary: Vocabulary) -> dict[str, set[str]]:
    def names(row: Sequence[int]) -> set[str]:
        return {vocabulary.name(k) for k in row if k < vocabulary.size}

    return {label: names(row) for label, row in zip(vocabulary.labels, lists.tolist(), strict=True)}


def test_lists_hold_what_adds_something_and_nothing_else() -> None:
    data = world()
    vocabulary = build_vocabulary(data)
    lists = boundary_lists(data, vocabulary, 6)
    assert lists.shape == (3, 6)
    assert named(lists, vocabulary) == {"both": {"A", "B", "C"}, "order": {"A", "B"}, "noise": set()}
    assert (np.diff(lists == vocabulary.size, axis=1) >= 0).all()  # empty places come last
    told: list[tuple[int, int]] = []
    shared = boundary_lists(data, vocabulary, 6, workers=2, on_list=lambda *now: told.append(now))
    assert shared.tolist() == lists.tolist()
    assert told == [(k, 6) for k in range(1, 7)]  # three labels, two searches
    assert boundary_lists(data, vocabulary, 2).tolist() == lists[:, :2].tolist()


def test_types_and_labels_that_the_model_does_not_know_are_left_out() -> None:
    data = world()
    full = build_vocabulary(data)
    known = Vocabulary(tuple(e for e in full.events if e != "B"), ("both", "elsewhere"))
    assert named(boundary_lists(data, known, 6), known) == {"both": {"A", "C"}, "elsewhere": set()}


@pytest.mark.parametrize("labels", [None, []])
def test_without_labels_nobody_listens(labels: list[str] | None) -> None:
    data = from_records([{"sequence_id": "a", "events": ["x", "y"], "times": [0.0, 1.0], "labels": labels}])
    vocabulary = Vocabulary(("x", "y"), ("l",))
    assert (boundary_lists(data, vocabulary, 3) == vocabulary.size).all()
