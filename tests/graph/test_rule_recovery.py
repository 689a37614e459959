"""Rules come back from models that know them: from rule models, and from exactly solvable processes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oscar_causal.data.rules import equivalent, event_names, format_rule, parse
from oscar_causal.data.sequences import Dataset, from_records
from oscar_causal.data.solvable import example
from oscar_causal.density.exact import ExactDensity
from oscar_causal.errors import UsageError
from oscar_causal.graph.rule_recovery import RuleProposal, RuleRecoveryConfig, recover_rules

QUICK = RuleRecoveryConfig(backgrounds=12, probes=10, arrangements=12, judged=6)
RULES = {
    "single": "A",
    "and": "A & B & C",
    "or": "A | B",
    "both": "A & (B | C)",
    "blocked": "A & B & !D",
    "order": "A then B",
    "window": "A then B within 7200s",
    "count": "(A >= 2) & B",
    "routes": "(A then B) | (C & D)",
}


@pytest.fixture(scope="module")
def fleet(garage: Any) -> Dataset:
    return garage.fleet(RULES, count=700)


@pytest.fixture(scope="module")
def found(garage: Any, fleet: Dataset) -> dict[str, RuleProposal]:
    """Proposals by a model that is off by up to 0.3 in every answer, with every event of the rule as candidate."""
    model = garage.model(fleet, RULES, error=0.3, high=0.9, low=0.1)
    boundaries = {label: [*event_names(parse(text)), "f00"] for label, text in RULES.items()}
    return {p.label: p for p in recover_rules(model, fleet, boundaries, QUICK)}


def without_windows(text: str) -> str:
    import re

    return re.sub(r" within \d+s", "", text)


@pytest.mark.parametrize("label", RULES)
def test_the_rule_comes_back(found: dict[str, RuleProposal], label: str) -> None:
    proposal = found[label]
    assert proposal.rule is not None
    assert equivalent(parse(without_windows(proposal.rule)), parse(without_windows(RULES[label]))), proposal.rule


def test_a_window_comes_back_roughly(found: dict[str, RuleProposal]) -> None:
    rule = parse(str(found["window"].rule))
    assert rule.within is not None  # type: ignore[union-attr]
    assert 3600 <= rule.within <= 14400  # type: ignore[union-attr]


def test_right_rules_are_stated_and_faithful(found: dict[str, RuleProposal]) -> None:
    for label in ("single", "and", "or", "both", "blocked"):
        proposal = found[label]
        assert proposal.status == "proposed", proposal.reasons
        assert proposal.fidelity is not None
        assert proposal.fidelity.precision.value == proposal.fidelity.recall.value == 1.0
        assert proposal.fidelity.model.value == 1.0
        assert proposal.rule_without_label == proposal.label_without_rule == ()
        assert proposal.confidence > 0.8


def test_roles_tell_causes_blockers_and_bystanders(found: dict[str, RuleProposal]) -> None:
    roles = {role.event: role.role for role in found["blocked"].roles}
    assert roles == {"A": "cause", "B": "cause", "D": "blocker", "f00": "none"}


def test_cells_are_the_truth_table(found: dict[str, RuleProposal], fleet: Dataset) -> None:
    cells = {cell.present: cell for cell in found["or"].cells}
    assert {present: cell.holds for present, cell in cells.items()} == {
        (): False,
        ("A",): True,
        ("B",): True,
        ("A", "B"): True,
    }
    assert sum(cell.positives for cell in cells.values()) == found["or"].positives
    assert cells[()].positives == 0 < cells[()].sequences


def test_blockers_and_missing_causes_are_found_by_own_interventions(garage: Any, fleet: Dataset) -> None:
    rules = {"blocked": RULES["blocked"], "both": RULES["both"]}
    model = garage.model(fleet, RULES)
    found = recover_rules(model, fleet, {"blocked": ["A", "B"], "both": ["A"]}, QUICK)
    for proposal in found:
        assert equivalent(parse(str(proposal.rule)), parse(rules[proposal.label])), proposal.rule


def test_more_candidates_than_a_table_holds(garage: Any) -> None:
    rules = {"fault": "(A | B | C) & (D | E | F) & (G | H | I)"}
    fleet = garage.fleet(rules, count=400, length=30)
    model = garage.model(fleet, rules)
    (proposal,) = recover_rules(model, fleet, {"fault": list("ABCDEFGHI")}, QUICK)
    assert proposal.method == "stepwise"
    assert equivalent(parse(str(proposal.rule)), parse(rules["fault"]))


def test_data_decides_where_they_contradict_the_model(garage: Any, fleet: Dataset) -> None:
    """Six hundred sequences say A & B; the model says A | B."""
    wrong = garage.model(fleet, {**RULES, "and": "A | B | C"})
    (proposal,) = recover_rules(wrong, fleet, {"and": ["A", "B", "C"]}, QUICK)
    assert equivalent(parse(str(proposal.rule)), parse(RULES["and"]))
    assert proposal.fidelity is not None
    assert proposal.fidelity.model.value is not None
    assert proposal.fidelity.model.value < 0.9  # and it is told that the model thinks otherwise


def test_events_that_always_come_together_are_not_identifiable(garage: Any) -> None:
    rng = np.random.default_rng(0)
    records = []
    for k in range(200):
        events = [f"f{rng.integers(20):02d}" for _ in range(12)]
        if on := rng.random() < 0.5:
            events[3], events[7] = "A", "B"
        records.append(
            {"sequence_id": str(k), "events": events, "times": list(range(12)), "labels": ["y"] if on else []}
        )
    data = from_records(records)
    (proposal,) = recover_rules(garage.model(data, {"y": "A & B"}), data, {"y": ["A", "B"]}, QUICK)
    assert proposal.status == "not identifiable from this data"
    assert any("lacks A alone" in reason or "lacks B alone" in reason for reason in proposal.reasons)


def test_a_label_by_chance_is_not_identifiable(garage: Any, fleet: Dataset) -> None:
    """The label comes in 40 % of the sequences with A: no rule says when."""
    rng = np.random.default_rng(1)
    records = [
        {
            "sequence_id": str(k),
            "events": fleet.events_of(k),
            "times": list(range(16)),
            "labels": ["y"] if "A" in fleet.events_of(k) and rng.random() < 0.4 else [],
        }
        for k in range(len(fleet))
    ]
    data = from_records(records)
    model = garage.model(data, {"y": "A"}, high=0.6)
    (proposal,) = recover_rules(model, data, {"y": ["A"]}, QUICK)
    assert proposal.status == "not identifiable from this data"


def test_few_positives_and_empty_boundaries_are_answered(garage: Any, fleet: Dataset) -> None:
    model = garage.model(fleet, {**RULES, "and": "Z | !Z"})  # needs nothing
    strict = RuleRecoveryConfig(least_positives=10_000)
    (few,) = recover_rules(model, fleet, {"or": ["A"]}, strict)
    assert (few.status, few.rule, few.confidence) == ("too few positives", None, 0.0)
    (none,) = recover_rules(model, fleet, {"and": []}, QUICK)
    assert (none.status, none.rule) == ("not identifiable from this data", None)


def test_a_candidate_the_model_does_not_know_is_a_doubt(garage: Any, fleet: Dataset) -> None:
    (proposal,) = recover_rules(garage.model(fleet, RULES), fleet, {"or": ["A", "B", "nobody"]}, QUICK)
    assert proposal.status == "not identifiable from this data"
    assert "'nobody'" in proposal.reasons[0]


def test_bad_calls_are_one_line(garage: Any, fleet: Dataset) -> None:
    model = garage.model(fleet, RULES)
    with pytest.raises(UsageError, match="does not know the label 'ghost'"):
        recover_rules(model, fleet, {"ghost": ["A"]}, QUICK)
    unlabelled = from_records([{"sequence_id": "1", "events": ["A"], "times": [0]}])
    with pytest.raises(UsageError, match="expected labelled sequences"):
        recover_rules(model, unlabelled, {"or": ["A"]}, QUICK)
    with pytest.raises(UsageError, match="backgrounds: expected at least 4, got 1"):
        RuleRecoveryConfig(backgrounds=1)


@pytest.mark.bits
def test_same_answer_twice_and_in_any_order(garage: Any, fleet: Dataset) -> None:
    model = garage.model(fleet, RULES, error=0.3)
    boundaries = {"or": ["A", "B"], "order": ["A", "B"]}
    first = recover_rules(model, fleet, boundaries, QUICK)
    again = recover_rules(model, fleet, dict(reversed(boundaries.items())), QUICK)
    assert [p.to_json() for p in first] == [p.to_json() for p in reversed(again)]


@pytest.mark.parametrize("name", ["and", "or", "not", "order", "count"])
def test_rules_of_solvable_processes(garage: Any, name: str) -> None:
    """The exact oracle of a process with 103 event types, sequences drawn from the process itself."""
    process = example(name)
    drawn = process.sample(900, np.random.default_rng(0))
    data = from_records(
        {
            "sequence_id": f"s{k}",
            "events": [process.event_names[e] for e in drawn.event_ids[k]],
            "times": drawn.times[k].tolist(),
            "labels": [label for label, on in zip(process.label_names, drawn.labels[k], strict=True) if on],
        }
        for k in range(900)
    )
    (proposal,) = recover_rules(ExactDensity(process), data, {"fault": ["A", "B", "C"]}, QUICK)
    truth = parse(process.config.labels[0].effects[0].rule)
    assert proposal.rule is not None
    assert equivalent(parse(proposal.rule), truth), (proposal.rule, format_rule(truth))


def test_progress_is_told(garage: Any, fleet: Dataset) -> None:
    told: list[tuple[int, int]] = []
    recover_rules(
        garage.model(fleet, RULES),
        fleet,
        {"or": ["A", "B"], "single": ["A"]},
        QUICK,
        on_progress=lambda *x: told.append(x),
    )
    assert told == [(1, 2), (2, 2)]
