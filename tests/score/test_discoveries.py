"""Signs and false discoveries, worked by hand."""

from __future__ import annotations

import pytest

from oscar_causal.score.discoveries import Accepted, q_calibration, sign_agreement
from oscar_causal.score.matching import Pair, Roles

P1, P2, P3, P4 = [(f"s{k}", "x") for k in (1, 2, 3, 4)]
ROLES: Roles = {P1: {"A": ("cause", True), "N": ("blocker", False)}, P2: {"B": ("cause", False)}}
FOUND = [
    Accepted(P1, "A", "cause", 0.001),  # right
    Accepted(P1, "N", "cause", 0.04),  # a blocker called a cause: wrong
    Accepted(P1, "N", "inhibitor", 0.02),  # right
    Accepted(P2, "C", "cause", 0.004),  # no part in it: wrong
    Accepted(P3, "A", "cause", 0.03),  # a false label: wrong
]
EXPLAINED: list[Pair] = [P1, P2, P3, P4]  # nothing accepted for the last


def test_signs() -> None:
    signs = sign_agreement(FOUND, ROLES)
    assert signs["events"] == 3
    assert signs["agreement"] == pytest.approx(2 / 3)
    assert signs["table"] == {
        "cause found, cause true": 1,
        "cause found, blocker true": 1,
        "inhibitor found, cause true": 0,
        "inhibitor found, blocker true": 1,
    }
    assert sign_agreement([], ROLES)["agreement"] is None


def test_false_discoveries_over_events_and_over_pairs() -> None:
    world = q_calibration(FOUND, EXPLAINED, ROLES)
    assert (world["accepted"], world["false"], world["on_false_labels"]) == (5, 3, 1)
    assert world["proportion"] == pytest.approx(3 / 5)
    assert world["rate"] == pytest.approx((1 / 3 + 1 + 1 + 0) / 4)


def test_false_discoveries_by_q() -> None:
    rows = {row["q_up_to"]: row for row in q_calibration(FOUND, EXPLAINED, ROLES)["by_q"]}
    assert list(rows) == [0.001, 0.01, 0.05]
    assert [rows[limit]["accepted"] for limit in rows] == [1, 2, 5]
    assert [rows[limit]["false"] for limit in rows] == [0, 1, 3]
    assert rows[0.01]["rate"] == pytest.approx((0 + 1 + 0 + 0) / 4)


def test_what_no_test_has_shown_is_not_held_against_q_values() -> None:
    scored = [Accepted(P4, "D", "cause", q, by="score") for q in (0.004, 0.4)]
    plain, world = (q_calibration(part, EXPLAINED, ROLES) for part in (FOUND, [*FOUND, *scored]))
    assert world["by_q"] == plain["by_q"]
    assert (world["accepted"], world["false"]) == (7, 5)


def test_methods_without_q_values_have_no_rows_by_q() -> None:
    world = q_calibration([Accepted(P1, "A", "cause")], EXPLAINED, ROLES)
    assert (world["proportion"], world["by_q"]) == (0.0, [])
    nothing = q_calibration([], EXPLAINED, ROLES)
    assert (nothing["proportion"], nothing["rate"]) == (None, 0.0)
