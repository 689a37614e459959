"""Edits do to a sequence what the same edits do to plain lists, and never break the order of time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oscar_causal.errors import DataError
from oscar_causal.serve import limits
from oscar_causal.serve.edits import apply_edits
from oscar_causal.serve.payloads import Insert, Remove, Replace, Sequence, Swap, WhatIfRequest

FIVE = Sequence(
    events=["A", "B", "C", "B", "D"],
    times=[0.0, 10.0, 10.0, 30.0, 40.0],
    channels={"mileage": [1.0, None, 3.0, 4.0, 5.0]},
    labels=["fault"],
)


def edits(*rows: dict[str, Any]) -> Any:
    return WhatIfRequest.model_validate({"sequence": {"events": ["A"]}, "edits": list(rows)}).edits


def test_remove_takes_whole_rows_out() -> None:
    after, words = apply_edits(FIVE, edits({"op": "remove", "positions": [1, 3]}))
    assert after.events == ["A", "C", "D"]
    assert after.times == [0.0, 10.0, 40.0]
    assert after.channels == {"mileage": [1.0, 3.0, 5.0]}
    assert after.labels == FIVE.labels
    assert words == ["without B"]


@pytest.mark.parametrize(
    ("position", "time", "mileage"), [(0, 0.0, 1.0), (1, 5.0, 1.0), (2, 10.0, None), (4, 35.0, 4.0), (5, 50.0, 5.0)]
)
def test_insert_finds_a_time_and_takes_the_channels_before_it(
    position: int, time: float, mileage: float | None
) -> None:
    after, words = apply_edits(FIVE, edits({"op": "insert", "position": position, "event": "X"}))
    assert after.events == [*FIVE.events[:position], "X", *FIVE.events[position:]]
    assert (after.times or [])[position] == time
    assert after.channels["mileage"][position] == mileage
    assert words == ["with X added"]


def test_replace_and_swap_leave_times_and_channels() -> None:
    rows = edits({"op": "replace", "position": 0, "event": "X"}, {"op": "swap", "first": 0, "second": 4})
    after, words = apply_edits(FIVE, rows)
    assert after.events == ["D", "B", "C", "B", "X"]
    assert (after.times, after.channels) == (FIVE.times, FIVE.channels)
    assert words == ["with X instead of A", "with X and D exchanged"]


def test_positions_are_those_after_the_edits_before() -> None:
    rows = edits({"op": "remove", "positions": [0]}, {"op": "remove", "positions": [0]})
    assert apply_edits(FIVE, rows)[0].events == ["C", "B", "D"]


@pytest.mark.parametrize(
    "row",
    [
        {"op": "remove", "positions": [5]},
        {"op": "remove", "positions": [0, 1, 2, 3, 4]},
        {"op": "insert", "position": 6, "event": "X"},
        {"op": "insert", "position": 1, "event": "X", "time": 11.0},
        {"op": "replace", "position": 5, "event": "X"},
        {"op": "swap", "first": 0, "second": 5},
        {"op": "swap", "first": 9, "second": 0},
    ],
)
def test_what_cannot_be_names_the_edit(row: dict[str, Any]) -> None:
    with pytest.raises(DataError, match=r"edits\[1\]: expected"):
        apply_edits(FIVE, edits({"op": "replace", "position": 0, "event": "A"}, row))


def test_growing_beyond_the_limit_is_refused() -> None:
    full = Sequence(events=["A"] * limits.EVENTS)
    with pytest.raises(DataError, match="at most"):
        apply_edits(full, edits({"op": "insert", "position": 0, "event": "X"}))


@st.composite
def edit_lists(draw: st.DrawFn) -> list[Any]:
    """Edits that are possible one after the other on a sequence of five."""
    length, found = 5, []
    for kind in draw(st.lists(st.sampled_from(["remove", "insert", "replace", "swap"]), max_size=8)):
        at = draw(st.integers(0, length - 1))
        if kind == "remove" and length > 1:
            found.append(Remove(op="remove", positions=[at]))
            length -= 1
        elif kind == "insert":
            found.append(Insert(op="insert", position=draw(st.integers(0, length)), event="new"))
            length += 1
        elif kind == "replace":
            found.append(Replace(op="replace", position=at, event="other"))
        else:
            found.append(Swap(op="swap", first=at, second=draw(st.integers(0, length - 1))))
    return found


@settings(max_examples=60, deadline=None)
@given(edit_lists())
def test_any_edits_keep_a_sound_sequence(chosen: list[Any]) -> None:
    plain = list(FIVE.events)
    for edit in chosen:  # the same on a bare list
        if isinstance(edit, Remove):
            del plain[edit.positions[0]]
        elif isinstance(edit, Insert):
            plain.insert(edit.position, edit.event)
        elif isinstance(edit, Replace):
            plain[edit.position] = edit.event
        else:
            plain[edit.first], plain[edit.second] = plain[edit.second], plain[edit.first]
    after, words = apply_edits(FIVE, chosen)
    assert after.events == plain
    assert after.times == sorted(after.times or [])
    assert len(after.times or []) == len(after.channels["mileage"]) == len(plain)
    assert len(words) == len(chosen)
