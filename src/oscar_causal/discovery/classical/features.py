"""What a sequence is to a classical algorithm: which events it holds, how often, and which came before which.

Presence alone is one sparse table for all labels. Counts (`A >= 2`) and orders (`A then B`) would be millions of
columns; they are made for each label from the events that passed the corrected marginal test with it. A label related
to nothing therefore gets no such columns, and the family-wise error stays where it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from oscar_causal.data.rules import AtLeast, Event, EventIndex, Then
from oscar_causal.data.rules.tree import Atom
from oscar_causal.data.sequences import Dataset
from oscar_causal.discovery.classical.sparse import SparseTable, sparse_table
from oscar_causal.errors import DataError, UsageError

FeatureKind = Literal["presence", "counts", "order"]
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
    rows = np.concatenate([events.rows(), labels.rows()])
    columns = np.concatenate([events.ids.astype(np.int64), labels.ids.astype(np.int64) + n_events])
    names = (*dataset.event_names, *dataset.label_names)
    return sparse_table(rows, columns, (len(events), len(names)), names, n_events)


def save_events(dataset: Dataset, folder: Path) -> None:
    """Write the events and times of the labelled sequences as plain .npy files for `open_events`."""
    labelled = dataset if dataset.labelled.all() else dataset.take(np.flatnonzero(dataset.labelled))
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in (("offsets", labelled.events.offsets), ("ids", labelled.events.ids), ("times", labelled.times)):
        np.save(folder / f"{name}.npy", array, allow_pickle=False)


def open_events(folder: Path, names: Sequence[str]) -> EventIndex:
    """The inverted index over what `save_events` wrote."""
    load: list[Any] = [np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("offsets", "ids", "times")]
    return EventIndex(load[0], load[1], load[2], {name: index for index, name in enumerate(names)})


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
    presence: SparseTable, columns: Sequence[int], keep: Sequence[int], index: EventIndex, config: FeatureConfig
) -> tuple[SparseTable, tuple[Atom, ...]]:
    """A small table for one label: the events `columns` (strongest first), their features, then the columns `keep`.

    Returned beside it: what each of its leading columns is.
    """
    names = [presence.names[column] for column in columns]
    atoms: list[Atom] = [Event(name) for name in names]
    rows = [presence.rows_of(column) for column in columns]
    for atom in features_of(names, config):
        found = np.flatnonzero(index.holds(atom))
        if len(found) >= config.least_rows:
            atoms.append(atom)
            rows.append(found)
    rows += [presence.rows_of(column) for column in keep]
    owner = np.repeat(np.arange(len(rows)), [len(found) for found in rows])
    texts = [f"column {number}" for number in range(len(rows))]
    table = sparse_table(np.concatenate(rows), owner, (presence.n_rows, len(rows)), texts, len(atoms))
    return table, tuple(atoms)
