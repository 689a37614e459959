"""A boundary read with an event and without it, against fleets in which it is known which route fired."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oscar_causal.data.rules import EventIndex
from oscar_causal.data.sequences import Dataset, from_records
from oscar_causal.discovery.evidence import merge, subject_groups
from oscar_causal.discovery.reading import Features, Read, Readings, acted, count_patterns, readings_of


def fleet(count: int, rule: Any, seed: int = 0, lost: float = 0.05) -> Dataset:
    """A, B, C, D come with one half each, in any order; the rule sees the places of those present."""
    rng = np.random.default_rng(seed)
    records = []
    for number in range(count):
        events = [str(e) for e in rng.permutation(list("ABCDx")) if e == "x" or rng.random() < 0.5]
        place = {event: at for at, event in enumerate(events)}
        came = bool(rule(place)) and rng.random() > lost
        records.append(
            {
                "sequence_id": f"s{number}",
                "events": events,
                "times": list(range(len(events))),
                "labels": ["y"] if came else ["z"],
            }
        )
    return from_records(records)


def read(data: Dataset, features: Features, events: str) -> Read:
    readings = readings_of(count_patterns(data, {"y": features}).patterns, {"y": features})
    assert readings is not None
    ids = {name: k for k, name in enumerate("ABCDx")}
    index = EventIndex([0, len(events)], [ids[e] for e in events], np.arange(float(len(events))), ids)
    found = readings.read("y", index, fold=0)
    assert found is not None
    return found


def test_order_decides_who_acted() -> None:
    def rule(at: dict[str, int]) -> bool:
        return at.get("A", 9) < at.get("B", -1) or at.get("C", 9) < at.get("D", -1)

    data, features = fleet(2000, rule), Features(("A then B", "C then D"))
    here = read(data, features, "BACxD")
    assert set(here.acted) == {"C", "D"}
    assert min(here.acted.values()) > 0.95
    assert here.outside < 0.05
    both = read(data, features, "ABCD")  # each stands in for the other: both acted, as far as anybody can tell
    assert min(both.acted.values()) > 0.8
    neither = read(data, features, "BADC")
    assert (dict(neither.acted), neither.outside) == ({}, 1.0)


def test_an_and_needs_both_and_a_bystander_none() -> None:
    data = fleet(2000, lambda at: "A" in at and "B" in at)
    here = read(data, Features(("A", "B", "C")), "ABC")
    assert min(here.acted["A"], here.acted["B"]) > 0.95
    assert here.acted.get("C", 0.0) < 0.2


def test_stand_ins_do_not_hide_each_other() -> None:
    """Any two of three suffice: with all three there none is missed, yet each acted; a bystander still did not."""
    data = fleet(4000, lambda at: sum(e in at for e in "ABC") >= 2)
    here = read(data, Features(("A", "B", "C", "D")), "ABCD")
    assert min(here.acted[e] for e in "ABC") > 0.9
    assert here.acted.get("D", 0.0) < 0.3


def test_stand_ins_of_two_routes_are_taken_out_one_after_the_other() -> None:
    data = fleet(4000, lambda at: {"A", "B"} <= set(at) or {"C", "D"} <= set(at))
    here = read(data, Features(tuple("ABCD")), "ABCD")
    assert min(here.acted.values()) > 0.9
    assert set(here.acted) == set("ABCD")
    assert set(read(data, Features(tuple("ABCD")), "ABC").acted) == {"A", "B"}


def test_a_blocker_in_the_boundary_explains_why_it_did_not_come() -> None:
    data = fleet(3000, lambda at: "A" in at and "D" not in at)
    features = Features(("A",), ("D",))
    assert read(data, features, "A").acted["A"] > 0.95
    assert "D" not in read(data, features, "AD").acted


def test_the_chance_is_that_of_independent_causes() -> None:
    """Enumerated: the event acts with power w, others with u; P(it acted | label) = w / (1 - (1 - w)(1 - u))."""
    for w, u in ((0.9, 0.05), (0.6, 0.2), (0.95, 0.4)):
        whole = 1 - (1 - w) * (1 - u)
        assert acted(whole, u) == pytest.approx(w / whole, abs=0.1)
        assert acted(whole, u) <= w / whole + 0.01  # doubt never makes it likelier
    assert acted(0.3, 0.5) == 0.0


def test_counts_are_those_of_a_loop_and_merge() -> None:
    data = fleet(300, lambda at: "A" in at, lost=0.2)
    features = {"y": Features(("A", "A then B")), "never seen": Features(("A",))}
    table = count_patterns(data, features).patterns
    wanted: dict[tuple[str, int], list[int]] = {}
    for k, group in enumerate(subject_groups(data.subject_ids).tolist()):
        events = data.events_of(k)
        holds = "A" in events, "A" in events and "B" in events[events.index("A") :]
        sums = wanted.setdefault((f"{holds[0] + 2 * holds[1]:x}", group), [0, 0])
        sums[0] += 1
        sums[1] += "y" in data.labels_of(k)
    rows = table.to_pylist()
    assert {(r["pattern"], r["group"]): [r["sequences"], r["positives"]] for r in rows} == wanted
    assert {r["label"] for r in rows} == {"y"}
    halves = [count_patterns(data.take(np.arange(len(data)) % 2 == k), features) for k in (0, 1)]
    assert merge(halves).patterns.equals(table)


def test_nothing_counted_is_no_reading() -> None:
    data = fleet(50, lambda at: "A" in at)
    features = {"y": Features(())}
    assert readings_of(count_patterns(data, features).patterns, features) is None
    assert Readings(features, {}).read("y", EventIndex([0, 1], [0], None, {"A": 0}), 0) is None


def test_boundaries_that_sources_share_are_counted_once() -> None:
    data = from_records(
        {"sequence_id": f"s{k}", "events": ["A", "B"][: 1 + k % 2], "times": [0.0, 1.0][: 1 + k % 2], "labels": ["y"]}
        for k in range(20)
    )
    one, two = {"y": Features(("A",))}, {"y": Features(("A",)), "z": Features(("B",))}
    other = {"y": Features(("A", "B"))}
    assert count_patterns(data, one, two) == count_patterns(data, one)
    both = count_patterns(data, one, other)
    assert both == merge([count_patterns(data, one), count_patterns(data, other)])


def timed(name: str, events: list[str], came: bool) -> dict[str, Any]:
    times = [float(k) for k in range(len(events))]
    return {"sequence_id": name, "events": events, "times": times, "labels": ["y"] if came else ["z"]}


def test_where_a_boundary_decides_little_an_unseen_pattern_says_little() -> None:
    """A and B never come apart. They decide the label, or half of it: then who acted is anybody's guess."""
    found = []
    for every in (2, 4):
        data = from_records(timed(f"s{k}", ["x", "A", "B"] if k % 2 else ["x"], k % every == 1) for k in range(400))
        found.append(read(data, Features(("A", "B")), "ABx").acted)
    assert found[0]["A"] == found[0]["B"] > 0.9
    assert found[1]["A"] == found[1]["B"] < 0.7


def test_many_features_are_weighed_one_by_one_where_patterns_are_new() -> None:
    """Two of ten suffice: nearly every pattern is new, and still the whole boundary predicts better than a part."""
    rng = np.random.default_rng(1)
    names = [f"E{k}" for k in range(10)]
    drawn = [[name for name in names if rng.random() < 0.35] for _ in range(600)]
    data = from_records(timed(f"s{k}", ["x", *events], len(events) >= 2) for k, events in enumerate(drawn))
    scores = []
    for features in ({"y": Features(tuple(names))}, {"y": Features(tuple(names[:3]))}):
        readings = readings_of(count_patterns(data, features).patterns, features)
        assert readings is not None
        scores.append(readings.log_likelihood("y"))
    assert scores[0] > 0.5 * scores[1]
