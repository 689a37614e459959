"""What one sequence says about one event, sorted into a few cells: the alphabet of the two-groups model (`two_groups`).

Three measurements: the one-sided p-value of the one-shot test; its *grade*, how strongly slopes and measured fall speak
for the event (`grade_of`); and the response to a close look (`close_look`), a share of P(label). Events that were not
tested have the response alone, some have no response, so there are three kinds of cells; each also knows the range of
P(label): where the model does not see the label, replacing an event cannot lower it. Beside its cell an event has a
*word*: what observed labels say of it here (`reading`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from oscar_causal.discovery.intervention import FALL
from oscar_causal.discovery.significance import SIDES

Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]

PROBABILITY_EDGES = (0.2, 0.8)
RESPONSE_EDGES = (0.05, 0.15, 0.4, 0.75)
P_VALUE_EDGES = (0.5, 0.1, 0.025, 0.005, 0.001)
SHARE_EDGES = (0.7, 0.95)
RANGES, RESPONSES, P_VALUES = len(PROBABILITY_EDGES) + 1, len(RESPONSE_EDGES) + 1, len(P_VALUE_EDGES) + 1
UNTESTED, UNCONVINCING = 0, 1
GRADES = 3 + len(SHARE_EDGES)
"""Not tested; tested, and nothing speaks for it; then by share."""
TESTED, LOOKED, BOTH = range(3)
"""Kinds of cells."""
_SHAPES = ((RANGES, P_VALUES, GRADES - 1, 1), (RANGES, 1, 1, RESPONSES), (RANGES, P_VALUES, GRADES - 1, RESPONSES))
"""Of each kind: ranges, p-values, grades, responses."""
_SIZES = tuple(int(np.prod(shape)) for shape in _SHAPES)
FIRST = (0, _SIZES[0], _SIZES[0] + _SIZES[1])
"""The first cell of each kind."""
CELLS = sum(_SIZES)
OLD_CELLS = 123
"""Of the alphabet that knew no grades."""
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


def grade_of(p_value: float | None, share: float | None, fall: float) -> int:
    """How strongly the one-shot evidence speaks for an event; `fall`: see `intervention.measured_fall`.

    Where nothing ranked the events by slopes (no share), the test stands in for them.

    >>> [grade_of(*told) for told in ((None, None, 0.0), (0.3, 0.9, 0.1), (0.3, 0.5, 0.4), (0.3, 1.0, 0.9))]
    [0, 1, 2, 4]
    """
    if p_value is None:
        return UNTESTED
    speaks = fall >= FALL and (p_value <= P_VALUE_EDGES[2] if share is None else share > 0)
    return UNCONVINCING + int(np.searchsorted(SHARE_EDGES, share or 0.0, side="right")) + 1 if speaks else UNCONVINCING


def cells_of(probability: Float64, p_value: Float64, response: Float64, grade: Int64) -> Int64:
    """The cell of each event: P(label), one-sided p-value (NaN = not tested), response (NaN = not looked at), grade.

    Events with neither p-value nor response have cell -1.

    >>> p_value, response = np.array([0.0001, np.nan, np.nan]), np.array([np.nan, 0.9, np.nan])
    >>> cells_of(np.full(3, 0.9), p_value, response, np.array([4, 0, 0])).tolist()
    [71, 86, -1]
    """
    at = np.searchsorted(PROBABILITY_EDGES, probability, side="right")
    tested, looked = ~np.isnan(p_value), ~np.isnan(response)
    small = P_VALUES - 1 - np.searchsorted(P_VALUE_EDGES[::-1], np.where(tested, p_value, 1.0), side="left")
    large = np.searchsorted(RESPONSE_EDGES, np.where(looked, response, 0.0), side="right")
    strong, none = np.maximum(grade - UNCONVINCING, 0), np.zeros_like(at)
    of_kind = [
        FIRST[kind] + np.ravel_multi_index(axes, _SHAPES[kind])
        for kind, axes in enumerate(((at, small, strong, none), (at, none, none, large), (at, small, strong, large)))
    ]
    cells: Int64 = np.select([tested & looked, tested, looked], [of_kind[BOTH], of_kind[TESTED], of_kind[LOOKED]], -1)
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


def _axis(number: int) -> Int64:
    """Where each cell lies on one axis of its kind: (CELLS,)."""
    return np.concatenate([np.indices(shape)[number].ravel() for shape in _SHAPES]).astype(np.int64)


def ranges() -> Int64:
    """The range of P(label) of each cell: (CELLS,)."""
    return _axis(0)


def p_value_bins() -> Int64:
    """The p-value bin of each cell, 0 = weakest evidence; 0 where it was not tested: (CELLS,)."""
    return _axis(1)


def grades() -> Int64:
    """The grade of each cell: (CELLS,)."""
    return np.where(is_tested(), _axis(2) + UNCONVINCING, UNTESTED)


def response_bins() -> Int64:
    """The response bin of each cell, 0 = no response; 0 where it was not looked at: (CELLS,)."""
    return _axis(3)


def without_grades() -> Int64:
    """The number of each cell in the alphabet of older populations, which knew no grades: (CELLS,)."""
    shapes = [(a, p, r) for a, p, _, r in _SHAPES]
    first = np.cumsum([0, *(int(np.prod(shape)) for shape in shapes)])
    axes = ranges(), p_value_bins(), response_bins()
    return np.concatenate([
        first[kind] + np.ravel_multi_index(tuple(axis[kinds() == kind] for axis in axes), shape)
        for kind, shape in enumerate(shapes)
    ])  # fmt: skip


def is_tested() -> npt.NDArray[np.bool_]:
    """Which cells know a p-value."""
    tested: npt.NDArray[np.bool_] = kinds() != LOOKED
    return tested


def is_looked() -> npt.NDArray[np.bool_]:
    """Which cells know a response."""
    looked: npt.NDArray[np.bool_] = kinds() != TESTED
    return looked
