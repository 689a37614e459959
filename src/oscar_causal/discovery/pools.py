"""What one label's boundary may be chosen from: a pool of features, and how often each of their patterns was met.

`Candidates` are presence, counts (`A >= 3`) and orders of the event types that have most to do with the label. The
window of an order is read off the data: the time up to which the label comes and beyond which it does not, given what
is known already (a grid of windows would miss it, and where another route stands by with the same events too late, the
order by itself does not tell it). A pool holds a boundary and what would add most to it: at most 64 features, so a
sequence's pattern is one number. Sequences with the same are counted together, by fold of subjects, and every boundary
from the pool is judged by these counts alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.special import xlogy

from oscar_causal.data.rules import AtLeast, Event, Then, event_names
from oscar_causal.data.rules.tree import Atom
from oscar_causal.data.sequences import Dataset, ragged_positions
from oscar_causal.discovery.classical.features import occurrences_of, presence_table
from oscar_causal.discovery.classical.occurrences import FeatureReader, Occurrences
from oscar_causal.discovery.classical.sparse import SparseTable
from oscar_causal.discovery.evidence import FOLDS, subject_groups
from oscar_causal.discovery.gains import PRICE, Strata, best_window
from oscar_causal.discovery.reading import cross_fold_likelihood
from oscar_causal.errors import UsageError

Int8 = npt.NDArray[np.int8]
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
"""Of the test that a type has to do with the label, over all types."""


@dataclass(frozen=True)
class Fleet:
    """Labelled sequences: what holds in them, when, and their fold."""

    table: SparseTable
    index: Occurrences
    fold: Int8

    @classmethod
    def of(cls, data: Dataset) -> Fleet:
        """Of the labelled sequences of a dataset, some of which have a label."""
        groups = subject_groups(data.subject_ids)[data.labelled]
        return cls(presence_table(data), occurrences_of(data), (groups % FOLDS).astype(np.int8))

    def save(self, folder: Path) -> None:
        """Write the arrays as plain .npy files, to be opened by other processes without a copy."""
        self.table.save(folder)
        self.index.save(folder)
        np.save(folder / "fold.npy", self.fold, allow_pickle=False)

    @classmethod
    def open(cls, folder: Path) -> Fleet:
        """Map what `save` wrote."""
        table, fold = SparseTable.open(folder), np.load(folder / "fold.npy", allow_pickle=False)
        return cls(table, Occurrences.open(folder, table.names[: table.n_events]), fold)

    def rows_with(self, label: int) -> Int64:
        """The sequences with a label (its number)."""
        return self.table.rows_of(self.table.n_events + label)

    def held_in(self, rows: Int64) -> Int64:
        """In how many of these sequences each event type is."""
        met = self.table.columns[ragged_positions(np.asarray(self.table.row_offsets), rows)]
        return np.bincount(met, minlength=self.table.n_columns)[: self.table.n_events]


@dataclass(frozen=True)
class Pool:
    """Features, and how often each pattern of them was met."""

    atoms: tuple[Atom, ...]
    prices: tuple[float, ...]
    """Nats that each feature has to be worth."""
    codes: UInt64
    """(patterns,): bit k tells whether feature k holds."""
    counts: Int64
    """(patterns, 2, FOLDS): sequences, and those with the label."""

    @classmethod
    def of(cls, holding: Mapping[Atom, Int64], prices: Iterable[float], came: Bool, fold: Int8) -> Pool:
        """Of features with the sequences in which each holds."""
        code = np.zeros(len(came), np.uint64)
        for place, rows in enumerate(holding.values()):
            code[rows] |= np.uint64(1 << place)
        codes, which = np.unique(code, return_inverse=True)
        key, size = which * FOLDS + fold, len(codes) * FOLDS
        counts = np.stack([np.bincount(key, minlength=size), np.bincount(key[came], minlength=size)])
        return cls(tuple(holding), tuple(prices), codes, counts.reshape(2, -1, FOLDS).transpose(1, 0, 2))


class Candidates:
    """The features that may have to do with one label (its number): `known` ones, and what its strongest types make."""

    def __init__(self, fleet: Fleet, label: int, known: Iterable[Atom] = ()) -> None:
        self.fleet = fleet
        self.came = np.zeros(fleet.table.n_rows, bool)
        self.came[fleet.rows_with(label)] = True
        self.types = strongest_types(fleet, label)
        self._known = dict.fromkeys(known)  # in their order
        self._orders = {event_names(atom) for atom in self._known if isinstance(atom, Then)}
        members = [event_names(atom) for atom in self._known]
        names = dict.fromkeys([*self.types, *(name for part in members for name in part if name in fleet.index.ids)])
        pairs = {
            *permutations(self.types, 2),
            *((p[0], p[1]) for p in self._orders if len(p) == 2 and names.keys() >= {*p}),
        }
        self._reader = FeatureReader(fleet.index, list(names))
        self._gaps = {pair: _wide(*self._reader.gaps_of(*pair)) for pair in sorted(pairs)}

    @property
    def raising(self) -> list[str]:
        """The strongest types that come with the label more often than without it, the surest first."""
        number, ids = np.count_nonzero(self.came), self.fleet.index.ids
        rows = {name: self.fleet.table.rows_of(ids[name]) for name in self.types}
        return [name for name, held in rows.items() if self.came[held].mean() > number / len(self.came)]

    def rows_of(self, atom: Atom) -> Int64:
        """The sequences in which a feature holds."""
        if any(name not in self.fleet.index.ids for name in event_names(atom)):
            return np.zeros(0, np.int64)
        match atom:
            case Event(name):
                return self.fleet.table.rows_of(self.fleet.index.ids[name])
            case AtLeast(Event(_), _):
                return np.asarray(self._reader.rows_of(atom), np.int64)
            case Then(Event(first), Event(second), within) if (first, second) in self._gaps:
                rows, gaps = self._gaps[first, second]
                return rows if within is None else rows[gaps <= within]
        raise UsageError(f"feature: expected an event, a count or an order of two events, got {atom}")

    def pool(self, boundary: Sequence[Atom]) -> Pool:
        """The boundary, then what adds most to it."""
        gains = {atom: nats for atom, nats in self._gains(boundary) if atom not in boundary and nats > 0}
        return self.count([*boundary, *sorted(gains, key=lambda atom: -gains[atom])][:SIZE])

    def count(self, atoms: Sequence[Atom]) -> Pool:
        """The pool of these features, 64 of them at most."""
        holding = {atom: self.rows_of(atom) for atom in atoms}
        return Pool.of(holding, map(self.price, atoms), self.came, self.fleet.fold)

    def log_likelihood(self, atoms: Sequence[Atom]) -> float:
        """See `Readings.log_likelihood`; of any number of features."""
        holding = [self.rows_of(atom) for atom in atoms]
        strata = Strata.of(holding, self.came)
        _, first = np.unique(strata.of_row, return_index=True)
        holds = np.stack([np.isin(first, rows) for rows in holding], axis=1) if holding else np.zeros((1, 0), bool)
        key, size = strata.of_row * FOLDS + self.fleet.fold, len(strata.number) * FOLDS
        counts = np.stack([np.bincount(part, minlength=size) for part in (key, key[self.came])])
        return cross_fold_likelihood(holds, counts.reshape(2, -1, FOLDS).transpose(1, 0, 2)[strata.number > 0])

    def price(self, atom: Atom) -> float:
        """Nats that a feature has to be worth: more where it is the best of many that nothing spoke for."""
        spoken_for = isinstance(atom, Event) or atom in self._known or event_names(atom) in self._orders
        return PRICE if spoken_for else PRICE + float(np.log(len(self._gaps) + (MOST_COUNT - 1) * len(self.types)))

    def _gains(self, boundary: Sequence[Atom]) -> Iterator[tuple[Atom, float]]:
        """What each candidate would add to the boundary, orders of the boundary with other windows first."""
        holding = {atom: self.rows_of(atom) for atom in boundary}
        strata = Strata.of(holding.values(), self.came)
        for atom in (atom for name in self.types for atom in _of_type(name)):
            rows = self.rows_of(atom)
            if len(rows) >= LEAST_ROWS:
                yield atom, strata.gain(rows)
        for pair, (rows, gaps) in self._gaps.items():
            if len(rows) >= LEAST_ROWS:
                others = [held for atom, held in holding.items() if not _is_order(atom, pair)]
                inside = len(others) < len(holding)
                given = Strata.of(others, self.came) if inside else strata
                window, nats = best_window(given, rows, gaps)
                yield Then(Event(pair[0]), Event(pair[1]), window), np.inf if inside else nats


def _wide(rows: npt.NDArray[np.int32], gaps: Float64) -> tuple[Int64, Float64]:
    return rows.astype(np.int64), gaps


def _of_type(name: str) -> Iterator[Atom]:
    yield Event(name)
    yield from (AtLeast(Event(name), count) for count in range(2, MOST_COUNT + 1))


def _is_order(atom: Atom, pair: tuple[str, str]) -> bool:
    return isinstance(atom, Then) and event_names(atom) == pair


def strongest_types(fleet: Fleet, label: int) -> list[str]:
    """Event types that surely have to do with the label (G^2), the surest first."""
    with_label = fleet.rows_with(label)
    both = fleet.held_in(with_label).astype(np.float64)
    holding, names = fleet.table.totals[: len(both)].astype(np.float64), fleet.table.names
    came, rows = np.float64(len(with_label)), np.float64(fleet.table.n_rows)
    apart = _log_likelihood(both, holding) + _log_likelihood(came - both, rows - holding)
    gains = apart - _log_likelihood(came, rows)
    least = -np.log(ALPHA / max(len(both), 1))  # P(G^2 > 2 t) < exp(-t) with one degree of freedom
    order = np.argsort(-gains, kind="stable")[:STRONGEST]
    return [names[k] for k in order.tolist() if gains[k] > least]


def _log_likelihood(came: Float64 | np.float64, number: Float64 | np.float64) -> Float64:
    """Of so many labels in so many sequences, at the best chance."""
    return np.asarray(xlogy(came, came) + xlogy(number - came, number - came) - xlogy(number, number))
