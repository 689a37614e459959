"""Tokens of launches are counted as they are launched, and nothing stays behind of the counting."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np

from oscar_causal.density import compiled
from oscar_causal.score.bench.speed import INTERVENTION
from oscar_causal.score.bench.workload import Sizes, make_workload


def test_launches_have_room_for_all_that_is_asked(script: Callable[[str], ModuleType]) -> None:
    sizes = Sizes(preset="tiny", events=60, labels=5, sequences=2, mean_length=28.0, sd_length=3.0, longest=40)
    own = compiled.Launch.run, compiled.Launch.fill
    work = make_workload(sizes, "cpu")
    found = script("bench_launches").counts(work, np.arange(2), every=1)
    assert (compiled.Launch.run, compiled.Launch.fill) == own
    assert set(found) == {"end", "events", "slopes"}
    longest = int(work.data.lengths.max()) + 1
    for kind, part in found.items():
        assert part["launched"] >= part["real"] > 0, kind
        assert part["ratio"] == part["launched"] / part["real"]
    assert found["end"]["real"] <= 2 * INTERVENTION.intervention.contexts * longest
