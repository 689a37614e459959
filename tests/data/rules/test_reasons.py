"""Reasons against brute force over all subsets of the present events."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from oscar_causal.data.rules import (
    AtLeast,
    EventIndex,
    Then,
    atoms,
    chain_steps,
    event_names,
    negated_names,
    parse,
    positive_names,
    reasons,
)
from oscar_causal.errors import DataError


def subsets(names):
    return [frozenset(chosen) for size in range(len(names) + 1) for chosen in combinations(sorted(names), size)]


def brute_force(kit, rule, sequence):
    """{cause: necessary}, straight from the definition: minimal sets that carry the rule whatever the others do."""
    present = set(sequence.events) & set(event_names(rule))
    true_at = {kept: kit.holds(rule, sequence.keep(set(kept))) for kept in subsets(present)}
    if not true_at[frozenset(present)]:
        return {}
    enough = [kept for kept in true_at if all(value for more, value in true_at.items() if kept <= more)]
    minimal = [kept for kept in enough if not any(other < kept for other in enough)]
    return {name: not true_at[frozenset(present - {name})] for name in set().union(*minimal)}


def takes_part(kit, atom, name, sequence):
    """The positions of `name` that help the atom, by trying all combinations; empty when it does not hold."""
    if not kit.holds(atom, sequence):
        return set()
    if not isinstance(atom, Then):
        return {i for i, event in enumerate(sequence.events) if event == name}
    steps = chain_steps(atom)[0]
    return {places[k] for places in kit.chains(atom, sequence) for k, step in enumerate(steps) if step == name}


def check_against_brute_force(kit, rule, sequence):
    found = reasons(rule, kit.index([sequence]), [0])[0]
    causes = {reason.event: reason.necessary for reason in found if reason.role == "cause"}
    assert causes == brute_force(kit, rule, sequence)
    listed = [reason.event for reason in found]
    assert listed == [name for name in event_names(rule) if name in listed]
    for reason in found:
        sign = reason.role == "cause"
        parts = [
            takes_part(kit, a, reason.event, sequence)
            for a, s in atoms(rule)
            if s is sign and reason.event in names_of(a)
        ]
        assert reason.positions
        assert list(reason.positions) == sorted(set(reason.positions))
        assert set(reason.positions) <= set().union(*parts)
        if len(parts) == 1:
            assert set(reason.positions) == parts[0]
    return found


def names_of(atom):
    return (atom.event.name,) if isinstance(atom, AtLeast) else chain_steps(atom)[0]


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_causes_and_necessity_of_any_rule(kit, data):
    rule = data.draw(kit.rules(kit.letters, chains=True, max_leaves=9))
    check_against_brute_force(kit, rule, data.draw(kit.sequences(kit.letters, max_size=10)))


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_causes_of_boolean_rules_where_all_events_are_present(kit, data):
    """Everything present: many alternatives, names of both polarities, the hardest case for minimal sets."""
    letters = "ABCDEFGH"
    rule = data.draw(kit.rules(letters, chains=False, max_leaves=12))
    sequence = kit.Timed(tuple(letters), tuple(map(float, range(8))))
    found = reasons(rule, kit.index([sequence], letters=letters), [0])[0]
    causes = {reason.event: reason.necessary for reason in found if reason.role == "cause"}
    assert causes == brute_force(kit, rule, sequence)


@settings(deadline=None)
@given(data=st.data())
def test_blockers_are_present_events_that_the_rule_only_negates(kit, data):
    rule = data.draw(kit.rules(kit.letters, chains=True))
    sequence = data.draw(kit.sequences(kit.letters))
    assume(kit.holds(rule, sequence))
    blocking = {n for atom, _ in atoms(rule) if kit.holds(atom, sequence) for n in names_of(atom)}
    expected = blocking & set(negated_names(rule)) - set(positive_names(rule))
    found = [reason for reason in reasons(rule, kit.index([sequence]), [0])[0] if reason.role == "blocker"]
    assert {reason.event for reason in found} == expected
    assert not any(reason.necessary for reason in found)


@settings(deadline=None)
@given(data=st.data())
def test_a_sequence_has_the_same_reasons_alone_and_in_a_batch(kit, data):
    rule = data.draw(kit.rules(kit.letters, chains=True))
    sequences = data.draw(st.lists(kit.sequences(kit.letters), min_size=1, max_size=6))
    rows = data.draw(st.lists(st.integers(0, len(sequences) - 1), max_size=8))
    together = reasons(rule, kit.index(sequences), rows)
    assert together == [reasons(rule, kit.index([sequences[row]]), [0])[0] for row in rows]


def short(kit, text, events, times=None):
    sequence = kit.Timed(tuple(events), tuple(times or map(float, range(len(events)))))
    found = check_against_brute_force(kit, parse(text), sequence)
    return [(r.event, r.positions, r.role, r.necessary) for r in found]


@pytest.mark.parametrize(
    ("text", "events", "expected"),
    [
        ("A & (B | C) & !D", "ACA", [("A", (0, 2), "cause", True), ("C", (1,), "cause", True)]),
        (
            "A & (B | C) & !D",
            "ABC",
            [("A", (0,), "cause", True), ("B", (1,), "cause", False), ("C", (2,), "cause", False)],
        ),
        ("A | (B & !D)", "ABD", [("A", (0,), "cause", True), ("D", (2,), "blocker", False)]),
        ("A & (B | !C)", "AB", [("A", (0,), "cause", True)]),  # C's absence already suffices
        ("!A | B", "C", []),
        ("A & B", "AC", []),
        ("(A & B) | (!A & B)", "AB", [("B", (1,), "cause", True)]),
        ("A | (A & B)", "AB", [("A", (0,), "cause", True)]),
        ("A then B", "BABA", [("A", (1,), "cause", True), ("B", (2,), "cause", True)]),
        ("(A then B) | C", "BAC", [("C", (2,), "cause", True)]),  # A and B stand by in the wrong order
        ("(A then B) | (A & C)", "BAAB", [("A", (1, 2), "cause", True), ("B", (3,), "cause", True)]),
        ("A then B then A", "ABCA", [("A", (0, 3), "cause", True), ("B", (1,), "cause", True)]),
        ("A >= 2 & !(B >= 2)", "ABA", [("A", (0, 2), "cause", True)]),
        ("A | !(B >= 2)", "ABB", [("A", (0,), "cause", True), ("B", (1, 2), "blocker", False)]),
    ],
)
def test_examples(kit, text, events, expected):
    assert short(kit, text, events) == expected


def test_positions_of_a_chain_are_those_of_complete_chains_only(kit):
    found = short(kit, "A then B within 2s then C", "AABACB", [0.0, 4.0, 5.0, 5.0, 9.0, 9.0])
    assert found == [("A", (1,), "cause", True), ("B", (2,), "cause", True), ("C", (4,), "cause", True)]


def test_a_satisfied_branch_decides_which_occurrences_take_part(kit):
    """The presence of A in the unsatisfied branch does not light up all its occurrences."""
    found = short(kit, "(A then B) | (A & C)", "ABA")
    assert found[0] == ("A", (0,), "cause", True)


def wide_rule_and_index(groups, size):
    names = [[f"E{g}_{i}" for i in range(size)] for g in range(groups)]
    rule = parse(" & ".join(f"({' | '.join(group)})" for group in names))
    flat = [name for group in names for name in group]
    index = EventIndex([0, len(flat)], np.arange(len(flat)), None, {name: i for i, name in enumerate(flat)})
    return rule, index, flat


def test_wide_rules_need_no_enumeration():
    rule, index, flat = wide_rule_and_index(15, 5)
    found = reasons(rule, index, [0])[0]
    assert [reason.event for reason in found] == flat
    assert not any(reason.necessary for reason in found)
    repeated = parse(f"({' | '.join(flat)}) & {flat[7]} & (!{flat[0]} | {flat[1]})")
    found = {reason.event: reason.necessary for reason in reasons(repeated, index, [0])[0]}
    assert found == {flat[7]: True, flat[1]: True}


def test_a_rule_too_entangled_is_refused_in_one_line():
    names = [f"E{i}" for i in range(400)]
    rule = parse(" & ".join(f"({a} | {b})" for a, b in zip(names, names[1:], strict=False)))
    index = EventIndex([0, 400], np.arange(400), None, {name: i for i, name in enumerate(names)})
    with pytest.raises(DataError, match="too entangled"):
        reasons(rule, index, [0])


def test_three_thousand_pairs(kit):
    rng = np.random.default_rng(0)
    offsets = np.arange(1025) * 150
    event_ids = rng.integers(0, 400, offsets[-1]).astype(np.int32)
    index = EventIndex(offsets, event_ids, np.arange(offsets[-1], dtype=float), {f"E{i}": i for i in range(400)})
    picks = rng.integers(0, 400, (300, 4))
    rules = [parse(f"E{a} & (E{b} | (E{c} then E{d}))") for a, b, c, d in picks]
    found = [reasons(rule, index, np.arange(10)) for rule in rules]
    assert sum(map(len, found)) == 3000
    assert any(reason for rows in found for reason in rows)
