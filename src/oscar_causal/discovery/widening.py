"""Boundaries of rare labels with causes that single tests cannot tell, found together and judged by prediction.

A label that comes with A and any of twelve other events, forty times in all: given A, each of the twelve comes with
three or four of the labels, and no test of one of them is sure. By itself each comes with the label far too often to be
chance. So the types that raise the label by themselves join the boundary, all at once, and those without which labels
of other subjects are predicted as well leave it again, one after the other (`Readings.log_likelihood`): what merely
comes with a cause adds nothing to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.stats import hypergeom

from oscar_causal.data.rules import Event, format_rule
from oscar_causal.data.sequences import Dataset
from oscar_causal.data.subjects import join_subjects, pack_subjects
from oscar_causal.discovery.classical.features import presence_table
from oscar_causal.discovery.evidence import merge
from oscar_causal.discovery.fleet_prior import Classical, features_by_label
from oscar_causal.discovery.reading import Features, Readings, count_patterns, readings_of

OnProgress = Callable[[int, int], None]
FEW = 300
"""Positives from which single tests find what there is (and patterns of wide boundaries are too many to be tried)."""
MOST = 14
"""Types that join a boundary."""
ALPHA = 0.01
"""Of the test that a type raises the label by itself, over all types."""


def with_wider(
    sources: Sequence[Classical], datasets: Sequence[Dataset], *, on_progress: OnProgress | None = None
) -> list[Classical]:
    """The sources, and beside each its boundaries of rare labels widened and pruned, where that changes any.

    `on_progress` hears how many boundaries are done, and of how many.
    """
    raising = raising_types(datasets, [label for source in sources for label in source.features])
    done = 0

    def on_label() -> None:
        nonlocal done
        done += 1
        if on_progress is not None:
            on_progress(done, len(sources) * len(raising))

    wider = [widened(source, datasets, raising, on_label) for source in sources]
    pairs = zip(wider, sources, strict=True)
    return [*sources, *(new for new, old in pairs if features_by_label(new) != features_by_label(old))]


def raising_types(datasets: Sequence[Dataset], labels: Sequence[str]) -> dict[str, list[str]]:
    """Rare label -> the event types that come with it more often than chance has it, the surest first."""
    rows, holding, positives = 0, Counter[str](), Counter[str]()
    both: dict[str, Counter[str]] = {label: Counter() for label in labels}
    for table in (presence_table(data) for data in datasets if len(data.labels.ids)):
        rows += table.n_rows
        events = table.names[: table.n_events]
        holding.update(dict(zip(events, table.totals[: table.n_events].tolist(), strict=True)))
        for place, label in enumerate(table.names[table.n_events :], start=table.n_events):
            positives[label] += int(table.totals[place])
            if label in both and positives[label] < FEW:
                met = [
                    table.columns[table.row_offsets[row] : table.row_offsets[row + 1]] for row in table.rows_of(place)
                ]
                counts = np.bincount(np.concatenate(met))[: table.n_events] if met else np.zeros(0, np.int64)
                both[label].update({events[k]: int(counts[k]) for k in np.flatnonzero(counts)})
    least, found = ALPHA / max(1, len(holding)), {}
    for label, counted in both.items():
        if 0 < positives[label] < FEW:
            several = {event: number for event, number in counted.items() if number > 1}
            tested = [(_chance(n, rows, holding[event], positives[label]), event) for event, n in several.items()]
            found[label] = [event for chance, event in sorted(tested) if chance <= least]
    return found


def _chance(both: int, rows: int, holding: int, positives: int) -> float:
    """The chance that so many rows or more hold both, if one has nothing to do with the other (Fisher's exact test)."""
    return float(hypergeom.sf(both - 1, rows, holding, positives))


def widened(
    source: Classical,
    datasets: Sequence[Dataset],
    raising: Mapping[str, Sequence[str]],
    on_label: Callable[[], None] = lambda: None,
) -> Classical:
    """The source with the boundaries of these labels widened by up to `MOST` types, and pruned."""
    known = features_by_label(source)
    wide = {label: _joined(known[label], events) for label, events in raising.items() if label in known}
    counted = merge([count_patterns(data, wide) for data in datasets]).patterns
    read = readings_of(counted, wide) or Readings(wide, {})
    features, lowering = dict(source.features), dict(source.lowering)
    for label in raising:
        if label in read.counts and wide[label] != known[label]:
            pruned = prune(Patterns.of(read, label))
            features[label], lowering[label] = pruned.raising, pruned.lowering
        on_label()
    subjects = join_subjects([source.subjects, *(pack_subjects(data.subject_ids) for data in datasets)])
    return replace(source, features=features, lowering=lowering, subjects=subjects)


def _joined(boundary: Features, events: Sequence[str]) -> Features:
    members = {name for names in boundary.names for name in names}
    more = [format_rule(Event(event)) for event in events if event not in members][:MOST]
    return Features((*boundary.raising, *more), boundary.lowering)


@dataclass(frozen=True)
class Patterns:
    """A boundary, and how often each of its patterns was met."""

    label: str
    features: Features
    holds: npt.NDArray[np.bool_]
    """(patterns, features)"""
    counts: npt.NDArray[np.int64]
    """(patterns, 2, FOLDS): sequences, and those with the label."""

    @classmethod
    def of(cls, read: Readings, label: str) -> Patterns:
        """Of one label."""
        features, counts = read.features[label], read.counts[label]
        holds = np.array([[p >> k & 1 for k in range(len(features.atoms))] for p in counts], bool)
        return cls(label, features, holds, np.stack([*counts.values()]))

    def without(self, feature: int) -> Patterns:
        """The boundary without one of its features: patterns that only it tells apart are one."""
        rest, raising = np.arange(self.holds.shape[1]) != feature, len(self.features.raising)
        texts = np.array([*self.features.raising, *self.features.lowering], dtype=object)
        fewer = Features(tuple(texts[:raising][rest[:raising]]), tuple(texts[raising:][rest[raising:]]))
        holds, which = np.unique(self.holds[:, rest], axis=0, return_inverse=True)
        counts = np.zeros((len(holds), *self.counts.shape[1:]), np.int64)
        np.add.at(counts, which.ravel(), self.counts)
        return Patterns(self.label, fewer, holds, counts)

    def log_likelihood(self) -> float:
        """See `Readings.log_likelihood`."""
        bits = 1 << np.arange(self.holds.shape[1], dtype=object)
        numbers = (self.holds * bits).sum(1).tolist() if len(bits) else [0]
        counts = dict(zip(numbers, self.counts, strict=True))
        return Readings({self.label: self.features}, {self.label: counts}).log_likelihood(self.label)


def prune(patterns: Patterns) -> Features:
    """Take features out, each time the one without which the label is predicted best, until each one left helps."""
    best = patterns.log_likelihood()
    while len(patterns.features.atoms) > 1:
        tried = [patterns.without(feature) for feature in range(len(patterns.features.atoms))]
        scores = [fewer.log_likelihood() for fewer in tried]
        if max(scores) < best:
            break
        best = max(scores)
        patterns = tried[scores.index(best)]
    return patterns.features
