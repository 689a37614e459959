"""The cheapest cover against trying every selection."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from oscar_causal.data.rules.cover import cheapest_cover

sets_and_costs = st.lists(st.tuples(st.integers(1, 255), st.integers(1, 4)), min_size=1, max_size=9)


@settings(deadline=None)
@given(pairs=sets_and_costs)
def test_no_selection_is_cheaper(pairs):
    sets, costs = zip(*pairs, strict=True)
    wanted = 0
    for members in sets:
        wanted |= members
    chosen = cheapest_cover(wanted, sets, costs)
    covered = 0
    for i in chosen:
        covered |= sets[i]
    assert covered == wanted
    cheapest = min(
        sum(costs[i] for i in some)
        for size in range(len(sets) + 1)
        for some in combinations(range(len(sets)), size)
        if all(any(sets[i] >> bit & 1 for i in some) for bit in range(8) if wanted >> bit & 1)
    )
    assert sum(costs[i] for i in chosen) == cheapest


def test_a_ring_needs_the_solver():
    ring = [1 << i | 1 << (i + 1) % 7 for i in range(7)]
    assert len(cheapest_cover(0b1111111, ring, [1] * 7)) == 4
