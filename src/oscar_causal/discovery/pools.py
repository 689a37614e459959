"""What one label's boundary may be chosen from: a pool of features, and how often each of their patterns was met.

In the pool are the features that other searches found, and the surest ones among those that the label's strongest event
types can make: presence, counts (`A >= 3`) and orders. The window of an order is read off the data: of all times from A
to B the one up to which the label comes and beyond which it does not, given as a round number. A pool has at most 64
features, so a sequence's pattern is one number; sequences with the same are counted together, by fold of subjects, and
every boundary from the pool is judged by these counts alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import ceil, floor, log10

import numpy as np
import numpy.typing as npt
from scipy.special import xlogy

from oscar_causal.data.rules import AtLeast, Event, Then
from oscar_causal.data.rules.tree import Atom
from oscar_causal.data.sequences import ragged_positions
from oscar_causal.discovery.classical.occurrences import FeatureReader, Occurrences, _counted as counted_rows
from oscar_causal.discovery.classical.sparse import SparseTable
from oscar_causal.discovery.evidence import FOLDS
from oscar_causal.discovery.gains import Strata, best_window
from oscar_causal.errors import UsageError

Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]
Float64 = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]
SIZE = 64
"""Most features of a pool."""
STRONGEST = 24
"""Most event types whose counts and orders are tried."""
MOST_COUNT = 4
LEAST_ROWS = 5
"""Features that hold in fewer sequences are left out."""
ALPHA = 0.01
"""Of the test that a type has to do with the label, over all types: G^2, one degree of freedom."""
MARGIN = 2.0
"""Nats by which a feature has to be better than a simpler one to be worth its freedom."""


@dataclass(frozen=True)
class Fleet:
    """Labelled sequences: what holds in them, when, and their fold."""

    table: SparseTable
    index: Occurrences
    fold: npt.NDArray[np.int8]

    def rows_with(self, label: int) -> Int64:
        """The sequences with a label (its number)."""
        return self.table.rows_of(self.table.n_events + label)


@dataclass(frozen=True)
class Pool:
    """Features, and how often each pattern of them was met."""

    atoms: tuple[Atom, ...]
    codes: UInt64
    """(patterns,): bit k tells whether feature k holds."""
    counts: Int64
    """(patterns, 2, FOLDS): sequences, and those with the label."""

    @classmethod
    def of(cls, holding: Mapping[Atom, Int64], came: Bool, fold: npt.NDArray[np.int8]) -> Pool:
        """Of features with the sequences in which each holds."""
        code = np.zeros(len(came), np.uint64)
        for place, rows in enumerate(holding.values()):
            code[rows] |= np.uint64(1 << place)
        codes, which = np.unique(code, return_inverse=True)
        key, size = which * FOLDS + fold, len(codes) * FOLDS
        counts = np.stack([np.bincount(key, minlength=size), np.bincount(key[came], minlength=size)])
        return cls(tuple(holding), codes, counts.reshape(2, -1, FOLDS).transpose(1, 0, 2))


class Features:
    """All that one label's strongest event types can make, and where it holds."""

    def __init__(self, fleet: Fleet, label: int, known: Iterable[Atom]) -> None:
        self.fleet, self.known = fleet, tuple(dict.fromkeys(known))
        self.came = np.zeros(fleet.table.n_rows, bool)
        self.came[fleet.rows_with(label)] = True
        types = strongest_types(fleet, label)
        self.events = [Event(name) for name in types]
        names = dict.fromkeys([*types, *(name for atom in self.known for name in _names(atom))])
        reader = FeatureReader(fleet.index, list(names))
        pairs = list(permutations(types, 2))
        pairs += [(a, b) for a, b in (_names(atom) for atom in self.known if isinstance(atom, Then)) if (a, b) not in pairs]
        self.gaps = {}
        for pair in sorted(pairs):
            rows, gaps = reader.gaps_of(*pair)
            if len(rows) >= LEAST_ROWS:
                self.gaps[pair] = np.asarray(rows, np.int64), gaps

    def rows_of(self, atom: Atom) -> Int64:
        match atom:
            case Event(name):
                return self.fleet.table.rows_of(self.fleet.index.ids[name])
            case AtLeast(Event(name), count):
                return np.asarray(counted_rows(self.fleet.index.rows_of(name), count), np.int64)
            case Then(Event(first), Event(second), within):
                rows, gaps = self.gaps.get((first, second), _NONE)
                return rows if within is None else rows[gaps <= within]
        raise UsageError("")

    def pool(self, boundary: Sequence[Atom], also: Sequence[Atom]) -> Pool:
        """The boundary, `also`, and what adds most to the boundary."""
        rest = {}
        strata = Strata.of([self.rows_of(atom) for atom in boundary], self.came)
        gains = dict(self._simple(strata))
        pairs = {a for a in boundary if isinstance(a, Then)}
        for pair, (rows, times) in self.gaps.items():
            mine = {a for a in pairs if tuple(_names(a)) == pair}
            given = strata if not mine else Strata.of([self.rows_of(a) for a in boundary if a not in mine], self.came)
            window, nats = best_window(given, rows, times)
            gains[Then(Event(pair[0]), Event(pair[1]), window)] = nats + 1000 * bool(mine)
        first = dict.fromkeys([*boundary, *also])
        best = sorted((atom for atom in gains if atom not in first and gains[atom] > 0), key=lambda atom: -gains[atom])
        atoms = [*first, *best][:SIZE]
        return Pool.of({atom: self.rows_of(atom) for atom in atoms}, self.came, self.fleet.fold)

    def _simple(self, strata):
        for event in self.events:
            yield event, strata.gain(self.rows_of(event))
            for count in range(2, MOST_COUNT + 1):
                rows = self.rows_of(AtLeast(event, count))
                if len(rows) >= LEAST_ROWS:
                    yield AtLeast(event, count), strata.gain(rows)


def strongest_types(fleet: Fleet, label: int) -> list[str]:
    """Event types that surely have to do with the label, the surest first."""
    table, with_label = fleet.table, fleet.rows_with(label)
    met = table.columns[ragged_positions(np.asarray(table.row_offsets), with_label)]
    both = np.bincount(met, minlength=table.n_columns)[: table.n_events].astype(float)
    holding = table.totals[: table.n_events].astype(float)
    k, n = float(len(with_label)), float(table.n_rows)
    gains = _binomial(both, holding) + _binomial(k - both, n - holding) - _binomial(k, n)
    least = -np.log(ALPHA / max(table.n_events, 1))  # of a chi^2 with one degree of freedom P(G^2 > 2 t) < exp(-t)
    order = np.argsort(-gains, kind="stable")[:STRONGEST]
    return [table.names[k] for k in order.tolist() if gains[k] > least]


def _binomial(came, number):
    """The log likelihood of so many labels at the best chance."""
    return np.asarray(xlogy(came, came) + xlogy(number - came, number - came) - xlogy(number, number))

_NONE = (np.zeros(0, np.int64), np.zeros(0))

def _names(atom: Atom) -> list[str]:
    match atom:
        case Event(name):
            return [name]
        case AtLeast(Event(name), _):
            return [name]
        case Then(Event(first), Event(second), _):
            return [first, second]
    return []


