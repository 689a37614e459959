"""Several datasets as one: every sequence keeps its names, times and labels."""

from __future__ import annotations

from oscar_causal.data.joining import joined
from oscar_causal.data.sequences import from_records


def record(name: str, events: list[str], labels: list[str] | None) -> dict[str, object]:
    return {"sequence_id": name, "subject_id": f"car {name}", "events": events, "labels": labels} | {
        "times": [float(k) for k in range(len(events))]
    }


def test_every_sequence_is_what_it_was() -> None:
    first = from_records([record("a", ["B", "C"], ["y"]), record("b", ["C"], None)])
    second = from_records([record("a", ["A", "C", "A"], ["x", "y"]), record("c", ["C"], [])])
    both = joined([first, second])
    assert both.event_names == ("A", "B", "C")
    assert both.label_names == ("x", "y")
    assert [both.events_of(k) for k in range(4)] == [["B", "C"], ["C"], ["A", "C", "A"], ["C"]]
    assert [both.labels_of(k) for k in range(4)] == [["y"], [], ["x", "y"], []]
    assert both.labelled.tolist() == [True, False, True, True]
    assert both.times.tolist() == [0, 1, 0, 0, 1, 2, 0]
    assert both.subject_ids.to_pylist() == ["car a", "car b", "car a", "car c"]
    assert both.take([2, 0]).times.tolist() == [0, 1, 2, 0, 1]


def test_one_is_itself() -> None:
    data = from_records([record("a", ["B"], ["y"])])
    assert joined([data]) is data
