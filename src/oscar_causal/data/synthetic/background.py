"""The events of a block that mean nothing: bursts of long-tailed codes, with repeats and cascades."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oscar_causal.data.sequences import ragged_offsets
from oscar_causal.data.synthetic.streams import Ints, Mask, below, gap_table, look_up, span_table
from oscar_causal.data.synthetic.world import DAY_S, World

SPANS_S = span_table(21 * DAY_S, 0.8, least=2 * DAY_S)
"""How long sequences last: three weeks in the median."""
GAPS_S = gap_table(25.0, zeros=0.3)
"""Seconds between neighbours in a burst; three tenths are written in the same second."""
TIME_BITS = 36
"""Times are whole seconds below 2 ** TIME_BITS, so that (row, time) fits in one integer."""


@dataclass(frozen=True)
class Events:
    """Events of a block, in any order: sequence, event type, whole seconds from the start."""

    row: Ints
    event: Ints
    time_s: Ints


def draw_background(world: World, rng: np.random.Generator, lengths: Ints, spans_s: Ints) -> Events:
    """Draw `lengths[i]` background events for each sequence i."""
    row = np.repeat(np.arange(len(lengths)), lengths)
    first = np.zeros(len(row), bool)
    first[ragged_offsets(lengths)[:-1]] = True  # every sequence has at least one background event
    opens = first | (rng.random(len(row)) < 1 / world.config.bursts)
    opening = np.flatnonzero(opens)
    burst = np.cumsum(opens) - 1
    begin_s = below(rng, spans_s[row[opening]])
    walked = np.cumsum(np.where(opens, 0, look_up(GAPS_S, rng, len(row))))
    time_s = begin_s[burst] + walked - walked[opening][burst]
    return Events(row, _draw_types(world, rng, opens), time_s)


def _draw_types(world: World, rng: np.random.Generator, opens: Mask) -> Ints:
    """Fresh long-tailed draws; repeats copy the event before, cascades take its follower, never across bursts."""
    config, count = world.config, len(opens)
    event = np.searchsorted(world.background, rng.random(count) * world.background[-1], side="right")
    event = np.minimum(event, config.event_types - 1)
    u = rng.random(count)
    follows = ~opens & (u < config.repeats + config.cascades)
    repeats = u < config.repeats
    chain = _run_lengths(follows)
    for depth in range(1, int(chain.max(initial=0)) + 1):
        at = np.flatnonzero(chain == depth)
        before = event[at - 1]
        event[at] = np.where(repeats[at], before, world.follower_of[before])
    return np.asarray(event, np.int64)


def _run_lengths(flags: Mask) -> Ints:
    """For each place, how many set flags end there without a gap."""
    places = np.arange(1, len(flags) + 1)
    last_unset = np.maximum.accumulate(np.where(flags, 0, places))
    return places - last_unset


def snap(background: Events, row: Ints, wanted_s: Ints) -> Ints:
    """The time of the first background event at or after the wanted one in each row (the wanted one if none is).

    Scenario events thereby stand inside bursts and cannot be told by their loneliness.
    """
    keys = np.sort((background.row << TIME_BITS) + background.time_s)
    at = np.minimum(np.searchsorted(keys, (row << TIME_BITS) + wanted_s), len(keys) - 1)
    same = keys[at] >> TIME_BITS == row
    return np.where(same & (keys[at] >= (row << TIME_BITS) + wanted_s), keys[at] & ((1 << TIME_BITS) - 1), wanted_s)
