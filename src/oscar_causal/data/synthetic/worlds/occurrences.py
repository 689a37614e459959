"""The occurrences of a label's own event types in n sequences, padded to arrays that mechanisms are evaluated on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

Int = npt.NDArray[np.int64]
Float = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]

NONE = -1
"""Type number of padding, of removed occurrences and of events the label does not depend on."""


@dataclass(frozen=True)
class Occurrences:
    """Up to M occurrences of the types 0 ... R-1 of one label in each of n sequences, in time order."""

    types: Int
    """(n, M): number of the type among the label's own ones, or NONE."""
    times_s: Float
    """(n, M): seconds from the start."""
    values: Float
    """(n, M): channel value at the event; NaN = missing."""
    end_s: Float
    """(n,): when the record ends."""
    static: Float
    """(n, S): static covariates as numbers (categories by their index)."""

    def __len__(self) -> int:
        return len(self.end_s)

    def rows(self, chosen: Int | slice) -> Occurrences:
        """Some of the sequences, repeated if named twice."""
        times, values = self.times_s[chosen], self.values[chosen]
        return Occurrences(self.types[chosen], times, values, self.end_s[chosen], self.static[chosen])

    def keep(self, kept: Bool) -> Occurrences:
        """Only the occurrences where `kept` (n, M) holds; no other event moves."""
        return replace(self, types=np.where(kept, self.types, NONE))

    def of(self, kind: int) -> Bool:
        """(n, M): where the type occurs."""
        return np.asarray(self.types == kind)

    def present(self, kind: int) -> Bool:
        """(n,): which sequences hold the type."""
        return np.asarray(self.of(kind).any(axis=1))


@dataclass(frozen=True)
class Recorded:
    """Sequences as they are recorded, laid end to end; event ids are numbers of the world's event types."""

    offsets: Int
    events: Int
    times_s: Float
    values: Float
    static: Float
    """(n, S)."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def rows(self, chosen: Int) -> Recorded:
        """Some of the sequences, in the given order."""
        lengths = np.diff(self.offsets)[chosen]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        at = np.repeat(self.offsets[chosen] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return Recorded(offsets, self.events[at], self.times_s[at], self.values[at], self.static[chosen])

    def occurrences(self, types: Sequence[int], width: int) -> Occurrences:
        """The occurrences of the given event types; `width` is the number of event types of the world."""
        number = np.full(width, NONE)
        number[list(types)] = np.arange(len(types))
        kinds = number[self.events]
        own = np.flatnonzero(kinds != NONE)
        row = np.searchsorted(self.offsets, own, side="right") - 1
        counts = np.bincount(row, minlength=len(self))
        column = np.arange(len(own)) - np.repeat(np.cumsum(counts) - counts, counts)
        shape = (len(self), max(int(counts.max(initial=0)), 1))
        padded = Occurrences(
            np.full(shape, NONE),
            np.zeros(shape),
            np.full(shape, np.nan),
            self.times_s[self.offsets[1:] - 1],
            self.static,
        )
        padded.types[row, column] = kinds[own]
        padded.times_s[row, column] = self.times_s[own]
        padded.values[row, column] = self.values[own]
        return padded
