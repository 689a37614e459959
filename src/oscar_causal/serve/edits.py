"""What-if edits of a sequence, and the same edits in plain words. Pure functions; positions are 0-based."""

from __future__ import annotations

from collections.abc import Sequence as List
from dataclasses import dataclass, replace
from typing import Any

from oscar_causal.data.schema import MAX_SECONDS
from oscar_causal.errors import DataError
from oscar_causal.serve import limits
from oscar_causal.serve.payloads import Edit, Insert, Remove, Replace, Sequence, Swap


@dataclass(frozen=True)
class Row:
    """One event with its time and channel values, as it moves through the edits."""

    event: str
    time: float
    values: tuple[float | None, ...]


def event_times(sequence: Sequence) -> list[float]:
    """The times sent, or 0, 1, 2, ...

    >>> event_times(Sequence(events=["A", "B"]))
    [0.0, 1.0]
    """
    return [float(k) for k in range(len(sequence.events))] if sequence.times is None else list(sequence.times)


def apply_edits(sequence: Sequence, edits: List[Edit]) -> tuple[Sequence, list[str]]:
    """The sequence after the edits, in order, and each edit in words. The sequence itself must be sound.

    >>> apply_edits(Sequence(events=["A", "B"]), [Remove(op="remove", positions=[0])])[1]
    ['without A']
    """
    rows = _rows(sequence)
    words = []
    for number, edit in enumerate(edits):
        where = f"edits[{number}]"
        words.append(_describe(rows, edit, where))
        rows = _apply(rows, edit, where)
    if len(rows) > limits.EVENTS:
        raise DataError(f"edits: expected at most {limits.EVENTS:,} events afterwards, got {len(rows):,}")
    names = list(sequence.channels)
    changes: dict[str, Any] = {
        "events": [row.event for row in rows],
        "times": [row.time for row in rows],
        "channels": {name: [row.values[k] for row in rows] for k, name in enumerate(names)},
    }
    return Sequence.model_validate({**sequence.model_dump(), **changes}), words


def _rows(sequence: Sequence) -> list[Row]:
    values = zip(*sequence.channels.values(), strict=True) if sequence.channels else [()] * len(sequence.events)
    return [Row(*parts) for parts in zip(sequence.events, event_times(sequence), values, strict=True)]


def _at(rows: list[Row], position: int, where: str) -> Row:
    if position >= len(rows):
        raise DataError(f"{where}: expected a position below {len(rows)}, got {position}")
    return rows[position]


def _describe(rows: list[Row], edit: Edit, where: str) -> str:
    if isinstance(edit, Remove):
        return "without " + " and ".join(dict.fromkeys(_at(rows, p, where).event for p in edit.positions))
    if isinstance(edit, Insert):
        return f"with {edit.event} added"
    if isinstance(edit, Replace):
        return f"with {edit.event} instead of {_at(rows, edit.position, where).event}"
    return f"with {_at(rows, edit.first, where).event} and {_at(rows, edit.second, where).event} exchanged"


def _apply(rows: list[Row], edit: Edit, where: str) -> list[Row]:
    if isinstance(edit, Remove):
        gone = set(edit.positions)
        if len(gone) >= len(rows):
            raise DataError(f"{where}: expected at least one event to remain, got all {len(rows)} removed")
        return [row for k, row in enumerate(rows) if k not in gone]
    if isinstance(edit, Insert):
        return _insert(rows, edit, where)
    changed = list(rows)
    if isinstance(edit, Replace):
        changed[edit.position] = replace(rows[edit.position], event=edit.event)
        return changed
    return _swap(changed, edit)


def _swap(rows: list[Row], edit: Swap) -> list[Row]:
    first, second = rows[edit.first], rows[edit.second]
    rows[edit.first] = replace(first, event=second.event)
    rows[edit.second] = replace(second, event=first.event)
    return rows


def _insert(rows: list[Row], edit: Insert, where: str) -> list[Row]:
    at = edit.position
    if at > len(rows):
        raise DataError(f"{where}: expected a position up to {len(rows)}, got {at}")
    low = rows[at - 1].time if at else 0.0
    high = rows[at].time if at < len(rows) else float("inf")
    time = _default_time(rows, at) if edit.time is None else edit.time
    if not low <= time <= high:
        raise DataError(f"{where}: expected a time from {low:g} to {high:g} at position {at}, got {time:g}")
    return [*rows[:at], Row(edit.event, time, rows[max(at - 1, 0)].values), *rows[at:]]


def _default_time(rows: list[Row], at: int) -> float:
    if at == 0:
        return rows[0].time
    before = rows[at - 1].time
    if at < len(rows):
        return (before + rows[at].time) / 2
    return min(before + (before - rows[0].time) / max(len(rows) - 1, 1), MAX_SECONDS)
