"""Why labels go together: shared causes, causes that come together, or something else."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from oscar_causal.data.sequences import Dataset, from_records
from oscar_causal.errors import UsageError
from oscar_causal.graph.interplay import Interplay, InterplayConfig, _Study, label_graph, label_interplay
from oscar_causal.graph.rules.mining import Mined

RULES = {
    "left": "S & A",
    "right": "S & B",
    "pulled": "P",
    "pusher": "Q",
    "lonely": "X",
    "twin": "Y",
    "echo": "Z",
}
BOUNDARIES = {
    "left": ["S", "A"],
    "right": ["S", "B"],
    "pulled": ["P"],
    "pusher": ["Q"],
    "lonely": ["X"],
    "twin": ["Y"],
    "echo": ["Z"],
}


@pytest.fixture(scope="module")
def fleet() -> Dataset:
    """`left` and `right` share S; P and Q come together; `echo` follows `twin` for no recorded reason."""
    rng = np.random.default_rng(0)
    records = []
    for k in range(2500):
        on = {name: rng.random() < 0.3 for name in "SABXYZ"}
        on["P"] = rng.random() < 0.3
        on["Q"] = rng.random() < (0.7 if on["P"] else 0.1)
        labels = [
            label
            for label, holds in (
                ("left", on["S"] and on["A"]),
                ("right", on["S"] and on["B"]),
                ("pulled", on["P"]),
                ("pusher", on["Q"]),
                ("lonely", on["X"]),
                ("twin", on["Y"]),
                ("echo", on["Z"] or (on["Y"] and rng.random() < 0.5)),
            )
            if holds and rng.random() < 0.95
        ]
        events = [f"f{rng.integers(9)}" for _ in range(4)] + [name for name, there in on.items() if there]
        rng.shuffle(events)
        records.append({"sequence_id": f"s{k}", "events": events, "times": list(range(len(events))), "labels": labels})
    return from_records(records)


@pytest.fixture(scope="module")
def rows(garage: Any, fleet: Dataset) -> dict[frozenset[str], Interplay]:
    found = label_interplay(garage.model(fleet, RULES), fleet, BOUNDARIES)
    return {frozenset((row.label_a, row.label_b)): row for row in found}


def test_shared_causes_explain_and_the_model_agrees(rows: dict[frozenset[str], Interplay]) -> None:
    row = rows[frozenset(("left", "right"))]
    assert row.verdict == "explained by shared causes"
    assert row.shared_causes == ("S",)
    assert row.dependence_before > 0.2 > 0.05 > abs(row.dependence_after)
    assert row.p_before < 1e-6 < 0.01 < row.p_after
    assert row.fall_a == pytest.approx(0.93, abs=0.01)
    assert row.fall_b == pytest.approx(0.93, abs=0.01)


def test_causes_that_come_together_explain_without_being_shared(rows: dict[frozenset[str], Interplay]) -> None:
    row = rows[frozenset(("pulled", "pusher"))]
    assert (row.verdict, row.shared_causes) == ("explained by their boundaries", ())
    assert row.fall_a is None


def test_what_no_boundary_explains_remains(garage: Any, fleet: Dataset) -> None:
    """`echo` comes half the time when Y does, and its boundary does not say so: held, nothing of `twin` is left to
    vary; with `twin`'s own boundary hidden too, the labels stay dependent."""
    found = label_interplay(None, fleet, {**BOUNDARIES, "twin": []})
    row = next(r for r in found if {r.label_a, r.label_b} == {"twin", "echo"})
    assert row.verdict == "still dependent"
    assert row.p_after < 1e-6


def test_independent_labels_have_no_row(rows: dict[frozenset[str], Interplay]) -> None:
    assert frozenset(("lonely", "pulled")) not in rows
    assert frozenset(("lonely", "left")) not in rows


def test_a_shared_event_the_model_does_not_use_is_not_believed(garage: Any, fleet: Dataset) -> None:
    blind = garage.model(fleet, {**RULES, "left": "A", "right": "B"})
    found = label_interplay(blind, fleet, {"left": ["S", "A"], "right": ["S", "B"]})
    assert [row.verdict for row in found] == ["explained by their boundaries"]
    assert found[0].fall_a == pytest.approx(0.0)


def test_rules_hold_order_too(garage: Any) -> None:
    rules = {"one": "A then B", "two": "A then B"}
    data = garage.fleet(rules, count=500)
    rng = np.random.default_rng(0)
    noisy = from_records(
        {
            "sequence_id": f"s{k}",
            "events": data.events_of(k),
            "times": data.times[data.events.offsets[k] : data.events.offsets[k + 1]].tolist(),
            "labels": [label for label in data.labels_of(k) if rng.random() < 0.9],
        }
        for k in range(len(data))
    )
    boundaries = {"one": ["A", "B"], "two": ["A", "B"]}
    (by_presence,) = label_interplay(None, noisy, boundaries)
    (by_rule,) = label_interplay(None, noisy, boundaries, rules=rules)
    assert by_presence.verdict == "still dependent"
    assert by_rule.verdict == "explained by shared causes"


def test_graph_has_an_edge_for_each_dependence(rows: dict[frozenset[str], Interplay]) -> None:
    graph = label_graph(rows.values())
    assert graph.has_edge("left", "right")
    assert graph.edges["left", "right"]["shared_causes"] == ("S",)
    assert not graph.has_edge("lonely", "left")


def test_config_is_checked() -> None:
    with pytest.raises(UsageError, match="alpha: expected between 0 and 1, got 2"):
        InterplayConfig(alpha=2)


def test_the_pairs_looked_at_are_those_of_a_plain_loop() -> None:
    """Together or expected together often enough, or with a shared cause; over fleets with rare and frequent labels."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        rates = rng.choice([0.02, 0.1, 0.3, 0.6], 14)
        labels = [[f"y{k}" for k in range(14) if rng.random() < rates[k]] for _ in range(80)]
        data = from_records(
            {"sequence_id": f"s{n}", "events": ["A"], "times": [0.0], "labels": part} for n, part in enumerate(labels)
        )
        boundaries = {f"y{k}": [f"e{e}" for e in rng.integers(0, 12, 2)] for k in range(14)}
        study = _Study(None, Mined(data), boundaries, {}, InterplayConfig(least_together=4))
        wanted = []
        for a, b in combinations(study.labels, 2):
            both = sum(a in part and b in part for part in labels)
            expected = sum(a in part for part in labels) * sum(b in part for part in labels) / 80
            if max(both, expected) >= 4 or set(boundaries[a]) & set(boundaries[b]):
                wanted.append((a, b))
        assert study.pairs() == wanted
        assert 10 < len(wanted) < 91
