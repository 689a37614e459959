"""Recovered rules are counted as a reader with both rules side by side would count them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from oscar_causal.data.rules import format_rule, parse, read_rules
from oscar_causal.data.sequences import read_dataset
from oscar_causal.errors import UsageError
from oscar_causal.score.bench import rule_recovery
from oscar_causal.score.bench.rule_recovery import (
    BENCH,
    Recovered,
    boundary_features,
    by_confidence,
    compare_rules,
    count_rules,
    published_rules,
    rules_of_counts,
)

PUBLISHED = {
    "same": "A & (B | C)",
    "window": "A then B within 3600s",
    "blocker": "A & !D",
    "wrong": "A",
    "guess": "A | B",
    "nothing": "A",
}
FOUND = {
    "same": ("(A & B) | (A & C)", True, 0.97),
    "window": ("A then B within 60s", True, 0.6),
    "blocker": ("A", True, 0.96),
    "wrong": ("B then A", True, 0.2),
    "guess": ("B | A", False, 0.1),
    "elsewhere": ("A", True, 0.99),
}


def test_rules_are_counted_as_a_reader_would() -> None:
    found = {label: Recovered(parse(rule), stated, said) for label, (rule, stated, said) in FOUND.items()}
    rows = compare_rules(found, {label: parse(rule) for label, rule in PUBLISHED.items()})
    assert {row.label: (row.right, row.exact) for row in rows} == {
        "same": (True, True),
        "window": (True, False),
        "blocker": (False, False),
        "wrong": (False, False),
        "guess": (True, True),
        "nothing": (False, False),
    }
    counts = count_rules(rows)
    assert tuple(counts.values()) == (6, 5, 3, 2, 4, 2, 1)  # in the order of COUNTS
    assert [(part["from"], part["stated"], part["right"], part["exact"]) for part in by_confidence(rows)] == [
        (0.0, 1, 0, 0),
        (0.5, 1, 1, 0),
        (0.8, 0, 0, 0),
        (0.9, 0, 0, 0),
        (0.95, 2, 1, 1),
    ]


def test_counts_alone_find_most_rules_of_a_small_fleet(ready: Any) -> None:
    """The demo's rules are easy to see in counts; what is called right agrees with the labels it was made from."""
    data, published = read_dataset(ready.fleet), published_rules(ready.fleet)
    rows = compare_rules(rules_of_counts(data, boundary_features(data, 1)), published)
    assert count_rules(rows)["right"] >= 2
    assert {row.label: row.published for row in rows} == {
        label: format_rule(item.rule) for label, item in read_rules(ready.fleet / "rules.json").items()
    }


def test_both_rows_are_measured_and_shown(
    settings: Callable[..., Any], ready: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = dict(list(published_rules(ready.fleet).items())[:2])
    monkeypatch.setattr(rule_recovery, "published_rules", lambda fleet: two)
    told = BENCH(settings())
    counted, searched = told["rows"]["counts alone"], told["rows"]["model search"]
    assert counted["labels"] == searched["labels"] == len(searched["rules"]) == 2
    assert "model" not in counted
    page = Path(told["files"]["md"]).read_text(encoding="utf-8")
    assert f"| counts alone | {counted['labels']} | {counted['recovered']} |" in page


def test_a_dataset_without_rules_that_always_hold_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rules.json").write_text('{"y": {"rule": "A", "from": "2020-01-01T00:00:00Z"}}')
    with pytest.raises(UsageError, match="rules without dates"):
        published_rules(tmp_path)
