"""Counts of event types over streamed sequences, and which types always come together."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from oscar_causal.data.validate import list_offsets

Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]


@dataclass
class EventTypes:
    """Per event type: occurrences, sequences that hold it, and a fingerprint of the set of these sequences.

    The fingerprint is the sum (mod 2^64, two of them) of a random number per sequence: equal fingerprints mean equal
    sets, but for one chance in 10^30.
    """

    ids: dict[str, int] = field(default_factory=dict)
    occurrences: Int64 = field(default_factory=lambda: np.zeros(0, np.int64))
    sequences: Int64 = field(default_factory=lambda: np.zeros(0, np.int64))
    prints: UInt64 = field(default_factory=lambda: np.zeros((0, 2), np.uint64))

    def add(self, events: pa.ListArray, first: int) -> None:
        """Count the events of sequences `first`, `first + 1`, ..."""
        encoded = events.flatten().dictionary_encode()
        names = encoded.dictionary.to_pylist()
        table = np.fromiter((self.ids.setdefault(name, len(self.ids)) for name in names), np.int64, len(names))
        self._grow()
        codes = table[encoded.indices.to_numpy(zero_copy_only=False)]
        rows = np.repeat(np.arange(len(events)), np.diff(list_offsets(events)))
        self.occurrences += np.bincount(codes, minlength=len(self.ids))
        pairs = np.unique(codes * len(events) + rows)
        codes, rows = np.divmod(pairs, len(events))
        self.sequences += np.bincount(codes, minlength=len(self.ids))
        present, starts = np.unique(codes, return_index=True)
        marks = np.stack([_random_bits(rows + first, salt) for salt in (1, 2)], axis=1)
        self.prints[present] += np.add.reduceat(marks, starts, axis=0)

    def _grow(self) -> None:
        more = len(self.ids) - len(self.occurrences)
        self.occurrences = np.pad(self.occurrences, (0, more))
        self.sequences = np.pad(self.sequences, (0, more))
        self.prints = np.pad(self.prints, ((0, more), (0, 0)))

    def inseparable(self, at_least: int) -> list[tuple[list[str], int]]:
        """Groups of types that occur in exactly the same sequences (at least so many), with their number."""
        names = list(self.ids)
        groups: dict[tuple[int, ...], list[int]] = {}
        for index in np.flatnonzero(self.sequences >= at_least).tolist():
            key = (int(self.sequences[index]), *self.prints[index].tolist())
            groups.setdefault(key, []).append(index)
        found = [(sorted(names[i] for i in group), key[0]) for key, group in groups.items() if len(group) > 1]
        return sorted(found, key=lambda item: (-item[1], item[0]))


def _random_bits(numbers: Int64, salt: int) -> UInt64:
    """64 well mixed bits for each number (the finaliser of splitmix64)."""
    bits = numbers.astype(np.uint64) + np.uint64(salt * 0x9E3779B97F4A7C15 % 2**64)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
