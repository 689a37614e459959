"""More candidates than a truth table holds: find sufficient sets one after the other, then what may stand in for what.

Asks "do these events together bring the label?" only. A minimal sufficient set is found by adding candidates in order
until the label comes: the last one added is needed. An event that can take the place of a member belongs to the
member's clause. What lies outside all clauses is searched for further, independent sets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from oscar_causal.data.rules import And, Event, Not, Or, Rule, all_of, any_of, shortest
from oscar_causal.discovery.contexts import Bool, Float64

CUT = 0.5
MOST_SETS = 6
"""Independent sufficient sets searched for, at most."""
Respond = Callable[[Bool], Float64]
"""Which candidates are inserted (N, k) -> mean P(label) (N,)."""


@dataclass(frozen=True)
class Stepwise:
    """A rule found by steps, and how often it predicts random subsets rightly."""

    rule: Rule | None
    agreement: float


def search(names: Sequence[str], respond: Respond, rng: np.random.Generator, *, checks: int = 64) -> Stepwise:
    """The rule over candidates that raise the label.

    Exact for an AND of ORs in which each event stands once, and for an OR of such with no event in common; for other
    rules the agreement on random subsets shows that it is not.

    >>> from oscar_causal.data.rules import format_rule
    >>> wanted = lambda sets: (sets[:, 0] & (sets[:, 1] | sets[:, 2])).astype(float)
    >>> format_rule(search(("A", "B", "C"), wanted, np.random.default_rng(0)).rule)
    '(B | C) & A'
    """
    count, left = len(names), list(range(len(names)))
    routes: list[Rule] = []
    while left and len(routes) < MOST_SETS:
        members = _sufficient(count, left, respond)
        if members is None:
            break
        clauses = _clauses(count, left, members, respond)
        routes.append(all_of(any_of(Event(names[i]) for i in clause) for clause in clauses))
        used = {i for clause in clauses for i in clause}
        left = [i for i in left if i not in used]
    if not routes:
        return Stepwise(None, 1.0)
    rule = shortest(any_of(routes))
    sets = rng.random((checks, count)) < rng.uniform(0.2, 0.9, (checks, 1))
    said = np.array([_truth(rule, {name for name, on in zip(names, row, strict=True) if on}) for row in sets])
    return Stepwise(rule, float((said == (respond(sets) > CUT)).mean()))


def _sufficient(count: int, among: list[int], respond: Respond) -> list[int] | None:
    """A minimal sufficient set among these candidates; None when all together do not suffice."""
    members: list[int] = []
    pool = list(among)
    while True:
        sets = np.zeros((len(pool) + 1, count), bool)
        sets[:, members] = True
        for size in range(1, len(pool) + 1):
            sets[size:, pool[size - 1]] = True
        enough = np.flatnonzero(respond(sets) > CUT)
        if not len(enough):
            return None
        size = int(enough[0])
        if size == 0:
            return members or None
        members.append(pool[size - 1])
        pool = pool[: size - 1]


def _clauses(count: int, among: list[int], members: list[int], respond: Respond) -> list[list[int]]:
    """For each member the candidates that can take its place, itself first."""
    others = [i for i in among if i not in members]
    if not others:
        return [[member] for member in members]
    sets = np.zeros((len(members), len(others), count), bool)
    sets[:, :, members] = True
    for row, member in enumerate(members):
        sets[row, :, member] = False
        sets[row, np.arange(len(others)), others] = True
    enough = respond(sets.reshape(-1, count)).reshape(len(members), len(others)) > CUT
    return [[member, *(others[i] for i in np.flatnonzero(row))] for member, row in zip(members, enough, strict=True)]


def _truth(rule: Rule, present: set[str]) -> bool:
    match rule:
        case Event(name):
            return name in present
        case Not(item):
            return not _truth(item, present)
        case And(items):
            return all(_truth(item, present) for item in items)
        case Or(items):
            return any(_truth(item, present) for item in items)
    raise TypeError(f"expected a rule of presence, got {rule}")
