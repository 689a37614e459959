"""Patterns by brute force; order and window from arrangements."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch

from oscar_causal.data.rules import EventIndex, Then, equivalent, evaluate, format_rule, parse
from oscar_causal.discovery.contexts import Stream
from oscar_causal.graph.rules.backgrounds import ask, cleared, open_background
from oscar_causal.graph.rules.laboratory import encode_for
from oscar_causal.graph.rules.order_and_count import (
    arrangement_index,
    arrangement_rows,
    frequent_patterns,
    minimal_patterns,
    route_of,
)

RULES = {"order": "A then B", "count": "(A >= 2) & C", "either": "(A then B) | (C & D)"}


@pytest.fixture(scope="module")
def opened(garage: Any) -> Any:
    fleet = garage.fleet(RULES, count=60, length=14)
    model = garage.model(fleet, RULES)
    encoded = encode_for(model, fleet)
    return model, [open_background(model, encoded, k, f"s{k}") for k in range(60)]


@pytest.mark.parametrize("label", RULES)
def test_minimal_patterns_are_those_of_brute_force(opened: Any, label: str) -> None:
    model, backgrounds = opened
    ids = np.array([model.vocabulary.event_ids[name] for name in "ABCD"])
    column, seen = model.vocabulary.label_ids[label], 0
    for background in backgrounds:
        at = np.flatnonzero(np.isin(background.event_ids, ids))
        if len(at) > 7 or any((background.event_ids == i).sum() > 4 for i in ids):
            continue
        stream = Stream(0, background.sequence_id, "patterns")
        found = minimal_patterns(background, column, ids, stream)
        blank = cleared(background, ids, stream)
        enough = []
        for size in range(len(at) + 1):
            for kept in combinations(at, size):
                row = blank.copy()
                row[list(kept)] = background.event_ids[list(kept)]
                if ask(model, background.sequence, row[None], torch.tensor([column]))[0, 0] > 0.5:
                    enough.append(set(kept))
        minimal = [s for s in enough if not any(other < s for other in enough)]
        assert found == {tuple(sorted(background.event_ids[list(s)].tolist())) for s in minimal}
        seen += bool(found)
    assert seen >= 4


def test_frequent_patterns_need_two_sequences() -> None:
    found = [{(1, 2)}, {(1, 2), (3,)}, {(1, 2)}, set(), {()}, {(4,)}]
    assert frequent_patterns(found, share=0.1, most=5) == [((1, 2), 3)]
    assert frequent_patterns([{(1,)}], share=0.1, most=5) == [((1,), 1)]


def test_arrangements_hold_the_pattern_and_no_other_candidate(opened: Any) -> None:
    model, backgrounds = opened
    ids = np.array([model.vocabulary.event_ids[name] for name in "ABCD"])
    pattern = (int(ids[0]), int(ids[0]), int(ids[2]))
    before = after = 0
    for background in backgrounds:
        rows, positions, events = arrangement_rows(background, ids, pattern, 20, Stream(0, background.sequence_id, "x"))
        for row, at, what in zip(rows, positions, events, strict=True):
            assert sorted(row[np.isin(row, ids)].tolist()) == sorted(pattern)
            assert (row[at] == what).all()
        first = np.argsort(positions, axis=1)[:, 0]
        before += int((events[np.arange(20), first] == ids[2]).sum())
        after += 20
    assert 0.2 < before / after < 0.5  # the third event is first about as often as chance says


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("A then B", "A then B"), ("B then A", "B then A"), ("A & B", "A & B"), ("(A then B) & C", "(A then B) & C")],
)
def test_route_of_tells_the_order(opened: Any, text: str, wanted: str) -> None:
    route = _route(opened, text)
    assert route is not None
    assert equivalent(route.rule, parse(wanted)), format_rule(route.rule)


def test_route_of_tells_the_window_roughly(opened: Any) -> None:
    route = _route(opened, "A then B within 3600s")
    assert route is not None
    assert isinstance(route.rule, Then)
    assert route.rule.within is not None
    assert 1800 <= route.rule.within <= 7200


def test_a_pattern_that_never_works_is_no_route(opened: Any) -> None:
    assert _route(opened, "A & B & X") is None


def _route(opened: Any, text: str) -> Any:
    """The route of all events of a rule among A, B, C, told by the rule itself."""
    model, backgrounds = opened
    rule = parse(text)
    ids = {name: model.vocabulary.event_ids[name] for name in "ABC" if name in text}
    pattern = tuple(sorted(ids.values()))
    placed = [
        arrangement_rows(b, np.array(pattern), pattern, 8, Stream(0, b.sequence_id, "r"))[1:] for b in backgrounds
    ]
    index = arrangement_index(backgrounds, placed, ids)
    assert isinstance(index, EventIndex)
    return route_of(pattern, 5, index, np.where(evaluate(rule, index), 0.9, 0.1))
