"""What a sequence is to a classical algorithm: which events it holds, how often, and which came before which.

Presence alone is one sparse table for all labels. Counts (`A >= 2`) and orders (`A then B`) would be millions of
columns; they are made for each label from the events that passed the corrected marginal test with it. A label related
to nothing therefore gets no such columns, and the family-wise error stays where it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from oscar_causal.data.rules import AtLeast, Event, Then
from oscar_causal.data.rules.tree import Atom
from oscar_causal.data.sequences import Dataset, Ragged, ragged_offsets
from oscar_causal.discovery.classical.occurrences import FeatureReader, Occurrences
from oscar_causal.discovery.classical.sparse import SparseTable, narrow, table_of_columns
from oscar_causal.errors import DataError, UsageError

FeatureKind = Literal["presence", "counts", "order"]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class FeatureConfig:
    """Which features the algorithms see."""

    kinds: tuple[FeatureKind, ...] = ("presence",)
    """presence is always in; counts adds `A >= 2`, ...; order adds `A then B`."""
    most_count: int = 4
    """Largest count of `A >= count`."""
    windows: tuple[float, ...] = (300.0, 1200.0, 4800.0, 19200.0, 76800.0)
    """Seconds; for each, `A then B within ...` besides the plain order. The default is a grid with steps of four."""
    screened: int = 24
    """At most this many events of a label, the strongest, get counts and pairs."""
    least_rows: int = 5
    """Features that hold in fewer sequences are left out."""

    def __post_init__(self) -> None:
        for kind in self.kinds:
            if kind not in get_args(FeatureKind):
                raise UsageError(f"features: expected some of {', '.join(get_args(FeatureKind))}, got {kind!r}")
        if self.most_count < 2:
            raise UsageError(f"most_count: expected at least 2, got {self.most_count}")
        if self.screened < 2:
            raise UsageError(f"screened: expected at least 2 events, got {self.screened}")
        for window in self.windows:
            if not 0 < window < float("inf"):
                raise UsageError(f"window: expected a number of seconds above 0, got {window}")

    @property
    def only_presence(self) -> bool:
        """Is the one sparse table enough?"""
        return set(self.kinds) <= {"presence"}


def presence_table(dataset: Dataset) -> SparseTable:
    """Presence of every event and label in the labelled sequences; columns are events, then labels."""
    events, labels = dataset.events, dataset.labels
    if not dataset.labelled.all():
        chosen = np.flatnonzero(dataset.labelled)
        events, labels = events.take(chosen), labels.take(chosen)
    if not len(labels.ids):
        raise DataError("baseline: expected labelled sequences, got none with a label")
    n_events = len(dataset.event_names)
    of_event, with_event = _by_column(events, n_events)
    of_label, with_label = _by_column(labels, len(dataset.label_names))
    offsets = np.concatenate([of_event, of_label[1:] + of_event[-1]])
    names = (*dataset.event_names, *dataset.label_names)
    return table_of_columns(offsets, np.concatenate([with_event, with_label]), len(events), names, n_events)


def _by_column(lists: Ragged, width: int) -> tuple[Int64, Int32]:
    """Offsets and rows of the lists that hold each id: rising, each once."""
    ones = np.ones(len(lists.ids), np.int8)
    turned = csr_array((ones, lists.ids, narrow(lists.offsets)), shape=(len(lists), width)).tocsc()  # repeats are kept
    new = np.ones(len(ones), bool)
    new[1:] = turned.indices[1:] != turned.indices[:-1]
    held = np.flatnonzero(np.diff(turned.indptr))
    begins = turned.indptr[held]
    new[begins] = True
    counts = np.zeros(width, np.int64)
    if len(held):
        counts[held] = np.add.reduceat(new, begins, dtype=np.int64)
    return ragged_offsets(counts), turned.indices[new].astype(np.int32, copy=False)


def occurrences_of(dataset: Dataset) -> Occurrences:
    """Where and when every event occurs in the labelled sequences; rows are those of `presence_table`."""
    labelled = dataset if dataset.labelled.all() else dataset.take(np.flatnonzero(dataset.labelled))
    events = labelled.events
    offsets, shape = narrow(events.offsets), (len(events), len(dataset.event_names))
    places = np.arange(len(events.ids), dtype=offsets.dtype)
    by_event = csr_array((places, events.ids, offsets), shape=shape).tocsc()  # repeats are kept
    rows = by_event.indices.astype(np.int32, copy=False)
    return Occurrences(by_event.indptr, rows, by_event.data, labelled.times, dataset.event_names)


def features_of(events: Sequence[str], config: FeatureConfig) -> Iterable[Atom]:
    """Counts and orders of these events (strongest first); presence is not among them."""
    top = [Event(name) for name in events[: config.screened]]
    if "counts" in config.kinds:
        for event in top:
            yield from (AtLeast(event, count) for count in range(2, config.most_count + 1))
    if "order" in config.kinds:
        for first, second in permutations(top, 2):
            yield from (Then(first, second, window) for window in (None, *config.windows))


def feature_table(
    presence: SparseTable, columns: Sequence[int], keep: Sequence[int], index: Occurrences, config: FeatureConfig
) -> tuple[SparseTable, tuple[Atom, ...]]:
    """A small table for one label: the events `columns` (strongest first), their features, then the columns `keep`.

    Returned beside it: what each of its leading columns is.
    """
    names = [presence.names[column] for column in columns]
    atoms: list[Atom] = [Event(name) for name in names]
    rows: list[npt.NDArray[np.integer]] = [presence.rows_of(column) for column in columns]
    reader = FeatureReader(index, names[: config.screened])
    for atom in features_of(names, config):
        found = reader.rows_of(atom)
        if len(found) >= config.least_rows:
            atoms.append(atom)
            rows.append(found)
    rows += [presence.rows_of(column) for column in keep]
    texts = [f"column {number}" for number in range(len(rows))]
    offsets = ragged_offsets(np.array([len(part) for part in rows]))
    flat = np.concatenate(rows, dtype=np.int32)
    return table_of_columns(offsets, flat, presence.n_rows, texts, len(atoms)), tuple(atoms)
