"""A found difference is a real one; clear differences are found; equal rules have none."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oscar_causal.data.rules import Not, parse
from oscar_causal.data.rules.logic import negation_normal
from oscar_causal.data.rules.witness import differ_somewhere


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("A then B", "B then A"),
        ("A then B", "A then B within 1d"),
        ("A then B within 59s", "A then B within 1m"),
        ("A then A", "A >= 2"),
        ("A then B then C", "(A then B) & (B then C) & (A then C)"),
        ("A >= 7", "A >= 6"),
        ("(A then B) | (C & !D)", "(A then B) | C"),
    ],
)
def test_clear_differences_are_found(one, other):
    assert differ_somewhere(parse(one), parse(other))
    assert differ_somewhere(parse(other), parse(one))


@settings(deadline=None, max_examples=30)
@given(data=st.data())
def test_equal_rules_never_differ(kit, data):
    rule = data.draw(kit.rules("ABC", chains=True))
    assert not differ_somewhere(rule, negation_normal(Not(rule), False))
    assert differ_somewhere(rule, Not(rule))
