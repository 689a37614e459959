"""Constructors normalise and refuse; canonical text; names by polarity."""

from __future__ import annotations

import copy
import pickle

import pytest

from oscar_causal.data.rules import (
    And,
    AtLeast,
    Event,
    EventIndex,
    Not,
    Or,
    Then,
    all_of,
    any_of,
    atoms,
    chain_steps,
    equivalent,
    evaluate,
    event_names,
    format_rule,
    negated_names,
    parse,
    positive_names,
    positive_part,
    reasons,
    shortest,
)
from oscar_causal.data.rules.tree import MAX_DEPTH
from oscar_causal.errors import DataError

A, B, C, D = map(Event, "ABCD")


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (And((A, Or((B, C)), Not(D))), "A & (B | C) & !D"),
        (Or((And((A, B)), Not(And((C, D))))), "(A & B) | !(C & D)"),
        (Then(A, B, 3600), "A then B within 3600s"),
        (And((Then(Then(A, B), C, 0.5), AtLeast(D, 3))), "(A then B then C within 0.5s) & (D >= 3)"),
        (Not(Then(A, B)), "!(A then B)"),
        (Not(Not(A)), "!!A"),
        (And((Event("then"), Event("P0-1"), Event("1A"), Event(""))), '"then" & "P0-1" & "1A" & ""'),
        (Or((Event('say "hi"\n'), Event("🚗"), Event("Öl"))), '"say \\"hi\\"\\n" | "🚗" | Öl'),
    ],
)
def test_canonical_text(rule, text):
    assert format_rule(rule) == text
    assert parse(text) == rule


def test_nested_joins_are_flat_and_chains_lean_left():
    assert And((A, And((B, C)))) == And((A, B, C)) == And([A, B, C])
    assert Or((Or((A, B)), And((C, D)))).items == (A, B, And((C, D)))
    assert Then(A, Then(B, C, 2.0), 1.0) == Then(Then(A, B, 1.0), C, 2.0)
    assert chain_steps(Then(Then(A, B, 1), Then(C, D, 3), 2)) == (("A", "B", "C", "D"), (1.0, 2.0, 3.0))


def test_rules_are_values():
    rule = parse("A & (B then C within 2s) & !(D >= 2)")
    same = parse("A & (B then C within 2s) & !(D >= 2)")
    assert rule == same
    assert hash(rule) == hash(same)
    assert pickle.loads(pickle.dumps(rule)) == rule == copy.deepcopy(rule)
    assert pickle.loads(pickle.dumps(rule)).depth == rule.depth
    with pytest.raises(AttributeError):
        rule.items = ()
    assert And((A, B)) != Or((A, B)) != And((B, A))


def test_names_by_polarity():
    rule = parse("B & !(A | !(C then B)) & D >= 2 & !(E & !!F)")
    assert event_names(rule) == ("B", "A", "C", "D", "E", "F")
    assert positive_names(rule) == ("B", "C", "D")
    assert negated_names(rule) == ("A", "E", "F")
    assert [(format_rule(atom), sign) for atom, sign in atoms(parse("!(A & !B)"))] == [("A", False), ("B", True)]
    assert negated_names(parse("A | !A")) == positive_names(parse("A | !A")) == ("A",)


def test_single_items_stand_for_themselves():
    assert all_of([A]) == any_of([A]) == A
    assert all_of([A, B]) == And((A, B))


@pytest.mark.parametrize(
    "make",
    [
        lambda: And((A,)),
        lambda: Or(()),
        lambda: Not("A"),
        lambda: And((A, "B")),
        lambda: Event(3),
        lambda: Event("\ud800"),
        lambda: Then(Not(A), B),
        lambda: Then(A, AtLeast(B, 2)),
        lambda: Then(A, B, 0),
        lambda: Then(A, B, -1),
        lambda: Then(A, B, float("inf")),
        lambda: Then(A, B, float("nan")),
        lambda: Then(A, B, True),
        lambda: AtLeast("A", 2),
        lambda: AtLeast(A, 0),
        lambda: AtLeast(A, 2.0),
        lambda: AtLeast(A, True),
        lambda: format_rule("A"),
    ],
)
def test_impossible_nodes_are_refused_in_one_line(make):
    with pytest.raises(DataError, match="expected") as caught:
        make()
    assert "\n" not in str(caught.value)


def deepest_rule():
    rule = A
    for number in range((MAX_DEPTH - 1) // 2):
        rule = Not(Or((rule, Event(f"E{number}"))))
    while rule.depth < MAX_DEPTH:
        rule = Not(rule)
    return And((rule.item, A))


def use_everything(rule):
    """Every recursive function of the package; the rule repeats a name and has more than eight."""
    index = EventIndex([0, 3], [0, 1, 2], [0.0, 1.0, 2.0], {"A": 0, "E1": 1, "E7": 2})
    assert parse(format_rule(rule)) == rule
    assert hash(rule) == hash(parse(format_rule(rule)))
    assert pickle.loads(pickle.dumps(rule)) == rule
    assert len(event_names(rule)) == 1 + (MAX_DEPTH - 1) // 2
    assert evaluate(rule, index).tolist() == [bool(reasons(rule, index, [0])[0])]
    assert equivalent(rule, Not(rule.items[0])) is False
    assert equivalent(rule, shortest(rule)) is True
    positive_part(rule)


def test_depth_is_bounded_and_the_deepest_rule_works_far_down_the_stack():
    def far_down(frames):
        return use_everything(deepest_rule()) if frames == 0 else far_down(frames - 1)

    far_down(150)
    with pytest.raises(DataError, match="nested levels"):
        Not(deepest_rule())
