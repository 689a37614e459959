"""How the features of a boundary combine, from labels alone."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from oscar_causal.data.rules import equivalent, evaluate, format_rule, parse
from oscar_causal.data.rules.tree import atoms
from oscar_causal.data.sequences import Dataset, from_records
from oscar_causal.discovery.reading import Features, rule_features
from oscar_causal.graph.rules.boundary_rule import boundary_rule
from oscar_causal.graph.rules.mining import Mined


def every_combination(rule: str, events: str, times: int = 4) -> Dataset:
    """Every set of events so many times, with the label where the rule holds."""
    sets = [[e for e, there in zip(events, row, strict=True) if there] for row in product([0, 1], repeat=len(events))]
    chosen = [part for part in sets if part] * times
    data = from_records(
        {"sequence_id": str(k), "events": part, "times": list(range(len(part)))} for k, part in enumerate(chosen)
    )
    holds = evaluate(parse(rule), Mined(data).index)
    return from_records(
        {"sequence_id": str(k), "events": part, "times": list(range(len(part))), "labels": ["y"] * int(came)}
        for k, (part, came) in enumerate(zip(chosen, holds.tolist(), strict=True))
    )


@pytest.mark.parametrize("text", ["A", "A & B & C", "A | B", "A & (B | C)", "(A & B) | (C & D)", "(A | B) & !E"])
def test_where_every_combination_was_seen_the_rule_is_the_true_one(text: str) -> None:
    data = every_combination(text, "ABCDE")
    known = rule_features(parse(text))
    found = boundary_rule(Mined(data), "y", known)
    assert found is not None
    assert equivalent(found, parse(text)), format_rule(found)
    beside = Features((*known.raising, *({"D"} - {*known.raising})), known.lowering)  # one that says nothing
    assert equivalent(boundary_rule(Mined(data), "y", beside) or parse("Z"), parse(text))


@pytest.mark.parametrize(
    "text", ["A then B", "(A then B) | (C then D)", "((A >= 2) & B) | (C then D)", "((A then B) | (C then D)) & !E"]
)
def test_orders_and_counts_in_a_fleet_with_wrong_labels(garage: Any, text: str) -> None:
    fleet = garage.fleet({"y": text}, count=900, length=20)
    assert 0 < np.count_nonzero(Mined(fleet).with_label("y")) < 900
    parts = rule_features(parse(text))
    found = boundary_rule(Mined(fleet), "y", Features((*parts.raising, "f00"), parts.lowering))
    assert found is not None
    assert equivalent(found, parse(text)), format_rule(found)


def test_what_was_never_missing_stays() -> None:
    """Nobody saw A without B: both `A` and `A & B` explain all; the labels do not tell that B is not needed."""
    rows = [(["A", "B"], True)] * 5 + [(["B"], False)] * 5 + [(["C"], False)] * 5
    data = from_records(
        {"sequence_id": str(k), "events": events, "times": list(range(len(events))), "labels": ["y"] * came}
        for k, (events, came) in enumerate(rows)
    )
    assert equivalent(boundary_rule(Mined(data), "y", Features(("A", "B"))) or parse("Z"), parse("A & B"))


def test_nothing_to_say() -> None:
    data = every_combination("A", "AB")
    assert boundary_rule(Mined(data), "y", Features(())) is None
    assert boundary_rule(Mined(data), "nobody", Features(("A",))) is None
    assert boundary_rule(Mined(data), "y", Features(tuple(f"E{k}" for k in range(63)))) is None
    assert boundary_rule(Mined(data), "y", Features(("Z",))) is None


def test_a_model_that_knows_no_order_is_helped_by_the_boundary(garage: Any) -> None:
    from oscar_causal.graph.rule_recovery import RuleRecoveryConfig, recover_rules

    truth = "(A then B within 5000s) | ((C >= 2) & D)"
    fleet = garage.fleet({"y": truth}, count=900)
    blind = garage.model(fleet, {"y": "(A & B) | (C & D)"})
    config = RuleRecoveryConfig(backgrounds=12, probes=8, arrangements=8, judged=4)
    features = {"y": Features(("A then B within 5000s", "C >= 2", "D"))}
    (proposal,) = recover_rules(blind, fleet, {"y": ["A", "B", "C", "D"]}, config, features=features)
    assert proposal.method == "observations"
    assert equivalent(parse(str(proposal.rule)), parse(truth)), proposal.rule
    assert len([*atoms(parse(str(proposal.rule)))]) == 3
    (model_alone,) = recover_rules(blind, fleet, {"y": ["A", "B", "C", "D"]}, config)
    assert not equivalent(parse(str(model_alone.rule)), parse(truth))
    (unnamed,) = recover_rules(blind, fleet, {"y": ["A", "B"]}, config, features=features)
    assert equivalent(parse(str(unnamed.rule)), parse(truth))  # the boundary's events are candidates, too
    assert {role.event for role in unnamed.roles} >= {"A", "B", "C", "D"}
    foreign = {"y": Features(("A then B within 5000s", "C >= 2", "Unheard"))}
    (kept,) = recover_rules(blind, fleet, {"y": ["A", "B", "C", "D"]}, config, features=foreign)
    assert "Unheard" not in str(kept.rule)
