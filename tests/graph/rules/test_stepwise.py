"""Sufficient sets and clauses against functions that are known."""

from __future__ import annotations

import numpy as np
import pytest

from oscar_causal.data.rules import EventIndex, Rule, equivalent, evaluate, parse
from oscar_causal.graph.rules.stepwise import search

NAMES = tuple("ABCDEFGHIJKL")


def responder(rule: Rule, asked: list[int]):
    """P(label) by evaluating the rule on sequences that hold the chosen events."""

    def respond(chosen: np.ndarray) -> np.ndarray:
        asked.append(len(chosen))
        offsets = np.concatenate([[0], np.cumsum(chosen.sum(1))])
        events = np.nonzero(chosen)[1]
        index = EventIndex(offsets, events, None, {name: i for i, name in enumerate(NAMES)})
        return np.where(evaluate(rule, index), 0.9, 0.1)

    return respond


@pytest.mark.parametrize(
    "text",
    [
        "A",
        "L",
        "A & B & C & D & E",
        "A | B | C | D | E | F | G | H | I",
        "(A | B | C) & (D | E | F) & (G | H) & I",
        "(A & B) | (C & D & E) | F",
        "((A | B) & C) | ((D | E) & (F | G))",
    ],
)
def test_rules_with_each_event_once_come_back(text: str) -> None:
    asked: list[int] = []
    found = search(NAMES, responder(parse(text), asked), np.random.default_rng(0))
    assert found.rule is not None
    assert equivalent(found.rule, parse(text)), found.rule
    assert found.agreement == 1.0
    assert sum(asked) < 2**12 / 4  # far fewer questions than a table


def test_a_rule_out_of_reach_shows_in_the_agreement() -> None:
    majority = parse("(A & B) | (A & C) | (B & C)")
    found = search(NAMES[:3], responder(majority, []), np.random.default_rng(0))
    assert found.agreement < 1.0 or equivalent(found.rule, majority)  # type: ignore[arg-type]


def test_nothing_suffices() -> None:
    found = search(NAMES, lambda chosen: np.zeros(len(chosen)), np.random.default_rng(0))
    assert found.rule is None


def test_a_label_that_is_always_there_has_no_rule() -> None:
    assert search(NAMES, lambda chosen: np.ones(len(chosen)), np.random.default_rng(0)).rule is None
