"""Which event types a label listens to: those of its Markov boundaries, found by counting before the first step.

A network that may listen to everything learns a training set by heart, and one that listens to the types that come
with a label most often hears each of them many times over: what comes with a cause comes with the label. IAMB keeps a
type only for what it adds to the others, by presence and by count and order, and hears what goes against a label too.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oscar_causal.data.sequences import Dataset, Int64
from oscar_causal.data.vocabulary import Vocabulary
from oscar_causal.discovery.classical.boundaries import GlobalBoundary
from oscar_causal.discovery.classical.features import FeatureConfig, FeatureKind
from oscar_causal.discovery.classical.learning import learn_boundaries
from oscar_causal.discovery.classical.methods import BaselineConfig

KINDS: tuple[tuple[FeatureKind, ...], ...] = (("presence", "counts", "order"), ("presence",))
"""Two searches: among orders and counts one easily misses what goes against a label."""
OnList = Callable[[int, int], None]
"""Called with (searches done, searches)."""


def boundary_lists(
    dataset: Dataset, vocabulary: Vocabulary, size: int, *, workers: int = 1, on_list: OnList | None = None
) -> Int64:
    """Model ids (Y, size) of the types that each label listens to; `vocabulary.size` where there is none.

    First those of the boundary by order and count, as they were found, then what presence alone adds. `on_list` hears
    how many of the searches are done.
    """
    lists = np.full((len(vocabulary.labels), size), vocabulary.size, np.int64)
    if not dataset.labelled.any() or not len(dataset.labels.ids):
        return lists
    known = set(dataset.label_names)
    labels = [label for label in vocabulary.labels if label in known]
    found: dict[str, dict[str, None]] = {label: {} for label in labels}
    done = 0

    def tell(_: GlobalBoundary) -> None:
        nonlocal done
        done += 1
        if on_list is not None:
            on_list(done, len(KINDS) * len(labels))

    for kinds in KINDS:
        config = BaselineConfig(features=FeatureConfig(kinds), label_time_limit=None)
        for boundary in learn_boundaries(dataset, config, labels=labels, workers=workers, on_boundary=tell):
            found[boundary.label] |= dict.fromkeys(boundary.events)
    place = {label: row for row, label in enumerate(vocabulary.labels)}
    for label, events in found.items():
        ids = [vocabulary.event_ids[event] for event in events if event in vocabulary.event_ids][:size]
        lists[place[label], : len(ids)] = ids
    return lists
