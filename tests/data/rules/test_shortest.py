"""Shortest forms: equal in meaning, never longer, no longer than sympy's, irredundant beyond eight atoms."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oscar_causal.data.rules import And, EventIndex, Not, Or, evaluate, format_rule, literal_count, parse, shortest
from oscar_causal.data.rules.shortest import _prune


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(A & B) | (A & C)", "A & (B | C)"),
        ("(A | B) & (A | C)", "A | (B & C)"),
        ("A & (A | B)", "A"),
        ("A & B | A & !B", "A"),
        ("!!A", "A"),
        ("!(!A | !B)", "A & B"),
        ("A >= 1 & B", "A & B"),
        ("(A & B) | (!A & C) | (B & C)", "(A & B) | (!A & C)"),
        ("A & (B | C) & !D", "A & (B | C) & !D"),
        ("(A then B) & C | (A then B) & D", "(A then B) & (C | D)"),
        ("A | !A", "A | !A"),
        ("(A then B) & !(A then B) & C & B", "C & !C"),
        ("A & B | C & D | A & D | C & B", "(A | C) & (B | D)"),
    ],
)
def test_examples(text, expected):
    assert format_rule(shortest(parse(text))) == expected


def all_subsets(letters):
    """A batch with one sequence per set of present letters."""
    chosen = [[i for i, bit in enumerate(bits) if bit] for bits in product((0, 1), repeat=len(letters))]
    offsets = np.cumsum([0, *map(len, chosen)])
    event_ids = np.array([i for present in chosen for i in present], dtype=np.int32)
    return EventIndex(offsets, event_ids, None, {letter: i for i, letter in enumerate(letters)})


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_equal_in_meaning_and_never_longer(kit, data):
    rule = data.draw(kit.rules("ABCDEFGH", chains=False, max_leaves=14))
    form = shortest(rule)
    universe = all_subsets("ABCDEFGH")
    assert (evaluate(form, universe) == evaluate(rule, universe)).all()
    assert literal_count(form) <= literal_count(rule)
    assert shortest(form) == form
    if 0 < evaluate(rule, universe).sum() < 256:
        assert not any((evaluate(less, universe) == evaluate(rule, universe)).all() for less in without_one_item(form))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_chains_and_counts_keep_their_meaning(kit, data):
    rule = data.draw(kit.rules("ABC", chains=True))
    sequences = data.draw(st.lists(kit.sequences("ABC"), min_size=5, max_size=10))
    form = shortest(rule)
    index = kit.index(sequences)
    assert (evaluate(form, index) == evaluate(rule, index)).all()
    assert literal_count(form) <= literal_count(rule)


def test_no_longer_than_sympy():
    sympy = pytest.importorskip("sympy")
    letters, rng = "ABCD", np.random.default_rng(3)
    symbols = sympy.symbols(list(letters))
    for _ in range(25):
        minterms = [bits for bits in product((0, 1), repeat=4) if rng.random() < 0.5]
        if not 0 < len(minterms) < 16:
            continue
        terms = [
            And(tuple(parse(x if b else f"!{x}") for x, b in zip(letters, bits, strict=True))) for bits in minterms
        ]
        form = shortest(Or(tuple(terms)) if len(terms) > 1 else terms[0])
        theirs = [sympy.simplify_logic(sympy.SOPform(symbols, minterms), form=f, force=True) for f in ("dnf", "cnf")]
        lengths = [sum(leaf.is_Symbol for leaf in sympy.preorder_traversal(formula)) for formula in theirs]
        assert literal_count(form) <= min(lengths)


def without_one_item(rule):
    """Every rule with one item of one AND or OR left out."""
    if isinstance(rule, Not):
        yield from (Not(smaller) for smaller in without_one_item(rule.item))
    elif isinstance(rule, And | Or):
        for i, item in enumerate(rule.items):
            rest = (*rule.items[:i], *rule.items[i + 1 :])
            yield rest[0] if len(rest) == 1 else type(rule)(rest)
            for smaller in without_one_item(item):
                yield type(rule)((*rule.items[:i], smaller, *rule.items[i + 1 :]))


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_irredundant_beyond_eight_atoms(kit, data):
    letters = "ABCDEFGHIJ"
    parts = [data.draw(kit.rules(letters, chains=False, max_leaves=8)) for _ in range(4)]
    kind = data.draw(st.sampled_from([And, Or]))
    rule = kind((*parts, data.draw(st.sampled_from([And, Or]))(tuple(map(parse, letters)))))
    form = shortest(rule)
    universe = all_subsets(letters)
    truth = evaluate(rule, universe)
    assert (evaluate(form, universe) == truth).all()
    assert literal_count(form) <= literal_count(rule)
    if 0 < truth.sum() < len(truth):
        for smaller in without_one_item(form):
            assert (evaluate(smaller, universe) != truth).any()


def test_a_wide_rule_of_many_groups():
    groups = [f"((A{i} & B{i}) | (A{i} & C{i}))" for i in range(25)]
    assert format_rule(shortest(parse(" & ".join(groups)))) == " & ".join(f"A{i} & (B{i} | C{i})" for i in range(25))


def test_a_wide_rule_is_factored_too():
    names = [f"E{i}" for i in range(10)]
    rule = parse(" | ".join(f"({a} & {b})" for a in ("X", "Y") for b in names))
    assert format_rule(shortest(rule)) == f"({' | '.join(names)}) & (X | Y)"
    dual = parse(" & ".join(f"(Z | {name})" for name in names))
    assert format_rule(shortest(dual)) == f"Z | ({' & '.join(names)})"


def test_a_wide_entangled_rule_loses_what_is_superfluous():
    names = [f"E{i}" for i in range(20)]
    pairs = [f"({a} & {b})" for a, b in combinations(names[:5], 2)]
    rule = parse(" | ".join([pairs[0], *names[:3], *pairs, *names[5:], f"({names[19]} & {names[4]})"]))
    assert set(format_rule(shortest(rule)).split(" | ")) == {*names[:3], "(E3 & E4)", *names[5:]}


def test_pruning_alone_drops_first_middle_and_last():
    rule = parse("(A & B) | A | (C & (C | D)) | (A & C)")
    assert format_rule(_prune(rule, rule)) == "A | C"
