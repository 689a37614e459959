"""Global boundaries read per sequence, against a slow reader."""

from __future__ import annotations

import numpy as np
import pytest

from oscar_causal.data.sequences import Dataset, from_records
from oscar_causal.discovery.classical.boundaries import GlobalBoundary, Member
from oscar_causal.discovery.classical.reading import read_per_sequence


def boundary(label: str, *members: Member, complete: bool = True) -> GlobalBoundary:
    return GlobalBoundary(label, members, 1000, 50, 7, complete, 0.1)


def member(feature: str, effect: float | None = 0.5, p_value: float = 0.001) -> Member:
    return Member(feature, 20.0, p_value, effect, None if effect is None else 0.1, "parent")


@pytest.fixture(scope="module")
def data() -> Dataset:
    rng = np.random.default_rng(0)
    records = []
    for number in range(120):
        events = [str(name) for name in rng.choice(list("ABCDE"), rng.integers(1, 8))]
        labels = [name for name in ("x", "y") if rng.random() < 0.5]
        times = np.sort(rng.integers(0, 20, len(events))).astype(float).tolist()
        records.append({"sequence_id": f"s{number}", "events": events, "times": times, "labels": labels})
    return from_records(records)


def test_presence_is_boundary_and_events(data: Dataset) -> None:
    found = read_per_sequence([boundary("y", member("A"), member("C")), boundary("x")], data)
    by_pair = {(item.sequence_id, item.label): item for item in found}
    assert len(by_pair) == len(found) == len(data.labels.ids)
    for row, sequence_id in enumerate(data.sequence_ids.to_pylist()):
        events = data.events_of(row)
        for label in data.labels_of(row):
            item = by_pair[sequence_id, label]
            truth = {name: tuple(i for i, e in enumerate(events) if e == name) for name in ("A", "C") if name in events}
            assert {e.event: e.positions for e in item.causes} == (truth if label == "y" else {})
            assert item.observed
            assert item.seen_in_training
    assert [item.sequence_id for item in found] == sorted(
        (i.sequence_id for i in found), key=lambda name: int(name[1:])
    )


def test_an_order_counts_only_where_it_holds_and_with_its_own_occurrences(data: Dataset) -> None:
    found = read_per_sequence([boundary("y", member("A then B"))], data)
    rows = {name: row for row, name in enumerate(data.sequence_ids.to_pylist())}
    seen = 0
    for item in found:
        row = rows[item.sequence_id]
        events, times = data.events_of(row), data.times[data.events.offsets[row] : data.events.offsets[row + 1]]
        pairs = [
            (i, j)
            for i, a in enumerate(events)
            for j, b in enumerate(events)
            if (a, b) == ("A", "B") and times[i] < times[j]
        ]
        truth = {"A": tuple(sorted({i for i, _ in pairs})), "B": tuple(sorted({j for _, j in pairs}))} if pairs else {}
        assert {e.event: e.positions for e in item.causes} == truth
        seen += bool(pairs)
    assert seen > 3


def test_a_count_counts_only_where_it_is_reached(data: Dataset) -> None:
    rows = {name: row for row, name in enumerate(data.sequence_ids.to_pylist())}
    for item in read_per_sequence([boundary("y", member("A >= 2"))], data):
        events = data.events_of(rows[item.sequence_id])
        assert [e.event for e in item.causes] == (["A"] if events.count("A") >= 2 else [])


def test_the_strongest_member_speaks_for_an_event(data: Dataset) -> None:
    both = boundary("y", member("A", 0.2, 0.01), member("A then B", 0.7, 0.0001))
    for item in read_per_sequence([both], data):
        effects = {e.event: e.indicator for e in item.causes}
        if "B" in effects:
            assert effects["A"] == effects["B"] == 0.7
        elif "A" in effects:
            assert effects["A"] == 0.2


def test_numbers_signs_and_marks(data: Dataset) -> None:
    cut_short = boundary("y", member("A", -0.4), member("B", None), complete=False)
    items = read_per_sequence([cut_short], data)
    events = {event.event: event for item in items for event in item.evidence}
    assert events["A"].verdict == "inhibitor"
    assert events["A"].ci_low == pytest.approx(-0.596)
    assert events["A"].ci_high == pytest.approx(-0.204)
    assert events["A"].cmi_nats == pytest.approx(20 / 2000)
    assert events["B"].verdict == "cause"
    assert events["B"].indicator is None
    assert all(item.flags == ("incomplete",) and item.trusted is False for item in items)
    pearson = read_per_sequence([boundary("y", member("A"))], data, statistic="chi2")
    assert {event.cmi_nats for item in pearson for event in item.evidence} == {None}


def test_labels_the_dataset_lacks_and_nasty_names() -> None:
    name = 'A then "B" >= 2\n🚗'
    data = from_records([{"sequence_id": "1", "events": [name, "B"], "times": [0, 1], "labels": ["y"]}])
    quoted = '"A then \\"B\\" >= 2\\n🚗"'
    found = read_per_sequence([boundary("y", member(quoted)), boundary("never")], data)
    assert [(item.label, [e.event for e in item.causes]) for item in found] == [("y", [name])]
