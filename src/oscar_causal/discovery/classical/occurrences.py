"""Where and when events occur, by event: what counts (`A >= 2`) and orders (`A then B within 600s`) are read from.

All windows of a pair of events come from one number, the shortest time from the first to the second, and the pairs of
one first event come from one walk over the sequences that hold it. Of the millions of occurrences only those of the
events asked for are ever read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from oscar_causal.data.rules import AtLeast, Event, Then
from oscar_causal.data.rules.tree import Atom
from oscar_causal.data.sequences import ragged_offsets
from oscar_causal.errors import UsageError

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]
_FILES = ("event_offsets", "event_rows", "event_places", "times")


class Occurrences:
    """All occurrences of each event, in time order: the row (sequence), and the place in the long list of events."""

    def __init__(self, offsets: Any, rows: Any, places: Any, times: Any, names: Sequence[str]) -> None:
        self.offsets, self.rows, self.places, self.times = offsets, rows, places, times
        self.ids = {name: number for number, name in enumerate(names)}

    def rows_of(self, name: str) -> Int32:
        """The row of each occurrence, rising."""
        return np.asarray(self.rows[self._span(name)])

    def places_of(self, name: str) -> Int64:
        """The place of each occurrence, rising."""
        return np.asarray(self.places[self._span(name)], np.int64)

    def times_at(self, places: Int64) -> Float64:
        """Seconds from the start of the sequence."""
        return np.asarray(self.times[places])

    def save(self, folder: Path) -> None:
        """Write the arrays as plain .npy files, to be opened by other processes without a copy."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, array in zip(_FILES, (self.offsets, self.rows, self.places, self.times), strict=True):
            np.save(folder / f"{name}.npy", array, allow_pickle=False)

    @classmethod
    def open(cls, folder: Path, names: Sequence[str]) -> Occurrences:
        """Map the arrays that `save` wrote."""
        load: list[Any] = [np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in _FILES]
        return cls(load[0], load[1], load[2], load[3], names)

    def _span(self, name: str) -> slice:
        event = self.ids[name]
        return slice(int(self.offsets[event]), int(self.offsets[event + 1]))


class FeatureReader:
    """In which rows do counts and orders of a few events hold? Orders are best asked for one first event at a time."""

    def __init__(self, occurrences: Occurrences, names: Sequence[str]) -> None:
        self._events = {name: number for number, name in enumerate(names)}
        self._occurrences = occurrences
        self._last: tuple[str | None, Mapping[str, tuple[Int32, Float64]]] = (None, {})

    def rows_of(self, atom: Atom) -> Int32:
        """Rows in which the count or the order holds, rising."""
        match atom:
            case AtLeast(Event(name), count):
                return _counted(self._occurrences.rows_of(name), count)
            case Then(Event(first), Event(second), within):
                rows, gaps = self.gaps_of(first, second)
                return rows if within is None else rows[gaps <= within]
        raise UsageError(f"feature: expected a count or an order of two events, got {atom}")

    def gaps_of(self, first: str, second: str) -> tuple[Int32, Float64]:
        """Rows in which the second comes after the first, rising, and the shortest time between the two in each."""
        return self._after(first)[second]

    def _after(self, first: str) -> Mapping[str, tuple[Int32, Float64]]:
        if self._last[0] != first:
            self._last = (first, self._merged.shortest_after(self._events[first]))
        return self._last[1]

    @cached_property
    def _merged(self) -> _Merged:
        return _Merged(self._occurrences, list(self._events))


class _Merged:
    """The occurrences of a few events (numbered) in time order, row after row."""

    def __init__(self, occurrences: Occurrences, names: Sequence[str]) -> None:
        self.names = names
        places = [occurrences.places_of(name) for name in names]
        event = np.repeat(np.arange(len(names), dtype=np.int16), [len(part) for part in places])
        rows = np.concatenate([occurrences.rows_of(name) for name in names])
        held = _changes(rows) | _changes(event)  # each (event, row) once, event by event
        self.held_rows = rows[held]
        self.held_bounds = np.searchsorted(event[held], np.arange(len(names) + 1))
        order = np.argsort(np.concatenate(places), kind="stable")  # merges lists that rise already
        self.event = event[order]
        self.held_at = (np.cumsum(held, dtype=np.int32) - 1)[order]
        self.time = occurrences.times_at(np.concatenate(places)[order])
        new_row = _changes(rows[order])
        self.row_ends = _ends(new_row)
        self.moment_ends = _ends(new_row | _changes(self.time))

    def shortest_after(self, first: int) -> dict[str, tuple[Int32, Float64]]:
        """For each event the rows in which it comes strictly after `first`, and the shortest time between the two.

        What follows an occurrence of `first`, up to its next one or the end of the row, is nearest to it.
        """
        at = np.flatnonzero(self.event == first)
        begins, ends = self.moment_ends[at], self.row_ends[at]
        ends[:-1] = np.minimum(ends[:-1], begins[1:])
        lengths = ends - begins
        later = np.repeat(begins - ragged_offsets(lengths)[:-1], lengths) + np.arange(int(lengths.sum()))
        shortest = np.full(len(self.held_rows), np.inf)
        np.minimum.at(shortest, self.held_at[later], self.time[later] - np.repeat(self.time[at], lengths))
        found = {}
        for number, name in enumerate(self.names):
            held = slice(self.held_bounds[number], self.held_bounds[number + 1])
            some = np.isfinite(shortest[held])
            found[name] = (self.held_rows[held][some], shortest[held][some])
        return found


def _ends(new: Bool) -> Int64:
    """For each place where its group ends, from where groups begin."""
    bounds = np.append(np.flatnonzero(new), len(new))
    return np.repeat(bounds[1:], np.diff(bounds))


def _changes(values: npt.NDArray[Any]) -> Bool:
    """Where a new value begins, the first place included."""
    new = np.ones(len(values), bool)
    new[1:] = values[1:] != values[:-1]
    return new


def _counted(rows: Int32, count: int) -> Int32:
    """The rows that come at least `count` times in a rising list."""
    shifted = rows[count - 1 :]
    enough: Int32 = shifted[shifted == rows[: len(shifted)]]
    return enough[_changes(enough)] if len(enough) else enough
