"""Removing one type at a time: who is needed, who blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from oscar_causal.graph.rules.laboratory import encode_for
from oscar_causal.graph.rules.removals import Removal, blocking_events, needed_events, remove_each

RULES = {"y": "A & B & !D"}


def test_removals_show_what_the_rule_says(garage: Any) -> None:
    fleet = garage.fleet(RULES, count=80)
    model = garage.model(fleet, RULES)
    encoded, name = encode_for(model, fleet), model.vocabulary.name
    kinds = set()
    for k in range(80):
        present = set(fleet.events_of(k))
        removal = remove_each(model, encoded, k, 0, sequence_id=f"s{k}", seed=0)
        needed, blocking = needed_events([removal], 0.3), blocking_events([removal], 0.3)
        holds = {"A", "B"} <= present and "D" not in present
        blocked = {"A", "B", "D"} <= present
        assert {name(e) for e in needed} == ({"A", "B"} if holds else set())
        assert [name(e) for e in blocking] == (["D"] if blocked else [])
        kinds.add((holds, blocked))
    assert len(kinds) == 3


def test_stray_hits_do_not_count() -> None:
    clear = Removal(0.9, np.array([3, 4]), np.array([0.1, 0.8]))
    stray = Removal(0.9, np.array([3, 5]), np.array([0.1, 0.2]))
    weak = Removal(0.6, np.array([6]), np.array([0.45]))
    absent = Removal(0.2, np.array([7]), np.array([0.0]))
    assert needed_events([clear] * 5 + [stray], 0.3) == [3]
    assert needed_events([clear] * 5 + [stray], 0.3, once=True) == [3, 5]
    assert needed_events([weak, weak, absent, absent], 0.3) == []


def test_a_blocker_must_show_twice_where_it_can() -> None:
    lift = Removal(0.1, np.array([3]), np.array([0.9]))
    other = Removal(0.1, np.array([4]), np.array([0.1]))
    there = Removal(0.9, np.array([3]), np.array([0.95]))
    assert blocking_events([lift, there], 0.3) == [3]
    assert blocking_events([lift, other], 0.3) == []
    assert blocking_events([lift, lift, other], 0.3) == [3]
