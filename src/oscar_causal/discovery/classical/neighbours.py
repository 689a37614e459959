"""Parents and children of one variable: who stays dependent on it given every small set of the others?

Two published orders of admission share one elimination step: HITON-PC admits by marginal association (Aliferis,
Tsamardinos and Statnikov 2003), max-min by the weakest association seen so far (Tsamardinos, Brown and Aliferis 2006).
Elimination asks all open candidates and all members at once for each conditioning set, which one pass over the counts
answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations

from oscar_causal.discovery.classical.tester import CiTester


@dataclass
class Neighbours:
    """The search state, complete at any time: members so far, and the set that separated each variable sent away."""

    target: int
    members: list[int] = field(default_factory=list)
    separators: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Variables never dependent on the target are not listed: the empty set separates them."""

    def separator(self, other: int) -> tuple[int, ...] | None:
        """The set that separates `other` from the target; None for a member."""
        return None if other in self.members else self.separators.get(other, ())


def hiton_pc(tester: CiTester, target: int, into: Neighbours | None = None) -> Neighbours:
    """Parents and children of `target`, admitted in the order of their marginal association."""
    found = into or Neighbours(target)
    open_ = tester.dependent(tester.scan(target))
    while open_:
        found.members.append(open_.pop(0))
        open_ = _eliminate(tester, found, open_, {})
    return found


def max_min_pc(tester: CiTester, target: int, into: Neighbours | None = None) -> Neighbours:
    """Parents and children of `target`, admitted in the order of the weakest association under any set asked so far."""
    found = into or Neighbours(target)
    scan = tester.scan(target)
    open_ = tester.dependent(scan)
    weakest = dict(zip(scan.found.candidates.tolist(), (-scan.found.log_p).tolist(), strict=True))
    while open_:
        best = max(open_, key=lambda candidate: weakest[candidate])
        open_.remove(best)
        found.members.append(best)
        open_ = _eliminate(tester, found, open_, weakest)
    return found


def _eliminate(tester: CiTester, found: Neighbours, open_: list[int], weakest: dict[int, float]) -> list[int]:
    """After an admission: send away whoever some set with the newcomer separates. Returns the candidates still open.

    `weakest` keeps the smallest strength of each candidate it lists.
    """
    newest = found.members[-1]
    for given in _sets_with(newest, found.members[:-1], tester.config.max_given):
        if not set(given) <= set(found.members):
            continue  # one of them has been sent away meanwhile
        asked = [x for x in (*open_, *found.members) if x not in given]
        sent, strength = tester.ask(found.target, given, asked)
        gone = set(sent)
        weakest.update({x: min(weakest[x], value) for x, value in strength.items() if x in weakest})
        found.separators.update(dict.fromkeys(gone, given))
        found.members[:] = [member for member in found.members if member not in gone]
        open_ = [candidate for candidate in open_ if candidate not in gone]
    return open_


def _sets_with(newest: int, others: list[int], most: int) -> Iterator[tuple[int, ...]]:
    """All sets of at most `most` members that hold the newcomer, small ones first."""
    for size in range(min(most, len(others) + 1)):
        for rest in combinations(others, size):
            yield (newest, *rest)
