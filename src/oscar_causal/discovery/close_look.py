"""A close look at a few events of one sequence: take each out alone, and where that changes nothing, out in pairs.

At most a handful of forward passes: every candidate alone; then, for each label, all candidates that changed little at
once (if P(label) stays, none of them stands in for another); only where it fell, pairs of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from oscar_causal.density.interface import LabelDensity
from oscar_causal.discovery.contexts import Bool, Float64, Int64
from oscar_causal.discovery.subject import Subject, without

LITTLE = 0.4
"""A candidate whose absence takes less than this share of P(label) may have a stand-in."""
FLOOR = 1e-6


@dataclass(frozen=True)
class CloseLook:
    """What taking candidates out did to each label."""

    candidates: Int64
    """(C,) indices into the types of the sequence."""
    alone: Float64
    """(C, Y') fall of P(label) without the candidate."""
    responses: Float64
    """(C, Y') the largest fall the candidate makes, alone or with one other candidate already out, as a share of
    P(label)."""
    contexts: int


def close_look(
    model: LabelDensity, subject: Subject, labels: Int64, reference: Float64, candidates: Int64, budget: int
) -> CloseLook:
    """Measure the candidates with at most `budget` contexts; `reference` (Y',) is P(label) with nothing replaced.

    There are at most `budget` candidates. What pairs leave of the budget buys second draws.
    """
    size = len(candidates)
    if not size:
        return CloseLook(candidates, np.zeros((0, len(labels))), np.zeros((0, len(labels))), 0)
    out = without(model, subject, candidates[:, None], labels, "look alone")  # (C, Y')
    little = reference - out < LITTLE * reference  # (C, Y')
    pairs, spent = _pairs(model, subject, labels, reference, candidates, little, budget - size)
    both = without(model, subject, [candidates[list(p)] for p in pairs], labels, "look pairs") if pairs else out[:0]
    left = min(size, budget - size - spent - len(pairs))
    alone = reference - out
    if left > 0:
        again = without(model, subject, candidates[:left, None], labels, "look again")
        alone[:left] = reference - (out[:left] + again) / 2
    responses = alone.copy()
    for k, (a, b) in enumerate(pairs):
        responses[a] = np.maximum(responses[a], reference - alone[b] - both[k])
        responses[b] = np.maximum(responses[b], reference - alone[a] - both[k])
    share = responses / np.maximum(reference, FLOOR)
    return CloseLook(candidates, alone, share, size + spent + len(pairs) + max(left, 0))


def _pairs(
    model: LabelDensity,
    subject: Subject,
    labels: Int64,
    reference: Float64,
    candidates: Int64,
    little: Bool,
    budget: int,
) -> tuple[list[tuple[int, int]], int]:
    """Pairs of candidates worth taking out together, and the contexts spent to know."""
    groups = [np.flatnonzero(little[:, j]) for j in range(len(labels))]
    asked = [j for j, group in enumerate(groups) if len(group) > 1][: max(budget, 0)]
    if not asked:
        return [], 0
    left = without(model, subject, [candidates[groups[j]] for j in asked], labels, "look groups")  # (asked, Y')
    chosen: list[tuple[int, int]] = []
    for row, j in enumerate(asked):
        if left[row, j] < (1 - LITTLE) * reference[j]:
            chosen += [pair for pair in combinations(groups[j].tolist(), 2) if pair not in chosen]
    return chosen[: max(budget - len(asked), 0)], len(asked)
