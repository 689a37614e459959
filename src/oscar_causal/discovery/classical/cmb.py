"""CMB: the Markov boundary of a target, and which of its neighbours are causes and which are effects.

Gao and Ji, "Local causal discovery of direct causes and effects", NIPS 2015. Parents and children come from HITON-PC,
spouses from HITON-MB (Aliferis, Tsamardinos and Statnikov 2003). Each pair (X, Y) of neighbours is looked at with and
without the target T, given a set Z:

- independent without T, dependent with it: T is a collider, both are parents;
- dependent without, independent with it: T lies between them, at most one of them is a parent ("apart");
- otherwise the pair says nothing yet ("open") and is looked at again with Z = the Markov boundary of X.

What is still undecided is asked of the neighbours themselves, outward, no variable twice.

A target known to be an *outcome* (it comes last and causes nothing in the table) has no children, hence no spouses, and
all its neighbours are parents: HITON-PC alone then gives the whole answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal

from oscar_causal.discovery.classical.found import Found, Role
from oscar_causal.discovery.classical.neighbours import Neighbours, hiton_pc
from oscar_causal.discovery.classical.tester import CiTester, OutOfTime

Pair = tuple[int, int]


@dataclass
class _Identities:
    """What the neighbours of one variable are to it, as far as known."""

    roles: dict[int, Literal["parent", "child"]] = field(default_factory=dict)
    apart: set[Pair] = field(default_factory=set)
    open: set[Pair] = field(default_factory=set)

    def settle(self) -> None:
        """Whoever stands apart from a parent is a child."""
        for x, y in self.apart:
            if self.roles.get(x) == "parent":
                self.roles.setdefault(y, "child")
            if self.roles.get(y) == "parent":
                self.roles.setdefault(x, "child")


def cmb(tester: CiTester, target: int, *, outcome: bool = False) -> Found:
    """The Markov boundary of `target` with roles. `outcome`: it is known to cause nothing in the table."""
    search = _Search(tester)
    complete = True
    try:
        search.candidates(target)
        if not outcome:
            search.spouses(target)
            search.identify(target, asked=set())
    except OutOfTime:
        complete = False
    return search.result(target, complete, "parent" if outcome else "undirected")


class _Search:
    def __init__(self, tester: CiTester) -> None:
        self.tester = tester
        self._neighbours: dict[int, Neighbours] = {}
        self._finished: set[int] = set()
        self._spouses: dict[int, dict[int, int]] = {}
        self._identities: dict[int, _Identities] = {}

    def candidates(self, x: int) -> Neighbours:
        """What HITON-PC finds around x: parents, children, and maybe other descendants; learnt once."""
        if x not in self._finished:
            self._neighbours[x] = Neighbours(x)  # kept if time runs out on the way
            hiton_pc(self.tester, x, self._neighbours[x])
            self._finished.add(x)
        return self._neighbours[x]

    def neighbours(self, x: int) -> list[int]:
        """Parents and children of x: those that find x in turn."""
        return [y for y in self.candidates(x).members if x in self.candidates(y).members]

    def spouses(self, x: int) -> dict[int, int]:
        """Spouse of x -> their common child: dependent on x once the child is added to what separated them."""
        if x not in self._spouses:
            found = self._spouses[x] = {}
            mine = self.neighbours(x)
            for child in mine:
                for other in self.neighbours(child):
                    separator = self._separator(x, other)
                    if other == x or other in found or separator is None or child in separator:
                        continue
                    if self.tester.related(other, x, (*separator, child)):
                        found[other] = child
        return self._spouses[x]

    def _separator(self, x: int, y: int) -> tuple[int, ...] | None:
        """What was found to separate x from y, from either side."""
        found = self.candidates(x).separator(y)
        return self.candidates(y).separator(x) if found is None else found

    def identify(self, x: int, asked: set[int]) -> _Identities:
        """Tell the parents of x from its children, asking neighbours outward where x alone cannot tell."""
        asked.add(x)
        known = self._identities[x] = _Identities()
        mine = self.neighbours(x)
        for pair in combinations(mine, 2):
            self._look(x, pair, (), known)
        for one, other in sorted(known.open):
            boundary = {*self.neighbours(one), *self.spouses(one)} - {x, other, one}
            self._look(x, (one, other), tuple(sorted(boundary)), known)
        for child in self.spouses(x).values():
            known.roles.setdefault(child, "child")
        known.settle()
        for y in mine:
            if y not in known.roles and y not in asked:
                self._ask_neighbour(x, y, known, asked)
        return known

    def result(self, target: int, complete: bool, role: Role) -> Found:
        """What is known now; neighbours of which nothing is known get `role`."""
        members = list(self._neighbours[target].members) if target in self._neighbours else []
        members = [x for x in members if x not in self._finished or target in self._neighbours[x].members]
        roles: dict[int, Role] = dict.fromkeys(members, role)
        if target in self._identities:
            roles.update({x: role for x, role in self._identities[target].roles.items() if x in roles})
        spouses = [x for x in self._spouses.get(target, {}) if x not in roles]
        roles.update(dict.fromkeys(spouses, "spouse"))
        return Found((*members, *spouses), complete, roles)

    def _look(self, x: int, pair: Pair, given: tuple[int, ...], known: _Identities) -> None:
        without = self.tester.related(pair[0], pair[1], given)
        within = self.tester.related(pair[0], pair[1], (*given, x))
        if without == within:
            known.open.add(pair)
            return
        known.open.discard(pair)
        if within:
            known.roles.update(dict.fromkeys(pair, "parent"))
        else:
            known.apart.add(pair)

    def _ask_neighbour(self, x: int, y: int, known: _Identities, asked: set[int]) -> None:
        """If y takes x for its child, y is a parent of x; if for its parent, a child."""
        theirs = self.identify(y, asked).roles.get(x)
        if theirs == "child":
            known.roles[y] = "parent"
        elif theirs == "parent":
            known.roles[y] = "child"
        known.settle()
