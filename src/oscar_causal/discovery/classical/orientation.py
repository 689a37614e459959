"""A partly directed graph that grows edge by edge, and the rules that direct more of it (Meek 1995)."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations


class PartialGraph:
    """Edges between columns, each undirected or directed. Directing an edge twice keeps the first direction.

    Two variables count as not adjacent only once all edges of one of them are known (`settle`): in a graph that still
    grows, a missing edge may just not have been looked for.
    """

    def __init__(self) -> None:
        self._adjacent: dict[int, set[int]] = defaultdict(set)
        self._directed: set[tuple[int, int]] = set()
        self._settled: set[int] = set()

    def settle(self, a: int) -> None:
        """All edges of a have been added."""
        self._settled.add(a)

    def connect(self, a: int, b: int) -> None:
        """Add an undirected edge unless there is one."""
        self._adjacent[a].add(b)
        self._adjacent[b].add(a)

    def direct(self, a: int, b: int) -> bool:
        """Make the edge a → b (adding it if need be) unless it is directed already; says whether anything changed."""
        if (a, b) in self._directed or (b, a) in self._directed:
            return False
        self.connect(a, b)
        self._directed.add((a, b))
        return True

    def adjacent(self, a: int) -> set[int]:
        """All neighbours."""
        return set(self._adjacent[a])

    def parents(self, a: int) -> set[int]:
        """Neighbours with an edge into a."""
        return {b for b in self._adjacent[a] if (b, a) in self._directed}

    def children(self, a: int) -> set[int]:
        """Neighbours with an edge from a."""
        return {b for b in self._adjacent[a] if (a, b) in self._directed}

    def undirected(self, a: int) -> set[int]:
        """Neighbours whose edge has no direction yet."""
        return self._adjacent[a] - self.parents(a) - self.children(a)

    def apply_meek(self) -> None:
        """Direct whatever follows without making a new collider or a cycle, until nothing more does."""
        while any(self._direct_edge(a, b) for a in list(self._adjacent) for b in self.undirected(a)):
            pass

    def _direct_edge(self, a: int, b: int) -> bool:
        """Direct a - b as a → b when one of Meek's first three rules says so."""
        return self._must(a, b) and self.direct(a, b)

    def _must(self, a: int, b: int) -> bool:
        if any(self._apart(c, b) for c in self.parents(a)):
            return True  # c → a - b: b → a would make a new collider
        if self.children(a) & self.parents(b):
            return True  # a → c → b: b → a would close a cycle
        between = self.undirected(a) & self.parents(b)
        return any(self._apart(c, d) for c, d in combinations(between, 2))  # a - c → b ← d - a

    def _apart(self, a: int, b: int) -> bool:
        return b not in self._adjacent[a] and (a in self._settled or b in self._settled)
