"""IAMB: grow a Markov boundary by the strongest conditional association, then shrink it.

Tsamardinos, Aliferis and Statnikov, "Algorithms for large scale Markov blanket discovery", FLAIRS 2003.
"""

from __future__ import annotations

from oscar_causal.discovery.classical.tester import OutOfTime, Tester


def iamb(tester: Tester, target: int) -> tuple[list[int], bool]:
    """The Markov boundary of `target` and whether the search came to its end.

    The candidates of one growing step are one family of tests, the members of the boundary in shrinking another. With
    Bonferroni the chance that a target unrelated to everything gets any member is at most alpha.
    """
    boundary: list[int] = []
    try:
        _grow(tester, target, boundary)
        _shrink(tester, target, boundary)
    except OutOfTime:
        return boundary, False
    return boundary, True


def _grow(tester: Tester, target: int, boundary: list[int]) -> None:
    while (best := tester.strongest(tester.scan(target, boundary))) is not None:
        boundary.append(best)


def _shrink(tester: Tester, target: int, boundary: list[int]) -> None:
    for member in list(boundary):
        rest = [other for other in boundary if other != member]
        if tester.redundant(member, target, rest):
            boundary.remove(member)
