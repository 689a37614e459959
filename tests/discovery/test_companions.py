"""Events that were never missing: found for counts and orders, not for what merely belongs to an event."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from oscar_causal.data.rules import AtLeast, Event, Then
from oscar_causal.data.sequences import Dataset, from_records
from oscar_causal.discovery.companions import companions
from oscar_causal.discovery.pools import Candidates, Fleet

ORDER = Then(Event("A"), Event("B"), 600.0)


def test_a_companion_is_found(decoy_garage: Callable[[int, int], Dataset]) -> None:
    cars = decoy_garage(3000, 3)
    candidates = Candidates(Fleet.of(cars), cars.label_names.index("fault"), [ORDER])
    assert companions(candidates, [ORDER]) == [Event("C")]  # and not F, which is often there too
    assert companions(candidates, [ORDER, Event("C")]) == []  # it is known already
    assert companions(candidates, [Event("A"), Event("B")]) == []


def workshop(*, twin: bool, exception: bool) -> Candidates:
    """`fault` comes with three A. A companion C comes with these, or a twin of A everywhere; single A come alone."""
    records = []
    for k in range(400):
        events = ["x"] if k % 4 else ["A", "A", "A", "C"] if k % 8 else ["A"]
        if exception and k == 4:
            events = ["A", "A", "A"]
        if twin and "A" in events:
            events = [*events, "C"]
        labels = ["fault"] if events.count("A") == 3 else ["none"]
        records.append({"sequence_id": str(k), "events": events, "times": list(range(len(events))), "labels": labels})
    data = from_records(records)
    return Candidates(Fleet.of(data), data.label_names.index("fault"))


@pytest.mark.parametrize(("twin", "exception", "found"), [(0, 0, ["C"]), (1, 0, []), (0, 1, [])])
def test_twins_and_events_that_were_missing_once_are_none(twin: bool, exception: bool, found: list[str]) -> None:
    candidates = workshop(twin=bool(twin), exception=bool(exception))
    assert [event.name for event in companions(candidates, [AtLeast(Event("A"), 3)])] == found


def test_a_feature_that_never_came_with_the_label_has_none() -> None:
    assert companions(workshop(twin=False, exception=False), [AtLeast(Event("x"), 3)]) == []


@pytest.mark.parametrize(("alone", "found"), [(3, ["C"]), (0, [])])
def test_what_counts_is_how_often_it_is_missing_elsewhere(alone: int, found: list[str]) -> None:
    """Nearly all A come three at a time, with C and the label; three that came alone are enough, none is not."""
    rows = [["A", "A", "A", "C"]] * 50 + [["A"]] * alone + [["x"]] * 200
    data = from_records(
        {"sequence_id": str(k), "events": row, "times": [*range(len(row))], "labels": ["fault"] * (len(row) == 4)}
        for k, row in enumerate(rows)
    )
    candidates = Candidates(Fleet.of(data), 0)
    assert [event.name for event in companions(candidates, [AtLeast(Event("A"), 3)])] == found
