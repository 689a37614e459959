"""The rule of a boundary whose features are known: which of them together suffice, by the labels themselves.

A boundary (`discovery.refining`) names events, orders and counts, not how they combine. The sequences with the label
show it: a set of features that was met with the label, and hardly ever without, is a route. Routes join one after the
other, each time the one that explains most. Nothing is left out of a route unless it was seen to be missing: a feature
that was there every single time stays in, for no data tell that it is not needed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oscar_causal.data.rules import Not, Rule, all_of, any_of, shortest
from oscar_causal.discovery.contexts import Bool, Int64
from oscar_causal.discovery.reading import Features
from oscar_causal.graph.rules.mining import Mined
from oscar_causal.graph.rules.observed import BLAME

MOST_FEATURES = 62
"""A pattern is one number."""
MOST_PATTERNS = 500
"""Patterns, the most frequent with the label, that may be routes."""
LEAST_SEEN = 2
"""Sequences with the label that show a route."""
ROUTE_GAIN = 0.02
"""Gain, as a share of the sequences with the label, that a further route must bring."""
PART_COST = 0.002
"""What each feature of a route costs, likewise: of routes that explain the same, the shorter one."""
LEAST_BLOCKED = 3
"""Sequences in which a route holds beside a feature that is to be called a blocker."""


@dataclass(frozen=True)
class _Met:
    """Patterns of a boundary that were met: (P,) each."""

    raising: Int64
    lowering: Int64
    number: Int64
    came: Int64

    def only(self, which: Bool) -> _Met:
        return _Met(self.raising[which], self.lowering[which], self.number[which], self.came[which])

    def gain(self, said: Bool) -> float:
        """Explained sequences less the blame for claimed ones, as a share of those with the label."""
        right = int(self.came[said].sum())
        return (right - BLAME * (int(self.number[said].sum()) - right)) / max(int(self.came.sum()), 1)

    def frequency(self, said: Bool) -> float:
        """Of the label."""
        return float(self.came[said].sum() / max(int(self.number[said].sum()), 1))


def boundary_rule(mined: Mined, label: str, features: Features) -> Rule | None:
    """The rule over these features that the observed labels speak for; None where there is none.

    >>> from oscar_causal.data.sequences import from_records
    >>> rows = [("A B", 1), ("A B", 1), ("A", 0), ("B", 0), ("C", 1), ("C", 1), ("C X", 0), ("C X", 0), ("C X", 0)]
    >>> data = from_records(
    ...     {"sequence_id": str(k), "events": t.split(), "times": [*range(len(t.split()))], "labels": ["y"] * y}
    ...     for k, (t, y) in enumerate(rows)
    ... )
    >>> from oscar_causal.data.rules import format_rule
    >>> format_rule(boundary_rule(Mined(data), "y", Features(("A", "B", "C"), ("X",))))
    '(C | (A & B)) & !X'
    """
    if not 0 < len(features.atoms) <= MOST_FEATURES:
        return None
    met, atoms, raising = _met(mined, label, features), features.atoms, len(features.raising)
    routes = _routes(met.only(met.lowering == 0))
    if not routes:
        return None
    rule = any_of(all_of(atom for k, atom in enumerate(atoms) if route >> k & 1) for route in routes)
    blockers = [atom for k, atom in enumerate(atoms[raising:], start=raising) if _blocks(met, routes, 1 << k)]
    return shortest(all_of([rule, *(Not(atom) for atom in blockers)]))


def _met(mined: Mined, label: str, features: Features) -> _Met:
    code = np.zeros(len(mined.dataset), np.int64)
    for k, atom in enumerate(features.atoms):
        code[mined.index.holds(atom)] |= 1 << k
    codes, which = np.unique(code, return_inverse=True)
    number = np.bincount(which, minlength=len(codes))
    came = np.bincount(which[mined.with_label(label)], minlength=len(codes))
    up = (1 << len(features.raising)) - 1
    return _Met(codes & up, codes & ~up, number, came)


def _routes(met: _Met) -> list[int]:
    """Sets of raising features, as numbers, one after the other while they gain; none holds another."""
    shown = (met.raising > 0) & (met.came >= LEAST_SEEN) & (2 * met.came >= met.number)
    tried = met.raising[shown][np.argsort(-met.came[shown], kind="stable")][:MOST_PATTERNS]
    covers = (met.raising & tried[:, None]) == tried[:, None]  # (routes, patterns)
    costs = PART_COST * np.array([route.bit_count() for route in tried.tolist()])
    chosen: list[int] = []
    covered, score = np.zeros(len(met.raising), bool), 0.0
    while len(tried):
        gains = np.array([met.gain(covered | mask) for mask in covers])
        best = int(np.argmax(gains - costs))
        if gains[best] < score + ROUTE_GAIN:
            break
        chosen.append(int(tried[best]))
        covered, score = covered | covers[best], float(gains[best])
    return [route for route in chosen if not any(other != route and other & route == other for other in chosen)]


def _blocks(met: _Met, routes: list[int], blocker: int) -> bool:
    """Is the label less than half as frequent where a route holds beside this feature alone?"""
    holds = np.logical_or.reduce([(met.raising & route) == route for route in routes])
    beside, free = holds & (met.lowering == blocker), holds & (met.lowering == 0)
    return int(met.number[beside].sum()) >= LEAST_BLOCKED and met.frequency(beside) < met.frequency(free) / 2
