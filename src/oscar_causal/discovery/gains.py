"""How much a feature would add to a boundary, from counts alone: what a search looks at first among many features.

The boundary's patterns part the sequences into strata; the feature parts each stratum in two. What that is worth in
nats is told by the marginal likelihood of the labels in the parts (beta-binomial, centred on the stratum's own
frequency and as sure of it as `IMAGINED_IN_SEARCH` sequences), minus that of the stratum: a feature that tells nothing
costs a little. All windows of an order are judged in one pass over its sequences, by the time between the two events.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import ceil, floor, log10

import numpy as np
import numpy.typing as npt
from scipy.special import betaln

from oscar_causal.discovery.reading import IMAGINED_IN_SEARCH

Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]
USUAL_WINDOWS = tuple(60.0 * m for m in (1, 2, 5, 10, 15, 30, 60, 120, 180, 240, 360, 720, 1440, 2880, 10080))
"""Seconds between two events that people write in rules: a minute to a week."""
PRICE = 2.0
"""Nats that a feature has to be worth, and a window of an order beside any time between the two events."""


@dataclass(frozen=True)
class Strata:
    """Sequences by the pattern of a boundary in them."""

    of_row: Int64
    came: Bool
    """(rows,): with the label."""

    @classmethod
    def of(cls, features: Iterable[Int64], came: Bool) -> Strata:
        """From the sequences in which each feature of the boundary holds."""
        of_row = np.zeros(len(came), np.int64)
        for rows in features:
            of_row[rows] += int(of_row.max(initial=0)) + 1
            touched = np.flatnonzero(of_row)
            of_row[touched] = np.unique(of_row[touched], return_inverse=True)[1] + 1
        return cls(of_row, came)

    @cached_property
    def number(self) -> Int64:
        """Sequences of each stratum."""
        return np.bincount(self.of_row)

    @cached_property
    def positives(self) -> Int64:
        """Those with the label."""
        return np.bincount(self.of_row[self.came], minlength=len(self.number))

    @cached_property
    def mixed(self) -> Bool:
        """Strata in which the label varies; the others tell nothing."""
        found: Bool = (self.positives > 0) & (self.positives < self.number)
        return found

    def gain(self, rows: Int64) -> float:
        """Nats that a feature adds which holds in these sequences."""
        stratum = self.of_row[rows]
        number = np.bincount(stratum, minlength=len(self.number))
        positives = np.bincount(stratum[self.came[rows]], minlength=len(self.number))
        touched = np.flatnonzero((number > 0) & self.mixed)
        whole, came = self.number[touched], self.positives[touched]
        return float(parted(whole, came, number[touched], positives[touched]).sum())

    def gain_by_time(self, rows: Int64, gaps: Float64) -> tuple[Float64, Float64]:
        """The different times, rising, and the nats that an order adds which holds up to that time."""
        order = np.argsort(gaps, kind="stable")
        order = order[self.mixed[self.of_row[rows[order]]]]
        stratum, came, times = self.of_row[rows[order]], self.came[rows[order]], gaps[order]
        number, positives = _before(stratum, came)
        whole, all_came = self.number[stratum], self.positives[stratum]
        steps = parted(whole, all_came, number + 1, positives + came) - parted(whole, all_came, number, positives)
        last = np.append(times[1:] > times[:-1], True)[: len(times)]
        return times[last], np.cumsum(steps)[last]


def _before(stratum: Int64, came: Bool) -> tuple[Int64, Int64]:
    """How many of its stratum stand before each, and how many of these came."""
    by_stratum = np.argsort(stratum, kind="stable")
    begins = np.searchsorted(stratum[by_stratum], stratum[by_stratum])
    sums = np.append(0, np.cumsum(came[by_stratum]))
    number, positives = np.empty(len(stratum), np.int64), np.empty(len(stratum), np.int64)
    number[by_stratum] = np.arange(len(stratum)) - begins
    positives[by_stratum] = sums[:-1] - sums[begins]
    return number, positives


def parted(
    whole: npt.NDArray[np.integer],
    came: npt.NDArray[np.integer],
    number: npt.NDArray[np.integer],
    positives: npt.NDArray[np.integer],
) -> Float64:
    """Nats of parting strata (of so many sequences, so many with the label) into a part of these numbers and the rest.

    >>> parted(np.array([100, 100]), np.array([10, 10]), np.array([10, 10]), np.array([10, 1])).round(1).tolist()
    [28.2, -1.1]
    """
    yes = IMAGINED_IN_SEARCH * came / whole
    no = IMAGINED_IN_SEARCH - yes
    inside = betaln(positives + yes, number - positives + no)
    outside = betaln(came - positives + yes, whole - number - came + positives + no)
    found = inside + outside - betaln(came + yes, whole - came + no) - betaln(yes, no)
    return np.where((number == 0) | (number == whole), 0.0, found)


def best_window(strata: Strata, rows: Int64, gaps: Float64) -> tuple[float | None, float]:
    """Up to which time between two events an order adds most, and its nats; None where any time is as good.

    `gaps` are the shortest times between the two in the sequences that hold the order.
    """
    times, gains = strata.gain_by_time(rows, gaps)
    if not len(times):
        return None, 0.0
    best = int(np.argmax(gains))
    if gains[best] < gains[-1] + PRICE:
        return None, float(gains[-1])
    return round_number(float(times[best]), float(times[best + 1])), float(gains[best])


def round_number(low: float, high: float) -> float:
    """The number from low up to, and not including, high that people would write: the shortest usual window, or else
    the one with the fewest digits.

    >>> round_number(1788.4, 1931.0), round_number(6500.0, 11000.0), round_number(3, 4), round_number(2212, 2291)
    (1800.0, 7200.0, 3.0, 2220.0)
    """
    usual = [window for window in USUAL_WINDOWS if low <= window < high]
    if usual:
        return usual[0]
    for digits in range(1, 16):
        unit = 10.0 ** (floor(log10(high)) + 1 - digits)
        found = float(f"{ceil(low / unit) * unit:.{digits + 1}g}")
        if low <= found < high:
            return found
    return low
