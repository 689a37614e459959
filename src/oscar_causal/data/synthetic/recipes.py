"""The laws of all labels as flat arrays, so that thousands of scenarios are planted with a few array operations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from oscar_causal.data.sequences import Ragged, ragged_offsets
from oscar_causal.data.synthetic.laws import Law
from oscar_causal.data.synthetic.streams import Ints

BOOLEAN, TEMPORAL, GRADED = 0, 1, 2
KINDS = ("any", "order", "window", "count")
ANY, ORDER, WINDOW, COUNT = range(4)
INHIBITOR_RATE = 0.3
"""Probability that a scenario of a graded label brings its inhibitors along."""
GRADED_COMPANY = 0.5
"""Probability that another cause of a graded label joins the chosen one."""
BLOCKED_SHARE = 0.5
"""Share of the near misses of a label with blockers that are complete but blocked; the others lack a clause."""


@dataclass(frozen=True)
class Recipes:
    """Law r owns the parts `part_offsets[r]:part_offsets[r + 1]`; part p its events in `alternatives`."""

    mode: Ints
    routes: Ints
    part_offsets: Ints
    kind: Ints
    route: Ints
    place: Ints
    window_s: Ints
    count: Ints
    alternatives: Ragged
    blockers: Ragged

    @property
    def parts(self) -> Ints:
        """Number of parts of each law."""
        return np.diff(self.part_offsets)


def flatten(laws: Sequence[Law]) -> Recipes:
    """Lay the laws end to end."""
    flat = [(number, part) for law in laws for number, route in enumerate(law.routes) for part in route]
    parts = [part for _, part in flat]
    lengths = [sum(map(len, law.routes)) for law in laws]
    return Recipes(
        mode=np.array([GRADED if law.graded else TEMPORAL if law.temporal else BOOLEAN for law in laws], np.int64),
        routes=np.array([len(law.routes) for law in laws], np.int64),
        part_offsets=ragged_offsets(np.array(lengths)),
        kind=np.array([KINDS.index(part.kind) for part in parts], np.int64),
        route=np.array([number for number, _ in flat], np.int64),
        place=np.concatenate([np.arange(length) for length in lengths]),
        window_s=np.array([part.window_s for part in parts], np.int64),
        count=np.array([part.count for part in parts], np.int64),
        alternatives=ragged([part.events for part in parts]),
        blockers=ragged([law.blockers for law in laws]),
    )


def ragged(lists: Sequence[Sequence[int]]) -> Ragged:
    """Lists of event ids laid end to end."""
    flat = [event for items in lists for event in items]
    return Ragged(ragged_offsets(np.array([len(items) for items in lists], np.int64)), np.array(flat, np.int32))
