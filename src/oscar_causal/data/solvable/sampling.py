"""Draws from a process: events, their times, labels and the hidden driver."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from oscar_causal.data.solvable.law import FloatArray, IntArray
from oscar_causal.data.solvable.tables import Tables


@dataclass(frozen=True)
class SolvableSample:
    """B drawn sequences."""

    event_ids: npt.NDArray[np.int32]
    """(B, L)"""
    times: FloatArray
    """Seconds from the first event, (B, L); gaps of at least one second, none inside a tie."""
    labels: npt.NDArray[np.bool_]
    """(B, Y)"""
    hidden: npt.NDArray[np.bool_]
    """State of the hidden driver (False without one), (B,)."""


def draw(tables: Tables, count: int, rng: np.random.Generator) -> SolvableSample:
    """Draw `count` sequences with times and labels."""
    length = tables.config.length
    driver = _choose(np.broadcast_to(tables.law.driver, (count, len(tables.law.driver))), rng)  # (B,)
    history = np.zeros(count, dtype=np.int64)
    state = np.full(count, tables.outcome.start)
    symbols = np.empty((count, length), dtype=np.int64)
    for i in range(length):
        drawn = _choose(tables.law.probs[i][driver, history], rng)
        symbols[:, i] = drawn
        history, state = tables.law.step[i][history, drawn], tables.state_step[i][state, drawn]
    probs = tables.outcome.probs[driver, state]  # (B, Y)
    labels = rng.random(probs.shape) < probs
    event_ids = _name_inert(tables, symbols, rng).astype(np.int32)
    gaps = 1 + rng.exponential(size=(count, length))
    gaps[:, [0, *tables.config.tied]] = 0
    return SolvableSample(event_ids, np.cumsum(gaps, axis=1), labels, driver == 1)


def _choose(probs: FloatArray, rng: np.random.Generator) -> IntArray:
    """One index per row of probabilities (B, K), by inversion."""
    below = np.cumsum(probs, axis=1)[:, :-1] <= rng.random((len(probs), 1))
    chosen: IntArray = below.sum(axis=1)
    return chosen


def _name_inert(tables: Tables, symbols: IntArray, rng: np.random.Generator) -> IntArray:
    """Turn the lump symbol into inert types drawn from their shares."""
    lumped = symbols == tables.relevant
    shares = np.broadcast_to(tables.law.within_inert, (int(lumped.sum()), len(tables.law.within_inert)))
    event_ids = symbols.copy()
    event_ids[lumped] += _choose(shares, rng)
    return event_ids
