"""What pairs are scored against, gathered once for any number of methods: truths, events present, label frequencies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from oscar_causal.data.sequences import Dataset
from oscar_causal.score.breakdowns import subjects_of
from oscar_causal.score.controls import Present, present_events
from oscar_causal.score.matching import Pair, Truth, truth_of


@dataclass(frozen=True)
class Ground:
    """Everything about some pairs that does not depend on what was found for them."""

    truths: Mapping[str, Truth]
    present: Present
    label_counts: Mapping[str, int]
    """Training sequences with each label."""
    subjects: Mapping[str, str]
    """Sequence id -> subject."""


def ground_of(dataset: Dataset, pairs: Iterable[Pair], label_counts: Mapping[str, int]) -> Ground:
    """The ground of these pairs of a dataset on disk."""
    every = list(pairs)
    names = (sequence_id for sequence_id, _ in every)
    return Ground(
        truth_of(dataset, every),
        present_events(dataset, every),
        label_counts,
        dict(zip(names, subjects_of(dataset, every), strict=True)),
    )
