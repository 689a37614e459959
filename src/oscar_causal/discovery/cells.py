"""What one sequence says about one event, sorted into a few cells: the alphabet of the two-groups model (`two_groups`).

Two measurements: the one-sided p-value of the one-shot test, and the response to a close look (`close_look`), a share
of P(label). Some events have only one of them, so there are three kinds of cells; each also knows the range of
P(label): where the model does not see the label, replacing an event cannot lower it. Which events were tested or looked
at says nothing by itself. Beside its cell an event has a *word*: what observed labels say of it here (`reading`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from oscar_causal.discovery.significance import SIDES

Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]

PROBABILITY_EDGES = (0.2, 0.8)
RESPONSE_EDGES = (0.05, 0.15, 0.4, 0.75)
P_VALUE_EDGES = (0.5, 0.1, 0.025, 0.005, 0.001)
RANGES, RESPONSES, P_VALUES = len(PROBABILITY_EDGES) + 1, len(RESPONSE_EDGES) + 1, len(P_VALUE_EDGES) + 1
TESTED, LOOKED, BOTH = range(3)
"""Kinds of cells."""
_SIZES = (RANGES * P_VALUES, RANGES * RESPONSES, RANGES * P_VALUES * RESPONSES)
FIRST = (0, _SIZES[0], _SIZES[0] + _SIZES[1])
"""The first cell of each kind."""
CELLS = sum(_SIZES)
ACTED_EDGES, ACTED = (0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97, 0.99), (0.0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.94, 0.98, 0.998)
OUTSIDE_EDGES, OUTSIDE = (0.015, 0.05, 0.2, 0.5), (0.011, 0.03, 0.1, 0.35, 0.9)
"""Edges and the values that stand for each bin."""
NO_WORD = 0
"""The word of an event whose label has no reading. Cell c with word w has the number c + w * CELLS."""


def one_sided(p_value: Float64, effect: Float64) -> Float64:
    """p-value of "keeping the event does not raise P(label)", from the two-sided one and the sign of the effect.

    >>> one_sided(np.array([0.02, 0.02]), np.array([0.5, -0.5])).tolist()
    [0.015, 0.995]
    """
    (_, raising), (_, lowering) = SIDES
    return np.where(effect > 0, p_value * raising, 1 - p_value * lowering)


def cells_of(probability: Float64, p_value: Float64, response: Float64) -> Int64:
    """The cell of each event: P(label), one-sided p-value (NaN = not tested), response (NaN = not looked at).

    Events with neither have cell -1.

    >>> cells_of(np.full(3, 0.9), np.array([0.0001, np.nan, np.nan]), np.array([np.nan, 0.9, np.nan])).tolist()
    [17, 32, -1]
    """
    at = np.searchsorted(PROBABILITY_EDGES, probability, side="right")
    tested, looked = ~np.isnan(p_value), ~np.isnan(response)
    small = P_VALUES - 1 - np.searchsorted(P_VALUE_EDGES[::-1], np.where(tested, p_value, 1.0), side="left")
    large = np.searchsorted(RESPONSE_EDGES, np.where(looked, response, 0.0), side="right")
    by_test, by_look = at * P_VALUES + small, at * RESPONSES + large
    both = FIRST[BOTH] + by_test * RESPONSES + large
    cells: Int64 = np.select(
        [tested & looked, tested, looked], [both, FIRST[TESTED] + by_test, FIRST[LOOKED] + by_look], -1
    )
    return cells


def word_of(acted: float, outside: float) -> int:
    """What the reading says of an event in this sequence (`reading`), as a number above 0.

    >>> [word_values(word_of(*said)) for said in ((0.995, 0.003), (0.0, 0.8))]
    [(0.998, 0.011), (0.0, 0.9)]
    """
    at = np.searchsorted(ACTED_EDGES, acted, side="right"), np.searchsorted(OUTSIDE_EDGES, outside, side="right")
    return 1 + int(at[0]) * len(OUTSIDE) + int(at[1])


def word_values(word: int) -> tuple[float, float]:
    """What a word stands for: the chance that the event acted, the share of labels from outside."""
    return ACTED[(word - 1) // len(OUTSIDE)], OUTSIDE[(word - 1) % len(OUTSIDE)]


def kinds() -> Int64:
    """The kind of each cell: (CELLS,)."""
    return np.repeat(np.arange(3), _SIZES).astype(np.int64)


def ranges() -> Int64:
    """The range of P(label) of each cell: (CELLS,)."""
    return np.concatenate([np.repeat(np.arange(RANGES), size // RANGES) for size in _SIZES]).astype(np.int64)


def p_value_bins() -> Int64:
    """The p-value bin of each cell, 0 = weakest evidence; 0 where it was not tested: (CELLS,)."""
    tested = np.tile(np.arange(P_VALUES), RANGES)
    both = np.tile(np.repeat(np.arange(P_VALUES), RESPONSES), RANGES)
    return np.concatenate([tested, np.zeros(_SIZES[LOOKED]), both]).astype(np.int64)


def response_bins() -> Int64:
    """The response bin of each cell, 0 = no response; 0 where it was not looked at: (CELLS,)."""
    rest = np.tile(np.arange(RESPONSES), (_SIZES[LOOKED] + _SIZES[BOTH]) // RESPONSES)
    return np.concatenate([np.zeros(_SIZES[TESTED]), rest]).astype(np.int64)


def is_tested() -> npt.NDArray[np.bool_]:
    """Which cells know a p-value."""
    tested: npt.NDArray[np.bool_] = kinds() != LOOKED
    return tested


def is_looked() -> npt.NDArray[np.bool_]:
    """Which cells know a response."""
    looked: npt.NDArray[np.bool_] = kinds() != TESTED
    return looked
