"""Order, windows and counts from labels alone."""

from __future__ import annotations

import re
from typing import Any

import pytest

from oscar_causal.data.rules import equivalent, event_names, format_rule, parse
from oscar_causal.graph.rules.mining import Mined
from oscar_causal.graph.rules.observed import observed_rule


@pytest.mark.parametrize(
    "text",
    [
        "A then B",
        "(A then B) | (C then D)",
        "((A then B) | (C then D)) & !E",
        "((A >= 2) & B) | (C then D)",
        "(A then B) & C",
        "A & B",
    ],
)
def test_routes_come_back(garage: Any, text: str) -> None:
    fleet = garage.fleet({"y": text}, count=900, length=20)
    found = observed_rule(Mined(fleet), "y", [*event_names(parse(text)), "f00", "f01"])
    assert found is not None
    stripped = parse(re.sub(r" within \d+s", "", format_rule(found)))
    assert equivalent(stripped, parse(text)), format_rule(found)


def test_a_window_comes_back_roughly(garage: Any) -> None:
    fleet = garage.fleet({"y": "A then B within 7200s"}, count=900)
    found = observed_rule(Mined(fleet), "y", ["A", "B", "f00"])
    assert found is not None
    assert 3600 <= float(re.findall(r"within (\d+)s", format_rule(found))[0]) <= 14400


def test_a_label_unrelated_to_the_candidates_has_no_rule(garage: Any) -> None:
    fleet = garage.fleet({"y": "A & B", "z": "C & D"}, count=400)
    assert observed_rule(Mined(fleet), "z", ["A", "B"]) is None


def test_a_model_that_knows_no_order_is_helped_by_the_labels(garage: Any) -> None:
    from oscar_causal.graph.rule_recovery import RuleRecoveryConfig, recover_rules

    fleet = garage.fleet({"y": "A then B"}, count=900)
    blind = garage.model(fleet, {"y": "A & B"})
    config = RuleRecoveryConfig(backgrounds=12, probes=8, arrangements=8, judged=4)
    (proposal,) = recover_rules(blind, fleet, {"y": ["A", "B"]}, config)
    assert proposal.method == "observations"
    assert equivalent(parse(str(proposal.rule)), parse("A then B"))
    assert proposal.fidelity is not None
    assert proposal.fidelity.model.value is not None
    assert proposal.fidelity.model.value < 1.0
