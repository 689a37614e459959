"""Sentences tell the largest changes, with the right direction, and never claim certainty."""

from __future__ import annotations

from oscar_causal.serve.words import tell_changes

LABELS = ["steering degraded", "cold start", "quiet"]


def test_largest_change_first_and_small_ones_left_out() -> None:
    assert tell_changes(["without C0051"], LABELS, [0.93, 0.2, 0.5], [0.08, 0.31, 0.505]) == [
        "without C0051 the probability of 'steering degraded' falls from 0.93 to 0.08",
        "without C0051 the probability of 'cold start' rises from 0.20 to 0.31",
    ]


def test_nothing_changes() -> None:
    [told] = tell_changes(["with X added", "without Y"], LABELS, [0.5, 0.5, 0.5], [0.5, 0.5, 0.509])
    assert told == "with X added, without Y no label's probability changes by 0.01 or more"


def test_no_more_than_asked() -> None:
    assert len(tell_changes(["x"], LABELS, [0, 0, 0], [1, 1, 1], most=2)) == 2


def test_never_certain() -> None:
    [told] = tell_changes(["x"], ["y"], [0.9999], [0.0001])
    assert told.endswith("falls from more than 0.99 to less than 0.01")
