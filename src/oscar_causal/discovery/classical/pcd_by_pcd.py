"""PCD-by-PCD: parents, children and some descendants of one variable after another, until the target's edges have
directions.

Yin, Zhou, Wang, He, Zheng and Geng, "Partial orientation and local structural learning of causal networks for
prediction", JMLR Workshop and Conference Proceedings 3, 2008. The PCD set of a variable comes from the max-min search;
an edge needs both ends in each other's set, which sends the mere descendants away.

A target known to be an *outcome* (it comes last and causes nothing in the table) has neither descendants nor children:
its own set is the answer, all parents.
"""

from __future__ import annotations

from itertools import combinations

from oscar_causal.discovery.classical.found import Found, Role
from oscar_causal.discovery.classical.neighbours import Neighbours, max_min_pc
from oscar_causal.discovery.classical.orientation import PartialGraph
from oscar_causal.discovery.classical.tester import CiTester, OutOfTime


def pcd_by_pcd(tester: CiTester, target: int, *, outcome: bool = False) -> Found:
    """Parents, children and spouses of `target` with roles. `outcome`: it is known to cause nothing in the table."""
    search = _Search(tester, target)
    complete = True
    try:
        if outcome:
            search.learn_outcome()
        else:
            search.learn_outward()
    except OutOfTime:
        complete = False
    return search.result(complete)


class _Search:
    def __init__(self, tester: CiTester, target: int) -> None:
        self.tester, self.target = tester, target
        self.graph = PartialGraph()
        self._sets: dict[int, Neighbours] = {}
        self._finished: set[int] = set()
        self._spouses: list[int] = []

    def learn_outcome(self) -> None:
        """The target's own set; everything in it points to the target."""
        for x in self._pcd(self.target).members:
            self.graph.direct(x, self.target)

    def learn_outward(self) -> None:
        """Take variables outward from the target along undirected edges until its own are all directed."""
        waiting, done = [self.target], set[int]()
        while waiting:
            x = waiting.pop(0)
            done.add(x)
            for y in self._neighbours(x):
                self.graph.connect(x, y)
            self.graph.settle(x)
            self._find_colliders(x)
            self.graph.apply_meek()
            if not self.graph.undirected(self.target):
                break
            waiting += sorted(y for y in self.graph.undirected(x) if y not in done and y not in waiting)
        self._find_spouses()

    def result(self, complete: bool) -> Found:
        """What is known now; before the symmetry check is through, the target's own set stands in."""
        members = [x for x in self._members(self.target) if x in self.graph.adjacent(self.target)]
        if self.target not in self._finished or not complete and not members:
            members = self._members(self.target)
        parents, children = self.graph.parents(self.target), self.graph.children(self.target)
        roles: dict[int, Role] = {
            x: "parent" if x in parents else "child" if x in children else "undirected" for x in members
        }
        spouses = [x for x in self._spouses if x not in roles]
        roles.update(dict.fromkeys(spouses, "spouse"))
        return Found((*members, *spouses), complete, roles)

    def _members(self, x: int) -> list[int]:
        return list(self._sets[x].members) if x in self._sets else []

    def _pcd(self, x: int) -> Neighbours:
        if x not in self._finished:
            self._sets[x] = Neighbours(x)  # kept if time runs out on the way
            max_min_pc(self.tester, x, self._sets[x])
            self._finished.add(x)
        return self._sets[x]

    def _neighbours(self, x: int) -> list[int]:
        """Those in the set of x that have x in theirs."""
        return [y for y in self._pcd(x).members if x in self._pcd(y).members]

    def _find_colliders(self, x: int) -> None:
        """Colliders with x at an end or in the middle, from the sets known so far."""
        near = sorted(self.graph.adjacent(x))
        for one, other in combinations(near, 2):
            self._collide(one, x, other)
        for middle in near:
            for other in self._pcd(middle).members:
                if other != x and middle in self._pcd(other).members:
                    self.graph.connect(middle, other)
                    self._collide(x, middle, other)

    def _collide(self, one: int, middle: int, other: int) -> None:
        separator = self._pcd(one).separator(other)
        if separator is None:
            separator = self._pcd(other).separator(one)
        if separator is None or middle in separator:
            return
        if self.tester.related(one, other, (*separator, middle)):
            self.graph.direct(one, middle)
            self.graph.direct(other, middle)

    def _find_spouses(self) -> None:
        for child in sorted(self.graph.children(self.target)):
            others = self.graph.parents(child) - {self.target} - self.graph.adjacent(self.target)
            self._spouses += sorted(others - set(self._spouses))
