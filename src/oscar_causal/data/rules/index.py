"""An inverted index over a batch of sequences: where each event type occurs, and which occurrences chain up.

Built once per batch, it serves many rules. Sequences lie end to end; a *row* is a place in that long list, so rows of
one event type rise with the sequence and, inside it, with the position.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
import numpy.typing as npt

from oscar_causal.data.rules.tree import AtLeast, Atom, Event, Then, chain_steps
from oscar_causal.errors import DataError

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class EventIndex:
    """Where each event type of a batch occurs.

    `offsets` (n + 1,) says that sequence i owns the rows offsets[i]:offsets[i+1] of `event_ids` and `times` (seconds,
    never falling inside a sequence). `ids` maps names to event ids; a name it does not know occurs nowhere. Without
    `times` the order of positions is the order of events, and a rule with a time window is a DataError.

    >>> index = EventIndex(np.array([0, 3]), np.array([7, 8, 7]), None, {"A": 7, "B": 8})
    >>> index.rows_of("A").tolist()
    [0, 2]
    """

    def __init__(
        self,
        offsets: npt.ArrayLike,
        event_ids: npt.ArrayLike,
        times: npt.ArrayLike | None,
        ids: Mapping[str, int],
    ) -> None:
        self.offsets: Rows = np.asarray(offsets, dtype=np.int64)
        self.event_ids = np.asarray(event_ids)
        self.times = None if times is None else np.asarray(times, dtype=np.float64)
        self.ids = ids
        self._check()
        self.sequences = len(self.offsets) - 1
        self.sequence_of: Rows = np.repeat(np.arange(self.sequences, dtype=np.int64), np.diff(self.offsets))
        # rows grouped by event id, rising inside each group
        self._order: Rows = np.argsort(_sort_key(self.event_ids), kind="stable")
        self._places, self._bounds = _spans(self.event_ids[self._order])

    def rows_of(self, name: str) -> Rows:
        """All rows of an event, rising; empty when the name is unknown or absent."""
        place = self._places.get(self.ids.get(name))
        return self._order[:0] if place is None else self._order[self._bounds[place] : self._bounds[place + 1]]

    def rows_of_chain(self, chain: Event | Then) -> Rows:
        """The rows at which an occurrence of the chain is complete."""
        return self._ends_by_step(*chain_steps(chain))[-1]

    def rows_by_step(self, chain: Event | Then) -> list[Rows]:
        """For each step of the chain, the rows that take part in some complete occurrence of the whole chain."""
        names, windows = chain_steps(chain)
        rows = self._ends_by_step(names, windows)
        for step in range(len(windows) - 1, -1, -1):
            rows[step] = rows[step][self._has_later(rows[step], rows[step + 1], windows[step])]
        return rows

    def _ends_by_step(self, names: tuple[str, ...], windows: tuple[float | None, ...]) -> list[Rows]:
        """For each step, the rows at which the chain up to there is complete."""
        rows = [self.rows_of(names[0])]
        for name, within in zip(names[1:], windows, strict=True):
            later = self.rows_of(name)
            rows.append(later[self._has_earlier(rows[-1], later, within)])
        return rows

    def holds(self, atom: Atom) -> Mask:
        """Whether an atom holds, per sequence."""
        if isinstance(atom, AtLeast):
            rows = self._counted(self.sequence_of[self.rows_of(atom.event.name)], atom.count)
        else:
            rows = self.sequence_of[self.rows_of_chain(atom)]
        mask = np.zeros(self.sequences, dtype=np.bool_)
        mask[rows] = True
        return mask

    @staticmethod
    def _counted(sequence_of: Rows, count: int) -> Rows:
        """Of the rising sequence numbers of all occurrences, those that come `count` times."""
        shifted = sequence_of[count - 1 :]
        same: Mask = shifted == sequence_of[: len(shifted)]
        return shifted[same]

    @cached_property
    def _moments(self) -> Rows:
        """A number per row that rises with the sequence and with time; events at the same time share it."""
        total = len(self.event_ids)
        if self.times is None:
            return np.arange(total, dtype=np.int64)
        steps = np.diff(self.times)
        new_sequence = np.diff(self.sequence_of) > 0
        bad = ~(new_sequence | (steps >= 0))
        if bad.any():
            row = int(np.argmax(bad)) + 1
            sequence = int(self.sequence_of[row])
            raise DataError(
                f"sequence {sequence} of the batch, position {row - int(self.offsets[sequence])}: "
                f"expected times that never fall, got {self.times[row]} after {self.times[row - 1]}"
            )
        moments = np.zeros(total, dtype=np.int64)
        np.cumsum(new_sequence | (steps > 0), out=moments[1:])
        return moments

    def _has_earlier(self, earlier: Rows, later: Rows, within: float | None) -> Mask:
        """For each later row: does one of the earlier rows precede it in its sequence, inside the window?

        The nearest one decides: a window that does not reach it reaches none.
        """
        nearest = np.searchsorted(self._moments[earlier], self._moments[later], side="left") - 1
        found = np.flatnonzero(nearest >= 0)
        good = self._linked(earlier[nearest[found]], later[found], within)
        return _mask(len(later), found[good])

    def _has_later(self, earlier: Rows, later: Rows, within: float | None) -> Mask:
        """For each earlier row: does one of the later rows follow it in its sequence, inside the window?"""
        nearest = np.searchsorted(self._moments[later], self._moments[earlier], side="right")
        found = np.flatnonzero(nearest < len(later))
        good = self._linked(earlier[found], later[nearest[found]], within)
        return _mask(len(earlier), found[good])

    def _linked(self, earlier: Rows, later: Rows, within: float | None) -> Mask:
        same: Mask = self.sequence_of[earlier] == self.sequence_of[later]
        if within is None:
            return same
        if self.times is None:
            raise DataError("rule: expected times for 'within', got sequences without times")
        return same & (self.times[later] - self.times[earlier] <= within)

    def _check(self) -> None:
        if self.event_ids.ndim != 1 or (self.event_ids.size and not np.issubdtype(self.event_ids.dtype, np.integer)):
            raise DataError(f"event index: expected a line of whole event ids, got {self.event_ids.dtype}")
        total, offsets = len(self.event_ids), self.offsets
        if offsets.ndim != 1 or not offsets.size or offsets[0] != 0 or offsets[-1] != total:
            ends = f"{offsets.flat[0]} to {offsets.flat[-1]}" if offsets.size else "none"
            raise DataError(f"event index: expected offsets from 0 to {total} events, got {ends}")
        if (np.diff(offsets) < 0).any():
            raise DataError(f"event index: expected offsets that never fall, got a fall at {np.diff(offsets).argmin()}")
        if self.times is not None and self.times.shape != (total,):
            raise DataError(f"event index: expected {total} times, got shape {self.times.shape}")


def _sort_key(event_ids: npt.NDArray[np.integer]) -> npt.NDArray[np.integer]:
    """Ids in 16 bits where they fit: numpy then sorts by radix, ten times as fast."""
    if len(event_ids) and event_ids.min() >= 0 and event_ids.max() < 2**16:
        return event_ids.astype(np.uint16)
    return event_ids


def _spans(sorted_ids: npt.NDArray[np.integer]) -> tuple[dict[int | None, int], list[int]]:
    """The distinct ids, numbered, and where each begins (and the last ends)."""
    starts = np.flatnonzero(np.diff(sorted_ids, prepend=sorted_ids[:1] - 1))
    ids = sorted_ids[starts].tolist()
    return dict(zip(ids, range(len(ids)), strict=True)), [*starts.tolist(), len(sorted_ids)]


def _mask(length: int, true_at: Rows) -> Mask:
    mask = np.zeros(length, dtype=np.bool_)
    mask[true_at] = True
    return mask
