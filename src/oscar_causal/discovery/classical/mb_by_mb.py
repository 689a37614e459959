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
    separators = separating_sets(tester, target, boundary, boundary)
    boundary[:] = [other for other in boundary if other not in separators]
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
    separators = separating_sets(tester, x, boundary, boundary)
    neighbours = [y for y in boundary if y not in separators]
    for y in neighbours:
        graph.connect(x, y)
    graph.settle(x)
    for spouse, separator in separators.items():
        children = [y for y in neighbours if _collides(tester, x, y, spouse, separator)]
        apart = separating_sets(tester, spouse, children, [x, *boundary])
        for child in children:
            if child not in apart:
                graph.direct(x, child)
                graph.direct(spouse, child)
    for place, one in enumerate(neighbours):
        apart = separating_sets(tester, one, neighbours[place + 1 :], boundary)
        for other, separator in apart.items():
            if _collides(tester, one, x, other, separator):
                graph.direct(one, x)
                graph.direct(other, x)


def _collides(tester: CiTester, a: int, middle: int, b: int, separator: tuple[int, ...]) -> bool:
    """Does adding `middle` to what separates a from b join them again?"""
    return middle not in separator and tester.related(a, b, (*separator, middle))


def separating_sets(tester: CiTester, a: int, others: list[int], pool: list[int]) -> dict[int, tuple[int, ...]]:
    """For each of the others that some set from the pool separates from a: the first such set, small ones first."""
    found: dict[int, tuple[int, ...]] = {}
    pool = [y for y in pool if y != a]
    for size in range(min(tester.config.max_given, len(pool)) + 1):
        for given in combinations(pool, size):
            asked = [y for y in others if y not in found and y not in given]
            if not asked and len(found) == len(others):
                return found
            found.update(dict.fromkeys(tester.separated(a, given, asked), given))
    return found


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
