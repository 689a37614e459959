"""Alternatives that brought a label at different times only: together they may be a rule that is true on no day.

Where an old alternative gave way to a new one, no sequence contradicts a rule that lists both, and no share of labels
changes (`changes` looks at those). But the sequences in which one alone decided all began before those in which the
other did.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import pyarrow.compute as pc

from oscar_causal.data.rules import format_rule
from oscar_causal.data.rules.tree import Atom
from oscar_causal.data.sequences import Dataset
from oscar_causal.discovery.contexts import Bool

CHANCE = 0.01
"""Two parts stand on either side of a date by chance, if subjects drawn at random do that as often as this."""


@dataclass(frozen=True)
class _Seen:
    """When a part brought the label (microseconds since 1970), and in how many subjects."""

    first: int
    last: int
    subjects: int


def one_after_the_other(brought: Mapping[Atom, Bool], dataset: Dataset) -> list[str]:
    """A sentence for every two parts of a rule of which one brought the label only before the other did.

    `brought`: part -> the sequences in which it alone decided and the label came. Sequences of one subject are no
    independent witnesses: chance is counted over subjects. Sequences without a start say nothing.

    >>> from oscar_causal.data.rules import Event
    >>> from oscar_causal.data.sequences import from_records
    >>> days = [f"2025-0{month}-0{day}T00:00:00Z" for month in (1, 2) for day in range(1, 6)]
    >>> car = {"events": ["x"], "times": [0], "labels": []}
    >>> cars = from_records({"sequence_id": str(k), "start": day, **car} for k, day in enumerate(days))
    >>> one_after_the_other({Event("A"): np.arange(10) < 5, Event("B"): np.arange(10) >= 5}, cars)
    ['A brought the label until 2025-01-05 only, B since 2025-02-01 only: the rule may have changed']
    """
    known = dataset.start.is_valid().to_numpy(zero_copy_only=False)
    seen = {atom: _seen(dataset, np.flatnonzero(which & known)) for atom, which in brought.items()}
    pairs = permutations(((atom, part) for atom, part in seen.items() if part is not None), 2)
    return [
        f"{format_rule(a)} brought the label until {_day(early.last)} only, "
        f"{format_rule(b)} since {_day(late.first)} only: the rule may have changed"
        for (a, early), (b, late) in pairs
        if early.last < late.first and 1 / math.comb(early.subjects + late.subjects, early.subjects) <= CHANCE
    ]


def _seen(dataset: Dataset, rows: np.ndarray) -> _Seen | None:
    if not len(rows):
        return None
    began = dataset.start.take(rows).cast("int64").to_numpy(zero_copy_only=False)
    return _Seen(int(began.min()), int(began.max()), int(pc.count_distinct(dataset.subject_ids.take(rows)).as_py()))


def _day(date: int) -> str:
    return str(np.datetime64(date, "us"))[:10]
