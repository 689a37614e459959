"""IAMB: grow a Markov boundary by the strongest conditional association, then shrink it.

Tsamardinos, Aliferis and Statnikov, "Algorithms for large scale Markov blanket discovery", FLAIRS 2003.
"""

from __future__ import annotations

from oscar_causal.discovery.classical.found import Found
from oscar_causal.discovery.classical.tester import CiTester, OutOfTime


def iamb(tester: CiTester, target: int) -> Found:
    """The Markov boundary of `target`.

    The candidates of one growing step are one family of tests. With Bonferroni the chance that a target unrelated to
    everything gets any member is at most alpha. Shrinking asks about each member by itself.
    """
    boundary: list[int] = []
    try:
        grow(tester, target, boundary)
        shrink(tester, target, boundary)
    except OutOfTime:
        return Found(tuple(boundary), complete=False)
    return Found(tuple(boundary), complete=True)


def grow(tester: CiTester, target: int, boundary: list[int]) -> None:
    """Add the strongest candidate given the boundary, until none is left that rejects."""
    while (best := tester.strongest(tester.scan(target, boundary))) is not None:
        boundary.append(best)


def shrink(tester: CiTester, target: int, boundary: list[int]) -> None:
    """Drop members that add nothing to the others, first come first asked."""
    for member in list(boundary):
        rest = [other for other in boundary if other != member]
        if tester.separated(target, rest, [member]):
            boundary.remove(member)
