"""The cheapest set cover: which prime implicants to keep. Exact, by reductions first and integer programming last."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def cheapest_cover(wanted: int, sets: Sequence[int], costs: Sequence[int]) -> list[int]:
    """Numbers of the sets (bit masks) that together cover the bits of `wanted` at the lowest total cost.

    Every wanted bit lies in some set, and no cost is negative.

    >>> cheapest_cover(0b1111, [0b0011, 0b1100, 0b0110], [1, 1, 1])
    [0, 1]
    """
    chosen: list[int] = []
    left = list(range(len(sets)))
    while wanted:
        forced = _forced(wanted, [sets[i] for i in left])
        if forced:
            chosen += [left[place] for place in forced]
            for place in forced:
                wanted &= ~sets[left[place]]
        kept = _undominated(wanted, left, sets, costs)
        if not forced and len(kept) == len(left):
            chosen += _by_programming(wanted, kept, sets, costs)
            break
        left = kept
    return sorted(chosen)


def _forced(wanted: int, sets: Sequence[int]) -> list[int]:
    """Places of the sets that alone hold some wanted bit."""
    once = twice = 0
    for members in sets:
        twice |= once & members
        once |= members
    single = once & ~twice & wanted
    return [place for place, members in enumerate(sets) if members & single]


def _undominated(wanted: int, left: Sequence[int], sets: Sequence[int], costs: Sequence[int]) -> list[int]:
    """Drop sets that cover no more than another which costs no more (of twins the first stays)."""
    kept: list[int] = []
    order = sorted(left, key=lambda i: (-(sets[i] & wanted).bit_count(), costs[i], i))
    for i in order:
        members = sets[i] & wanted
        if members and not any(members & ~sets[j] == 0 and costs[j] <= costs[i] for j in kept):
            kept.append(i)
    return sorted(kept)


def _by_programming(wanted: int, left: Sequence[int], sets: Sequence[int], costs: Sequence[int]) -> list[int]:
    from scipy.optimize import Bounds, LinearConstraint, milp  # 0.2 s to import, and rarely needed

    bits = [bit for bit in range(wanted.bit_length()) if wanted >> bit & 1]
    member = np.array([[sets[i] >> bit & 1 for i in left] for bit in bits], dtype=np.float64)  # (bits, sets)
    member = np.unique(member, axis=0)
    weights = np.array([costs[i] for i in left], dtype=np.float64)
    answer = milp(
        weights, integrality=np.ones(len(left)), bounds=Bounds(0, 1), constraints=LinearConstraint(member, lb=1)
    )
    if not answer.success:
        raise RuntimeError(f"set cover: the solver stopped: {answer.message}")
    return [left[place] for place in np.flatnonzero(answer.x > 0.5).tolist()]
