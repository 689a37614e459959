"""Round trips, precedence, units, and errors that point at the column."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from oscar_causal.data.rules import And, AtLeast, Event, Not, Or, Then, format_rule, parse
from oscar_causal.errors import DataError

A, B, C, D = map(Event, "ABCD")

names = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    st.sampled_from(
        ["then", "within", "A", "_x1", "P0420-00", "🚗", '"', "\n", "a b", "</script>", "=cmd()", "s", "n" * 10_000]
    ),
)
events = names.map(Event)
windows = st.none() | st.floats(min_value=0, max_value=1e300, exclude_min=True)
chains = st.recursive(
    st.builds(Then, events, events, windows), lambda inner: st.builds(Then, inner, inner, windows), max_leaves=4
)
leaves = events | chains | st.builds(AtLeast, events, st.integers(1, 10**9))
rules = st.recursive(
    leaves,
    lambda inner: (
        inner.map(Not)
        | st.builds(
            lambda kind, items: kind(tuple(items)), st.sampled_from([And, Or]), st.lists(inner, min_size=2, max_size=4)
        )
    ),
    max_leaves=10,
)


@settings(deadline=None)
@given(rule=rules)
def test_text_and_tree_are_two_forms_of_one_rule(rule):
    text = format_rule(rule)
    assert parse(text) == rule
    assert format_rule(parse(text)) == text


@settings(deadline=None)
@given(rule=rules, data=st.data())
def test_blanks_between_tokens_do_not_matter(rule, data):
    tokens = re.findall(r'"(?:[^"\\]|\\.)*"|>=|\w+(?:\.\w+)?(?:[+-]\w+)?|[&|!()]', format_rule(rule))
    blanks = data.draw(st.lists(st.sampled_from([" ", "\n", "\t ", "  "]), min_size=len(tokens), max_size=len(tokens)))
    assert parse("".join(map("".join, zip(blanks, tokens, strict=True)))) == rule


@settings(deadline=None)
@given(name=names)
@example(name="")
def test_any_name_survives(name):
    assert parse(json.dumps(name)) == parse(json.dumps(name, ensure_ascii=False)) == Event(name)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("A&B|C&!D", Or((And((A, B)), And((C, Not(D)))))),
        ("A | B & C", Or((A, And((B, C))))),
        ("(A | B) & C", And((Or((A, B)), C))),
        ("!A & B", And((Not(A), B))),
        ("!(A & B)", Not(And((A, B)))),
        ("A then B & C", And((Then(A, B), C))),
        ("A >= 2 | B", Or((AtLeast(A, 2), B))),
        ("(A) >= 02", AtLeast(A, 2)),
        ("A then B then C", Then(Then(A, B), C)),
        ("A then (B then C)", Then(Then(A, B), C)),
        ("(A then B within 5s) then C", Then(Then(A, B, 5), C)),
        ("A then B within 5s then C within 2min", Then(Then(A, B, 5), C, 120)),
        ("A then B within 1.5 h", Then(A, B, 5400)),
        ("A then B within 2m", Then(A, B, 120)),
        ("A then B within 1e1d & C", And((Then(A, B, 864_000), C))),
        ('"A" & (((B)))', And((A, B))),
        ("s then h within 3s", Then(Event("s"), Event("h"), 3)),
    ],
)
def test_precedence_and_units(text, rule):
    assert parse(text) == rule


@pytest.mark.parametrize(
    ("text", "column", "expected"),
    [
        ("", 1, "an event name, '!' or '(', got the end of the rule"),
        ("   ", 4, "an event name"),
        ("A &", 4, "an event name, '!' or '(', got the end of the rule"),
        ("A & | B", 5, "an event name, '!' or '(', got '|'"),
        ("A B", 3, "'&', '|', 'then', '>=' or the end, got the name \"B\""),
        ("(A | B", 7, "')' to close the '(' of column 1"),
        ("A & ((B) | C", 13, "')' to close the '(' of column 5"),
        ("(A B)", 4, "'>=' or ')'"),
        ("A)", 2, "or the end, got ')'"),
        ("A >= x", 6, "a whole number of at least 1"),
        ("A >= 0", 6, "a whole number of at least 1"),
        ("A >= 2.5", 6, "a whole number of at least 1"),
        ("A >= ", 6, "a whole number of at least 1 after '>=', got the end"),
        ("(A & B) >= 2", 1, "an event before '>=', got a conjunction"),
        ("!A >= 2", 2, "an event before '>=', got a negation"),
        ("A then B within", 16, "after 'within', got the end"),
        ("A then B within 5", 18, "a unit (s, m, min, h, d)"),
        ("A then B within 5 parsecs", 19, "a unit (s, m, min, h, d)"),
        ("A then B within 0s", 17, "above zero seconds"),
        ("A then B within 1e999s", 17, "above zero seconds"),
        ("A then !B", 8, "an event after 'then'"),
        ("A then (B & C)", 8, "an event beside 'then', got a conjunction"),
        ("!A then B", 4, "an event before 'then' (a negated chain is !(A then B)), got a negation"),
        ("!" * 199 + "A & B | C", 1, "at most 200 nested levels"),
        ("A within 5s", 3, "'&', '|', 'then', '>=' or the end, got 'within'"),
        ("then & A", 1, "an event name"),
        ("P0420-00 & A", 6, "a name that is no identifier stands in double quotes"),
        ("1A", 1, "a name that is no identifier stands in double quotes"),
        ('A & "bc', 5, "a closing '\"' for the name that begins here"),
        ('A & "b\\qc"', 7, "a JSON string"),
        ('A & "\\ud800"', 5, "a name that UTF-8 can hold"),
        ("A @ B", 3, "'&', '|', 'then', '>=' or the end, got '@'"),
        ("A\n& \n| B", 6, "an event name"),
    ],
)
def test_errors_point_at_the_column(text, column, expected):
    with pytest.raises(DataError) as caught:
        parse(text)
    message = str(caught.value)
    assert f"column {column}: " in message
    assert expected in message
    assert "\n" not in message


@settings(deadline=None)
@given(text=st.text('AB&|!()">=3 thenwi5s\\', max_size=25))
def test_any_text_is_a_rule_or_one_clear_line(text):
    try:
        rule = parse(text)
    except DataError as error:
        message = str(error)
        assert re.match(r"rule, column \d+: expected ", message)
        assert "\n" not in message
        assert int(message.split()[2].rstrip(":")) <= len(text) + 1
    else:
        assert parse(format_rule(rule)) == rule


@pytest.mark.parametrize(
    "text", ["!" * 100_000 + "A", "(A & (B | " * 5_000 + "A" + "))" * 5_000, " then ".join("A" * 10_000)]
)
def test_absurd_depth_is_an_error_not_a_crash(text):
    with pytest.raises(DataError, match=r"rule, column \d+: expected a rule of at most 200 nested levels"):
        parse(text)


def test_many_parentheses_and_long_lists_are_no_depth():
    assert parse("(" * 50_000 + "A" + ")" * 50_000) == A
    wide = parse(" | ".join(f"E{i}" for i in range(20_000)))
    assert len(wide.items) == 20_000
    assert parse(format_rule(wide)) == wide


def test_a_rule_must_be_text():
    with pytest.raises(DataError, match="expected text, got int"):
        parse(3)
