"""Of several boundaries the one that reads best: order where it matters, presence where it does not."""

from __future__ import annotations

import numpy as np
import pytest

from oscar_causal.data.sequences import Dataset, from_records
from oscar_causal.discovery.choosing import best_classical
from oscar_causal.discovery.fleet_prior import Classical
from oscar_causal.errors import UsageError


def fleet(count: int = 800) -> Dataset:
    """`ordered` comes where A is before B, `either` where C is there; some are lost, some come for no reason."""
    rng = np.random.default_rng(0)
    records = []
    for k in range(count):
        events = [str(e) for e in rng.permutation(list("ABCx")) if e == "x" or rng.random() < 0.6]
        at = {event: place for place, event in enumerate(events)}
        true = {"ordered": at.get("A", 9) < at.get("B", -1), "either": "C" in at}
        labels = [label for label, came in true.items() if rng.random() < (0.95 if came else 0.02)]
        times = list(range(len(events)))
        records.append({"sequence_id": f"s{k}", "events": events, "times": times, "labels": labels or ["none"]})
    return from_records(records)


PRESENCE = Classical("iamb", {"ordered": ("A", "B"), "either": ("C",), "rest": ("x",)}, {"ordered": 7}, "same")
ORDER = Classical("iamb", {"ordered": ("A then B",), "either": ("C then x", "x then C")}, {"ordered": 9}, "same")


def test_each_label_has_the_boundary_that_predicts_it_best() -> None:
    for sources in ([PRESENCE, ORDER], [ORDER, PRESENCE]):
        found = best_classical(sources, [fleet()])
        assert found.features == {"ordered": ("A then B",), "either": ("C",), "rest": ("x",)}
        assert found.positives["ordered"] == 9
        assert (found.method, found.subjects) == ("iamb", "same")


def test_equals_go_to_the_first_and_one_is_itself() -> None:
    twin = Classical("cmb", PRESENCE.features, {"ordered": 3}, None)
    found = best_classical([twin, PRESENCE], [fleet(60)])
    assert (found.positives["ordered"], found.method, found.subjects) == (3, "cmb or iamb", None)
    assert best_classical([ORDER], []) is ORDER
    with pytest.raises(UsageError, match="at least one source"):
        best_classical([], [])


def test_a_blocker_that_one_search_missed_is_taken_from_the_other() -> None:
    """A before B, unless C: presence finds the blocker (and takes B for one too), orders find the order alone."""
    rng = np.random.default_rng(2)
    records = []
    for k in range(1500):
        events = [str(e) for e in rng.permutation(list("ABCx")) if e == "x" or rng.random() < 0.6]
        at = {event: place for place, event in enumerate(events)}
        came = at.get("A", 9) < at.get("B", -1) and "C" not in at
        labels, times = ["y"] if came else ["none"], list(range(len(events)))
        records.append({"sequence_id": f"s{k}", "events": events, "times": times, "labels": labels})
    presence = Classical("iamb", {"y": ("A",)}, {"y": 1}, None, {"y": ("C", "B")})
    order = Classical("iamb", {"y": ("A then B",)}, {"y": 1}, None)
    for sources in ([presence, order], [order, presence]):
        found = best_classical(sources, [from_records(records)])
        assert (found.features["y"], found.lowering["y"]) == (("A then B",), ("C",))
