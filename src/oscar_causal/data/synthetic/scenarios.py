"""Fault scenarios: which happen in the sequences of a block, when, and which of them just miss their label."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oscar_causal.data.synthetic.config import BLOCK_SEQUENCES
from oscar_causal.data.synthetic.recipes import BLOCKED_SHARE, GRADED
from oscar_causal.data.synthetic.streams import Floats, Ints, Mask, poisson_table
from oscar_causal.data.synthetic.subjects import Subjects
from oscar_causal.data.synthetic.world import World


@dataclass(frozen=True)
class Scenarios:
    """The scenarios of a block, sorted by sequence and label, at most one of each pair."""

    row: Ints
    label: Ints
    law: Ints
    near_miss: Mask
    blocked: Mask
    """Near misses that are complete but for a blocker."""
    begin_s: Floats
    end_s: Floats

    def __len__(self) -> int:
        return len(self.row)


def draw_scenarios(world: World, rng: np.random.Generator, subjects: Subjects, spans_s: Ints) -> Scenarios:
    """Which scenarios happen where and when."""
    labels = world.config.labels
    pairs = []
    for state, rates in enumerate(world.scenario_rates):
        rows = np.flatnonzero(subjects.driven == bool(state))
        total = np.cumsum(rates)
        counts = np.searchsorted(poisson_table(float(total[-1])), rng.random(BLOCK_SEQUENCES)[rows], side="right")
        drawn = np.searchsorted(total, rng.random(int(counts.sum())) * total[-1], side="right")
        pairs.append(np.repeat(rows, counts) * labels + np.minimum(drawn, labels - 1))
    row, label = np.divmod(np.unique(np.concatenate(pairs)), labels)
    law = np.where(subjects.start_s[row] < world.change_s[label], label, world.later[label])
    share = world.config.near_misses / (1 + world.config.near_misses)
    near_miss = rng.random(len(row)) < share
    blockable = (world.recipes.blockers.lengths[law] > 0) & (world.recipes.mode[law] != GRADED)
    blocked = near_miss & blockable & (rng.random(len(row)) < BLOCKED_SHARE)
    begin = 0.55 * rng.random(len(row)) * spans_s[row]
    end = begin + (0.3 + 0.68 * rng.random(len(row))) * (spans_s[row] - begin)
    return Scenarios(row, label, law, near_miss, blocked, begin, end)


def moment_within(rng: np.random.Generator, scenarios: Scenarios, owner: Ints) -> Ints:
    """A whole second anywhere in each of the given scenarios."""
    begin, end = scenarios.begin_s[owner], scenarios.end_s[owner]
    return (begin + rng.random(len(owner)) * (end - begin)).astype(np.int64)
