"""A rule that changes an alternative at a date is found by its parts, a steady one is left alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

from oscar_causal.data.sequences import Dataset, from_records
from oscar_causal.graph.assembling import with_rule_drift
from oscar_causal.graph.part_drift import doubts
from oscar_causal.graph.population_folder import Population
from oscar_causal.graph.rule_drift import RULE_DRIFT_SCHEMA, changed_rules, rule_drift
from oscar_causal.graph.rules.proposal import RuleProposal

BEGIN = datetime(2023, 1, 1, tzinfo=UTC)
DAY = 200
"""On which the rule of `moved` changes."""
RULES = {"moved": "A | B | C", "steady": "A | B | C"}


def fleet(count: int, seed: int = 0, *, lost: float = 0.03, changes: bool = True, dates: bool = True) -> Dataset:
    """`moved` follows A | B and from a day on A | C; `steady` follows A | B | C always; some labels are lost."""
    rng = np.random.default_rng(seed)
    records: list[dict[str, Any]] = []
    for number in range(count):
        day = float(rng.uniform(0, 400))
        events = [name for name in ("A", "B", "C") if rng.random() < 0.25]
        way = {"A", "C"} if day >= DAY else {"A", "B"}
        true = {"moved": bool((way if changes else {"A", "B", "C"}) & set(events)), "steady": bool(events)}
        records.append(
            {
                "sequence_id": f"s{number}",
                "subject_id": f"car {number // 2}",
                "events": [*events, "Z"],
                "times": [0.0] * (len(events) + 1),
                "labels": [label for label, came in true.items() if came and rng.random() >= lost],
                "start": BEGIN + timedelta(days=day) if dates else None,
            }
        )
    return from_records(records)


def by_part(table: pa.Table, label: str) -> dict[str, dict[str, Any]]:
    return {row["part"]: row for row in table.to_pylist() if row["label"] == label and row["part"] is not None}


@pytest.mark.parametrize("window", [100.0, None])
def test_the_part_that_changed_is_named_with_its_date(window: float | None) -> None:
    data = fleet(1200)
    table = rule_drift(RULES, data, window)
    assert table.schema.equals(RULE_DRIFT_SCHEMA)
    assert changed_rules(table) == ["moved"]
    whole = [row for row in table.to_pylist() if row["part"] is None]
    assert bool(whole) == (window is not None)
    assert not any(row["changed"] for row in whole)  # the rule as a whole fits every window alike
    parts = by_part(table, "moved")
    assert {name for name, row in parts.items() if row["changed"]} == {"B", "C"}
    change = BEGIN + timedelta(days=DAY)
    for name, works_after in (("B", False), ("C", True)):
        row = parts[name]
        assert row["until"] < change <= row["from"] or abs(row["from"] - change) < timedelta(days=12)
        assert (row["rule_elsewhere"], row["rule_here"], row["relation"]) == ("A | B", "A | C", "stricter")
        alone = [k for k in range(len(data)) if set(data.events_of(k)) == {name, "Z"}]
        late = [k for k in alone if data.start[k].as_py() >= row["from"]]
        assert (row["decided"], row["decided_elsewhere"]) == (len(late), len(alone) - len(late))
        assert row["came"] == sum("moved" in data.labels_of(k) for k in late)
        assert (row["came"] > 0.9 * row["decided"]) == works_after
    assert not any(row["changed"] for row in by_part(table, "steady").values())


def test_a_lost_condition_and_a_lost_blocker_are_found() -> None:
    """`A & B` becomes A, `A & !B` becomes A: what was missing is no longer missed."""
    data = fleet(800, lost=0.0)
    days = [(data.start[k].as_py() - BEGIN) / timedelta(days=1) for k in range(len(data))]
    truth = {"condition": lambda e: {"A", "B"} <= e, "blocker": lambda e: "A" in e and "B" not in e}
    records = []
    for k, day in enumerate(days):
        events = set(data.events_of(k))
        labels = [name for name, holds in truth.items() if (holds(events) if day < DAY else "A" in events)]
        records.append(
            {
                "sequence_id": f"{k}",
                "events": sorted(events),
                "times": [0.0] * len(events),
                "labels": labels,
                "start": data.start[k].as_py(),
            }
        )
    table = rule_drift({"condition": "A & B", "blocker": "A & !B"}, from_records(records), None)
    for label, part in (("condition", "B"), ("blocker", "!B")):
        changed = {name: row for name, row in by_part(table, label).items() if row["changed"]}
        assert list(changed) == [part]
        assert (changed[part]["says"], changed[part]["rule_here"], changed[part]["relation"]) == (False, "A", "looser")
        assert doubts(table)[label][0].startswith(f"where {part} alone is missing, the label came in 0 of ")


def test_without_a_change_parts_are_flagged_at_most_at_the_error_rate() -> None:
    """A fifth of the labels is lost, so that every part has something to be mistaken about."""
    fleets, alpha = 150, 0.1
    flagged = sum(
        bool(changed_rules(rule_drift(RULES, fleet(160, seed, lost=0.2, changes=False), None, alpha=alpha)))
        for seed in range(1, fleets + 1)
    )
    assert flagged <= binom.ppf(0.999, fleets, alpha)


def test_small_differences_are_no_change_however_sure() -> None:
    data = fleet(1200)
    sure = rule_drift(RULES, data, None, delta=0.05)
    wide = rule_drift(RULES, data, None, delta=0.999)
    assert by_part(sure, "moved")["B"]["changed"]
    assert by_part(sure, "moved")["B"]["q_value"] == by_part(wide, "moved")["B"]["q_value"]
    assert changed_rules(wide) == []


def population(window: float | None) -> Population:
    proposals = [
        RuleProposal(label, "proposed", rule, 0.96, 500, "truth table").to_json() for label, rule in RULES.items()
    ]
    info = {"settings": {"window_days": window, "boundaries": {"alpha": 0.05, "delta": 0.05}}}
    empty: Any = None
    return Population(info, empty, empty, empty, rules=dict(RULES), proposals=proposals)


def never(part: Dataset, label: str) -> RuleProposal:
    raise AssertionError("no window changed")


@pytest.mark.parametrize("window", [100.0, None])
def test_a_rule_with_a_changed_part_is_no_longer_stated(window: float | None) -> None:
    found = with_rule_drift(population(window), fleet(1200), never)
    assert found.rules == {"steady": RULES["steady"]}
    moved, steady = found.proposals
    assert (steady["status"], steady["confidence"], steady["reasons"]) == ("proposed", 0.96, ())
    assert (moved["status"], moved["confidence"], moved["rule"]) == (
        "not identifiable from this data",
        0.0,
        RULES["moved"],
    )
    assert [reason.split(",")[0] for reason in moved["reasons"][:2]] == [
        "where B alone decides",
        "where C alone decides",
    ]
    assert "until 2023-07-" in moved["reasons"][0]
    assert moved["reasons"][2] == "before it reads A | B, after A | C"


def test_a_part_that_works_less_well_keeps_its_rule() -> None:
    """More labels are lost from a day on: the change is told, and the rule still explains what comes."""
    early, late = (fleet(2400, lost=lost, changes=False) for lost in (0.0, 0.1))
    days = [(early.start[k].as_py() - BEGIN) / timedelta(days=1) for k in range(len(early))]
    records = [
        {
            "sequence_id": f"{k}",
            "events": early.events_of(k),
            "times": [0.0] * len(early.events_of(k)),
            "labels": (early if days[k] < DAY else late).labels_of(k),
            "start": early.start[k].as_py(),
        }
        for k in range(len(early))
    ]
    table = rule_drift(RULES, from_records(records), None)
    assert any(row["changed"] for row in table.to_pylist())
    assert doubts(table) == {}


def test_without_dates_nothing_is_said() -> None:
    bare = fleet(50, dates=False)
    assert with_rule_drift(population(None), bare, never).rule_drift is None
    assert len(rule_drift(RULES, bare, None)) == 0
