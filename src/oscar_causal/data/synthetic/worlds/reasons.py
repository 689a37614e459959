"""Why a label came in one sequence: necessary and contingent causes, inhibitors, neutral types; by definition.

P(x) is the world's own probability, x-S the sequence without any occurrence of the types S, delta the smallest fall
that counts. t is a *necessary* cause if P(x) - P(x-t) >= delta; a *contingent* one if it is not necessary but for some
set W of other present types |P(x-W) - P(x)| <= delta and P(x-W) - P(x-W-t) >= delta, where W holds no blocker: no type
whose removal raises P by delta in some context. *Inhibitors* are the same with the sign reversed. *Neutral*: the
largest such fall lies in [delta / 2, delta): neither right nor wrong.

Contexts are all subsets of the present types up to `EXHAUSTIVE` of them, beyond that sets of at most `LARGEST_SET`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np

from oscar_causal.data.synthetic.worlds.occurrences import Bool, Float, Int

DELTA = 0.05
EXHAUSTIVE = 10
LARGEST_SET = 3
_ROUNDING = 1e-9
"""Falls of exactly delta count, whatever the last bit of the subtraction says."""


@dataclass(frozen=True)
class Reason:
    """The part that one present type plays for one label in one sequence."""

    type: int
    """Index among the present types."""
    role: str
    """cause, blocker (an inhibitor) or neutral."""
    necessary: bool
    contingency: tuple[int, ...]
    """W: what has to be gone before it matters; empty when necessary."""
    fall: float
    """P(x-W) - P(x-W-t); negative for an inhibitor."""


@lru_cache(maxsize=64)
def subsets(present: int) -> tuple[int, ...]:
    """Bit masks of the removed types, the empty set first, smaller sets before larger ones."""
    most = present if present <= EXHAUSTIVE else LARGEST_SET
    return tuple(
        sum(1 << i for i in chosen) for size in range(most + 1) for chosen in combinations(range(present), size)
    )


def reasons(probs: Float, present: int, delta: float = DELTA) -> list[Reason]:
    """Roles of the types 0 ... present-1; `probs` holds P of the sequence without `subsets(present)[k]`, for each k.

    >>> either = [0.9, 0.9, 0.9, 0.01]  # with both, without the first, without the second, without both
    >>> [(r.type, r.role, r.necessary, r.contingency) for r in reasons(np.array(either), 2)]
    [(0, 'cause', False, (1,)), (1, 'cause', False, (0,))]
    """
    table = _table(present)
    falls = np.where(table.without >= 0, probs[:, None] - probs[table.without], np.nan)  # (contexts, present)
    unchanged = np.abs(probs - probs[0]) <= delta + _ROUNDING
    found = []
    for kind in range(present):
        for sign, role in ((1, "cause"), (-1, "blocker")):
            best = _largest(sign * falls, unchanged, table, kind, delta)
            if best is not None:
                found.append(Reason(kind, role, best[0] == 0, table.members(best[0]), sign * best[1]))
    return _one_each(found, delta)


@dataclass(frozen=True)
class _Subsets:
    removed: Bool
    """(contexts, present)."""
    without: Int
    """(contexts, present): the context with this type removed too; -1 where it is gone already or not looked at."""

    def members(self, context: int) -> tuple[int, ...]:
        return tuple(int(i) for i in np.flatnonzero(self.removed[context]))


@lru_cache(maxsize=64)
def _table(present: int) -> _Subsets:
    masks = subsets(present)
    index = {mask: k for k, mask in enumerate(masks)}
    without = [[-1 if m >> t & 1 else index.get(m | 1 << t, -1) for t in range(present)] for m in masks]
    removed = [[bool(m >> t & 1) for t in range(present)] for m in masks]
    shape = (len(masks), present)
    return _Subsets(np.array(removed, bool).reshape(shape), np.array(without, np.int64).reshape(shape))


def _largest(falls: Float, unchanged: Bool, table: _Subsets, kind: int, delta: float) -> tuple[int, float] | None:
    """The smallest context where removing the type lowers P by delta, else the largest fall; None: below delta / 2."""
    least = delta - _ROUNDING
    blockers = np.nanmin(falls, axis=0, initial=0.0) <= -least
    allowed = unchanged & ~(table.removed & blockers).any(axis=1) & ~np.isnan(falls[:, kind])
    allowed[0] = True
    own = np.where(allowed, falls[:, kind], -np.inf)
    enough = np.flatnonzero(own >= least)
    at = int(enough[0]) if len(enough) else int(np.argmax(own))
    return (at, float(own[at])) if own[at] >= delta / 2 - _ROUNDING else None


def _one_each(found: list[Reason], delta: float) -> list[Reason]:
    """One role a type: necessary before contingent, a cause before an inhibitor, any role before neutral."""
    least = delta - _ROUNDING

    def order(reason: Reason) -> tuple[int, bool, bool]:
        return (reason.type, abs(reason.fall) < least, not reason.necessary)

    first: dict[int, Reason] = {}
    for reason in sorted(found, key=order):
        if reason.type not in first:
            neutral = abs(reason.fall) < least
            first[reason.type] = Reason(reason.type, "neutral", False, (), reason.fall) if neutral else reason
    return list(first.values())


def mattering(prob_of: Callable[[Bool], Float], occurrences: int, delta: float = DELTA) -> list[int]:
    """Which occurrences of a cause mattered: each that suffices alone, else each whose absence costs delta, else all.

    `prob_of` gives P for rows of kept occurrences (K, occurrences), everything else as in the context of the verdict.
    """
    each = np.eye(occurrences, dtype=bool)
    probs = prob_of(np.concatenate([np.ones((1, occurrences), bool), each, ~each]))
    whole, alone, absent = probs[0], probs[1 : occurrences + 1], probs[occurrences + 1 :]
    for chosen in (alone >= whole - delta - _ROUNDING, absent <= whole - delta + _ROUNDING):
        if chosen.any():
            return [int(i) for i in np.flatnonzero(chosen)]
    return list(range(occurrences))
