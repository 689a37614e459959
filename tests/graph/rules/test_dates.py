"""Alternatives on either side of a date, against fleets whose rule changed, or did not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oscar_causal.data.rules import parse
from oscar_causal.data.sequences import from_records
from oscar_causal.graph.rules.dates import CHANCE, one_after_the_other
from oscar_causal.graph.rules.mining import Mined, pivotal

RULE = parse("(A & B) | (A & C)")


def told(mined: Mined) -> list[str]:
    has = mined.with_label("y")
    brought = {atom: held & has for atom, (held, _) in pivotal(RULE, mined.index).items()}
    return one_after_the_other(brought, mined.dataset)


def fleet(days: dict[str, list[int]], *, strays: int = 0, cars: int = 100) -> Mined:
    """A & B brings the label on these days, A & C on those; `strays` sequences with all three; one without a date."""
    rows: list[dict[str, Any]] = []
    for name, own in days.items():
        for day in own:
            rows.append({"events": ["A", name], "labels": ["y"], "start": f"2025-01-{day:02d}T12:00:00Z"})
    rows += [{"events": ["A", "B", "C"], "labels": ["y"], "start": "2025-01-15T00:00:00Z"}] * strays
    rows += [{"events": ["A", "B"], "labels": ["y"]}, {"events": ["x"], "labels": [], "start": "2025-01-01T00:00:00Z"}]
    return Mined(
        from_records(
            {"sequence_id": str(k), "subject_id": str(k % cars), "times": [*range(len(row["events"]))], **row}
            for k, row in enumerate(rows)
        )
    )


@pytest.mark.parametrize(
    ("days", "strays", "found"),
    [
        ({"B": [1, 2, 3, 4, 5], "C": [6, 7, 8, 9]}, 0, True),  # 1 : 126
        ({"B": [1, 2, 3, 4, 5], "C": [6, 7, 8, 9]}, 3, True),  # where both are there neither decides
        ({"B": [1, 2, 3], "C": [6, 7, 8, 9]}, 0, False),  # 1 : 35 happens
        ({"B": [1, 2, 3, 4, 9], "C": [6, 7, 8, 10]}, 0, False),
        ({"B": [1, 2, 3, 4, 5, 6, 7, 8]}, 0, False),
    ],
)
def test_parts_on_either_side_of_a_date(days: dict[str, list[int]], strays: int, found: bool) -> None:
    assert told(fleet(days, strays=strays)) == (
        ["B brought the label until 2025-01-05 only, C since 2025-01-06 only: the rule may have changed"]
        if found
        else []
    )


def test_without_dates_nothing_is_said() -> None:
    rows = [{"sequence_id": str(k), "events": ["A", "BC"[k % 2]], "times": [0, 1], "labels": ["y"]} for k in range(20)]
    assert told(Mined(from_records(rows))) == []


def test_drives_of_a_few_cars_are_few_witnesses() -> None:
    days = {"B": [1, 2, 3, 4, 5, 6], "C": [7, 8, 9, 10, 11, 12]}
    assert told(fleet(days))
    assert told(fleet(days, cars=3)) == []  # three cars before, three after: 1 : 20 happens


def test_a_rule_that_does_not_change_is_seldom_doubted() -> None:
    rng, doubted = np.random.default_rng(4), 0
    for _ in range(300):
        luck = rng.permutation(9) + 1
        doubted += bool(told(fleet({"B": luck[:5].tolist(), "C": luck[5:].tolist()})))
    assert doubted <= 300 * 2 * CHANCE * 2  # two orders, and some luck
