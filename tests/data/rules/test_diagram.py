"""Decision diagrams against truth tables."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oscar_causal.data.rules.diagram import FALSE, MAX_VARIABLES, TRUE, Diagram, TooEntangled

LETTERS = "ABCDE"


def table(kit, rule):
    """The rule's value for each set of present letters."""
    chosen = [[x for x, bit in zip(LETTERS, bits, strict=True) if bit] for bits in product((0, 1), repeat=len(LETTERS))]
    return [kit.holds(rule, kit.Timed(tuple(present), tuple(map(float, range(len(present)))))) for present in chosen]


@settings(deadline=None)
@given(data=st.data())
def test_one_function_has_one_node_and_its_true_variables(kit, data):
    one, other = (data.draw(kit.rules(LETTERS, chains=False, max_leaves=10)) for _ in range(2))
    diagram = Diagram()
    first, second = (
        diagram.build(rule, lambda atom: diagram.variable(LETTERS.index(atom.name))) for rule in (one, other)
    )
    tables = table(kit, one), table(kit, other)
    assert (first == second) == (tables[0] == tables[1])
    assert (first == TRUE, first == FALSE) == (all(tables[0]), not any(tables[0]))
    assignments = list(product((0, 1), repeat=len(LETTERS)))
    assert tables[0] == [diagram.at(first, lambda number, bits=bits: bool(bits[number])) for bits in assignments]
    values = dict(zip(assignments, tables[0], strict=True))
    flips = {
        number
        for number in range(len(LETTERS))
        for bits, value in values.items()
        if values[(*bits[:number], 1 - bits[number], *bits[number + 1 :])] != value
    }
    assert diagram.variables(first) == flips


@settings(deadline=None)
@given(data=st.data())
def test_fixing_a_variable(kit, data):
    rule = data.draw(kit.rules(LETTERS, chains=False, max_leaves=10))
    number, value = data.draw(st.integers(0, 4)), data.draw(st.booleans())
    diagram = Diagram()
    function = diagram.build(rule, lambda atom: diagram.variable(LETTERS.index(atom.name)))
    fixed = diagram.fix(function, number, value)
    for bits in product((False, True), repeat=5):
        asked = list(bits)
        asked[number] = value
        assert diagram.at(fixed, lambda n, bits=bits: bits[n]) == diagram.at(function, lambda n, asked=asked: asked[n])


def test_size_is_bounded():
    diagram = Diagram()
    with pytest.raises(TooEntangled, match="variables"):
        diagram.variable(MAX_VARIABLES)
    pairs = [diagram.all_of([diagram.variable(i), diagram.variable(i + 20)]) for i in range(20)]
    with pytest.raises(TooEntangled, match="nodes"):  # the worst order: 2 ** 20 nodes
        diagram.any_of(pairs)
