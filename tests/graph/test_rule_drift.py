"""Rules by window: a rule that changes at a date is found with its date, a steady one is left alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from oscar_causal.data.sequences import Dataset, from_records
from oscar_causal.errors import UsageError
from oscar_causal.graph.rule_drift import RULE_DRIFT_SCHEMA, Windows, changed_rules, rule_drift
from oscar_causal.graph.rule_recovery import RuleProposal

BEGIN = datetime(2023, 1, 1, tzinfo=UTC)
WINDOW = 100.0


def fleet(count: int, seed: int = 0, noise: float = 0.05) -> Dataset:
    """`steady` follows A always; `moved` follows A for 200 days and A & B from then on; some labels are lost."""
    rng = np.random.default_rng(seed)
    records: list[dict[str, Any]] = []
    for number in range(count):
        day = float(rng.uniform(0, 400))
        events = [name for name in ("A", "B", "C") if rng.random() < 0.5] or ["C"]
        true = {"steady": "A" in events, "moved": "A" in events and (day < 200 or "B" in events)}
        records.append(
            {
                "sequence_id": f"s{number}",
                "subject_id": f"car {number // 2}",
                "events": events,
                "times": list(range(len(events))),
                "labels": [label for label, came in true.items() if came and rng.random() > noise],
                "start": BEGIN + timedelta(days=day),
            }
        )
    return from_records(records)


def expected_rule(part: Dataset, label: str) -> RuleProposal:
    """What the window's own observations say: P(label | A without B) above one half or not."""
    rows = [k for k in range(len(part)) if {"A", "B"} & set(part.events_of(k)) == {"A"}]
    with_label = np.mean([label in part.labels_of(k) for k in rows])
    return RuleProposal(label, "proposed", "A" if with_label > 0.5 else "A & B", 0.9, 50, "truth table")


def test_a_changed_rule_is_flagged_in_its_windows_and_a_steady_one_is_not() -> None:
    table = rule_drift({"steady": "A", "moved": "A"}, fleet(2400), WINDOW, recover=expected_rule)
    assert table.schema.equals(RULE_DRIFT_SCHEMA)
    assert changed_rules(table) == ["moved"]
    rows = [
        row for row in table.to_pylist() if row["label"] == "moved" and row["part"] is None and row["positives"] > 40
    ]
    for row in rows:
        late = row["from"] >= BEGIN + timedelta(days=200)
        if row["from"] < BEGIN + timedelta(days=200) < row["to"]:
            continue  # the window in which it changed
        assert row["changed"]
        assert (row["rule_here"], row["relation"]) == (("A & B", "stricter") if late else ("A", "same"))
        assert row["precision"] == pytest.approx(0.475 if late else 0.95, abs=0.08)


def test_windows_without_a_change_are_flagged_at_most_at_the_error_rate() -> None:
    flagged = sum(
        bool(changed_rules(rule_drift({"steady": "A"}, fleet(400, seed), WINDOW, alpha=0.1))) for seed in range(20)
    )
    assert flagged <= 4  # the null allows differences up to delta, so fewer than 2 are expected


def test_shares_are_clustered_by_subject() -> None:
    data = fleet(800)
    windows = Windows.of(data, WINDOW)
    assert sorted(windows.numbers()) == windows.numbers()
    every = np.ones(len(windows.data), bool)
    came = np.array(["steady" in windows.data.labels_of(k) for k in range(len(windows.data))])
    share = windows.share(came, every)
    assert share.mean[0] == pytest.approx(came.mean())
    assert share.se[0] >= np.sqrt(came.mean() * (1 - came.mean()) / len(came)) * 0.99


def test_one_window_or_no_start_says_nothing() -> None:
    for days in (10_000.0, None):
        rows = rule_drift({"steady": "A"}, fleet(50), days).to_pylist()
        assert [row["changed"] for row in rows if row["part"] is None] == []
        assert {row["part"]: row["changed"] for row in rows} == {"A": False}
    bare = from_records([{"sequence_id": "1", "events": ["A"], "times": [0], "labels": ["steady"]}])
    assert len(rule_drift({"steady": "A"}, bare, WINDOW)) == 0
    with pytest.raises(UsageError, match="expected 0.01 to 36525 days"):
        rule_drift({"steady": "A"}, bare, 0.0)
