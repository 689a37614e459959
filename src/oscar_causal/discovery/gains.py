"""How much a feature would add to a boundary, from counts alone: what a search looks at first among many features.

The boundary's patterns part the sequences into strata; the feature parts each stratum in two. What that is worth in
nats is told by the marginal likelihood of the labels in the parts (beta-binomial, centred on the stratum's own
frequency and as sure of it as `IMAGINED` sequences), minus that of the stratum: a feature that tells nothing costs a
little. All windows of an order are judged in one pass over its sequences by the time between the two events.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

import numpy as np
import numpy.typing as npt
from scipy.special import betaln

from oscar_causal.discovery.reading import IMAGINED

Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]
MARGIN = 2.0
"""Nats by which a window has to be better than any time between two events, and a feature than none."""


@dataclass(frozen=True)
class Strata:
    """Sequences by the pattern of a boundary in them."""

    of_row: Int64
    came: Bool
    """(rows,): with the label."""
    number: Int64
    """(strata,)"""
    positives: Int64

    @classmethod
    def of(cls, features: Sequence[Int64], came: Bool) -> Strata:
        """From the sequences in which each feature of the boundary holds."""
        of_row = np.zeros(len(came), np.int64)
        for rows in features:
            of_row[rows] += int(of_row.max(initial=0)) + 1
            of_row = np.unique(of_row, return_inverse=True)[1] if of_row.max() > 1 << 40 else of_row
        of_row = np.unique(of_row, return_inverse=True)[1]
        number = np.bincount(of_row)
        return cls(of_row, came, number, np.bincount(of_row[came], minlength=len(number)))

    def gain(self, rows: Int64) -> float:
        """Nats that a feature adds which holds in these sequences."""
        stratum = self.of_row[rows]
        number = np.bincount(stratum, minlength=len(self.number))
        touched = np.flatnonzero(number * self._mixed)
        positives = np.bincount(stratum[self.came[rows]], minlength=len(self.number))
        return float(self._parted(touched, number[touched], positives[touched]).sum())

    def gain_by_time(self, rows: Int64, gaps: Float64) -> tuple[Float64, Float64]:
        """The different times, rising, and the nats that holding up to that time adds."""
        kept = self._mixed[self.of_row[rows]]
        order = np.flatnonzero(kept)[np.argsort(gaps[kept], kind="stable")]
        stratum, came, times = self.of_row[rows[order]], self.came[rows[order]], gaps[order]
        by_stratum = np.argsort(stratum, kind="stable")
        begins = np.searchsorted(stratum[by_stratum], stratum[by_stratum])
        sums = np.append(0, np.cumsum(came[by_stratum]))
        number, positives = np.empty(len(order), np.int64), np.empty(len(order), np.int64)
        number[by_stratum] = np.arange(len(order)) - begins  # so many of its stratum came before it
        positives[by_stratum] = sums[:-1] - sums[begins]
        after = self._parted(stratum, number + 1, positives + came)
        total = np.cumsum(after - np.where(number > 0, self._parted(stratum, number, positives), 0.0))
        last = np.append(times[1:] > times[:-1], True) if len(times) else np.zeros(0, bool)
        return times[last], total[last]

    @property
    def _mixed(self) -> Bool:
        """Strata in which the label varies; the others tell nothing."""
        return (self.positives > 0) & (self.positives < self.number)

    def _parted(self, stratum: Int64, number: Int64, positives: Int64) -> Float64:
        """Nats of parting each stratum into a part of these numbers, and the rest."""
        whole, came = self.number[stratum], self.positives[stratum]
        yes = IMAGINED * came / whole
        no = IMAGINED - yes
        inside = betaln(positives + yes, number - positives + no)
        outside = betaln(came - positives + yes, whole - number - came + positives + no)
        return np.asarray(inside + outside - betaln(came + yes, whole - came + no) - betaln(yes, no))


def best_window(strata: Strata, rows: Int64, gaps: Float64) -> tuple[float | None, float]:
    """Up to which time between two events an order adds most, and its nats; None where any time is as good.

    `gaps` are the shortest times between the two in the sequences that hold the order.
    """
    times, gains = strata.gain_by_time(rows, gaps)
    if not len(times):
        return None, 0.0
    best = int(np.argmax(gains))
    if gains[best] < gains[-1] + MARGIN:
        return None, float(gains[-1])
    return round_number(float(times[best]), float(times[best + 1])), float(gains[best])


def round_number(low: float, high: float) -> float:
    """The number from low up to, and not including, high with the fewest digits.

    >>> round_number(1788.4, 1931.0), round_number(57.2, 63.9), round_number(3, 4)
    (1800.0, 60.0, 3.0)
    """
    for digits in range(1, 16):
        unit = 10.0 ** (floor(log10(high)) + 1 - digits)
        found = float(f"{ceil(low / unit) * unit:.{digits + 1}g}")
        if low <= found < high:
            return found
    return low
