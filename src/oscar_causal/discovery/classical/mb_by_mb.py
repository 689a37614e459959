"""MB-by-MB: learn the structure around a target one Markov boundary at a time, until its edges have directions.

Wang, Zhou, Zhao and Geng, "Discovering and orienting the edges connected to a target variable in a DAG via a
sequential local learning approach", Computational Statistics & Data Analysis 77, 2014. Markov boundaries come from
IAMB; the structure inside one is a small PC search: an edge stays where no set of other members separates its ends.

A target known to be an *outcome* (it comes last and causes nothing in the table) needs no search for directions: its
neighbours are parents.
"""

from __future__ import annotations

from itertools import combinations

from oscar_causal.discovery.classical.found import Found, Role
from oscar_causal.discovery.classical.iamb import grow, shrink
from oscar_causal.discovery.classical.orientation import PartialGraph
from oscar_causal.discovery.classical.tester import CiTester, OutOfTime


def mb_by_mb(tester: CiTester, target: int, *, outcome: bool = False) -> Found:
    """The Markov boundary of `target` with roles. `outcome`: it is known to cause nothing in the table."""
    boundaries: dict[int, list[int]] = {target: []}
    graph = PartialGraph()
    complete = True
    try:
        if outcome:
            _learn_outcome(tester, target, boundaries[target], graph)
        else:
            _learn_outward(tester, target, boundaries, graph)
    except OutOfTime:
        complete = False
    return _result(target, boundaries[target], graph, complete)


def _learn_outcome(tester: CiTester, target: int, boundary: list[int], graph: PartialGraph) -> None:
    """The boundary of an outcome are the members that no set of the others separates from it; they point to it."""
    grow(tester, target, boundary)
    shrink(tester, target, boundary)
    for other in list(boundary):
        if separating_set(tester, target, other, [y for y in boundary if y != other]) is not None:
            boundary.remove(other)
    for other in boundary:
        graph.direct(other, target)


def _learn_outward(tester: CiTester, target: int, boundaries: dict[int, list[int]], graph: PartialGraph) -> None:
    """Take variables outward from the target along undirected edges until its own are all directed."""
    waiting, done = [target], set[int]()
    while waiting:
        x = waiting.pop(0)
        done.add(x)
        _learn_around(tester, x, boundaries.setdefault(x, []), graph)
        graph.apply_meek()
        if not graph.undirected(target):
            return
        near = _reachable(graph, target)
        waiting = [y for y in near if y not in done]


def _learn_around(tester: CiTester, x: int, boundary: list[int], graph: PartialGraph) -> None:
    """Find the Markov boundary of x, the edges at x, and the colliders that x takes part in."""
    grow(tester, x, boundary)
    shrink(tester, x, boundary)
    separators: dict[int, tuple[int, ...]] = {}
    for other in boundary:
        found = separating_set(tester, x, other, [y for y in boundary if y != other])
        if found is None:
            graph.connect(x, other)
        else:
            separators[other] = found
    graph.settle(x)
    neighbours = [y for y in boundary if y not in separators]
    for spouse, separator in separators.items():
        for child in neighbours:
            if _collides(tester, x, child, spouse, separator) and _joined(tester, spouse, child, [x, *boundary]):
                graph.direct(x, child)
                graph.direct(spouse, child)
    for one, other in combinations(neighbours, 2):
        found = separating_set(tester, one, other, [y for y in boundary if y not in (one, other)])
        if found is not None and _collides(tester, one, x, other, found):
            graph.direct(one, x)
            graph.direct(other, x)


def _collides(tester: CiTester, a: int, middle: int, b: int, separator: tuple[int, ...]) -> bool:
    """Does adding `middle` to what separates a from b join them again?"""
    return middle not in separator and tester.related(a, b, (*separator, middle))


def _joined(tester: CiTester, a: int, b: int, others: list[int]) -> bool:
    return separating_set(tester, a, b, [y for y in others if y not in (a, b)]) is None


def separating_set(tester: CiTester, a: int, b: int, others: list[int]) -> tuple[int, ...] | None:
    """The smallest set among `others` that separates a from b, or None."""
    for size in range(min(tester.config.max_given, len(others)) + 1):
        for given in combinations(others, size):
            if tester.separated(a, given, [b]):
                return given
    return None


def _reachable(graph: PartialGraph, target: int) -> list[int]:
    """Variables joined to the target by undirected edges, near ones first: only they can direct its edges."""
    found = [target]
    for x in found:
        found += [y for y in sorted(graph.undirected(x)) if y not in found]
    return found[1:]


def _result(target: int, boundary: list[int], graph: PartialGraph, complete: bool) -> Found:
    roles: dict[int, Role] = {}
    for x in boundary:
        if x in graph.parents(target):
            roles[x] = "parent"
        elif x in graph.children(target):
            roles[x] = "child"
        else:
            roles[x] = "undirected" if x in graph.adjacent(target) else "spouse"
    return Found(tuple(boundary), complete, roles)
