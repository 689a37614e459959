"""Stand-ins of a rule's parts, against fleets in which it is known what can be told apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oscar_causal.data.rules import evaluate, parse
from oscar_causal.data.sequences import Dataset, from_records
from oscar_causal.graph.rule_recovery import Mined, RuleRecoveryConfig, recover_rules
from oscar_causal.graph.rules.twins import Twin, find_twins, told_apart

QUICK = RuleRecoveryConfig(backgrounds=12, probes=6, arrangements=8, judged=4)
RULE = {"y": "A & B"}


def with_twin(fleet: Dataset, misses: int, strays: int = 0) -> Dataset:
    """T right after every A, but in none of the first `misses` sequences with A; and in `strays` sequences without."""
    records, missed, stray = [], 0, 0
    for k in range(len(fleet)):
        events, times = fleet.events_of(k), fleet.times[fleet.events.offsets[k] : fleet.events.offsets[k + 1]]
        if "A" in events:
            missed += 1
        comes = "A" in events and missed > misses
        if "A" not in events and stray < strays:
            stray, comes = stray + 1, True
        extra = [("T", float(times[-1]) + 60.0)] if comes else []
        rows = [*zip(events, times.tolist(), strict=True), *extra]
        records.append(
            {
                "sequence_id": f"s{k}",
                "subject_id": f"car {k // 2}",
                "events": [event for event, _ in rows],
                "times": [time for _, time in rows],
                "labels": fleet.labels_of(k),
            }
        )
    return from_records(records)


@pytest.fixture(scope="module")
def plain(garage: Any) -> Dataset:
    return garage.fleet(RULE, count=300)


def nothing(*_: str) -> float:
    return 0.0


@pytest.mark.parametrize(("misses", "strays"), [(0, 0), (0, 40), (40, 0), (8, 8)])
def test_counts_are_those_of_the_two_rules_evaluated(plain: Dataset, misses: int, strays: int) -> None:
    mined = Mined(with_twin(plain, misses, strays))
    has, one, two = mined.with_label("y"), *(evaluate(parse(t), mined.index) for t in ("A & B", "T & B"))
    expected = (int(((one != two) & (one == has)).sum()), int(((one != two) & (two == has)).sum()))
    found = {(twin.part, twin.stand_in): twin for twin in find_twins(parse("A & B"), "y", mined, nothing)}
    twin = found.get(("A", "T"), Twin("A", "T", *expected))
    assert (twin.for_part, twin.for_stand_in) == expected
    assert (("A", "T") in found) == (not told_apart(Twin("A", "T", *expected), 0.0))
    assert (("A", "A & T") in found) == (misses == 0 and ("A", "T") not in found)  # nobody saw A bring it without T
    assert set(found) <= {("A", "T"), ("A", "A & T")}  # no filler and no other event stands in


def test_events_of_the_rule_that_always_come_together(plain: Dataset) -> None:
    (twin,) = find_twins(parse("A & T & B"), "y", Mined(with_twin(plain, 0)), nothing)
    assert {twin.part, twin.stand_in} == {"A", "T"}


def test_an_order_that_never_is_another_one_cannot_be_told() -> None:
    rng = np.random.default_rng(2)
    records = []
    for k in range(80):
        events = [name for name in ("A", "B") if rng.random() < 0.6]
        both = len(events) == 2
        times = [float(i) for i in range(len(events) + 1)]
        row = {"sequence_id": f"s{k}", "events": [*events, "x"], "times": times, "labels": ["y"] if both else []}
        records.append(row)
    ordered = parse("A then B")
    (twin,) = find_twins(ordered, "y", Mined(from_records(records)), nothing)
    assert (twin.part, twin.stand_in, twin.for_part) == ("A then B", "A & B", 0)
    for k in range(6):
        row = {"sequence_id": f"r{k}", "events": ["B", "A"], "times": [0.0, 1.0], "labels": []}
        records.append(row)
    assert not find_twins(ordered, "y", Mined(from_records(records)), nothing)


def beside(companion: int, common: float, other: int) -> Mined:
    """20 sequences with `A >= 2` and the label: P in so many, Q (frequent) in all; `other` with neither label nor P."""
    rng, records = np.random.default_rng(3), []
    for k in range(300):
        fires, lacks = k < 20, 20 <= k < 20 + other
        events = ["A", "A"] if fires or lacks else ["A"] * (rng.random() < 0.3)
        events += ["P"] * (k < companion) + ["Q"] * (fires or rng.random() < common) + ["x"]
        times = [float(i) for i in range(len(events))]
        records.append({"sequence_id": f"s{k}", "events": events, "times": times, "labels": ["y"] * fires})
    return Mined(from_records(records))


@pytest.mark.parametrize(
    ("companion", "common", "other", "expected"),
    [
        (20, 0.9, 0, [("A >= 2", "(A >= 2) & P", 0, 0)]),  # never without P: who knows; Q is there by chance
        (20, 0.9, 2, [("A >= 2", "(A >= 2) & P", 0, 2)]),  # two without P and label speak for it
        (19, 0.9, 0, []),  # once without P
        (0, 0.5, 0, [("A >= 2", "(A >= 2) & Q", 0, 0)]),  # in all of twenty, in half of the others: no chance
    ],
)
def test_what_was_never_missing_may_be_needed(
    companion: int, common: float, other: int, expected: list[tuple[str, str, int, int]]
) -> None:
    found = find_twins(parse("A >= 2"), "y", beside(companion, common, other), nothing)
    told = [(t.part, t.stand_in, t.for_part, t.for_stand_in) for t in found if t.stand_in != "A"]
    assert told == expected


def test_a_rule_with_a_twin_is_not_stated(garage: Any, plain: Dataset) -> None:
    """The model knows the truth exactly; but nobody has ever seen A without T."""
    for misses, status in ((0, "not identifiable from this data"), (30, "proposed")):
        fleet = with_twin(plain, misses)
        model = garage.model(fleet, RULE)
        (proposal,) = recover_rules(model, fleet, {"y": ["A", "B"]}, QUICK)
        assert (proposal.rule, proposal.status) == ("A & B", status), proposal.reasons
        told = [reason for reason in proposal.reasons if "cannot be told apart" in reason]
        assert bool(told) == bool(proposal.twins) == (misses == 0)


def test_the_model_tells_twins_apart_that_few_sequences_tell(garage: Any, plain: Dataset) -> None:
    """One sequence in which they differ is too few, unless the model has a word on it; a model that errs has none."""
    fleet = with_twin(plain, 4)  # among four sequences with A and without T, one or two also have B
    for rule, known in (("A & B", True), ("(A | T) & B", False)):
        model = garage.model(fleet, {"y": rule})
        (proposal,) = recover_rules(model, fleet, {"y": ["A", "B"]}, QUICK)
        assert proposal.rule == "A & B"
        assert (not proposal.twins) == known, (rule, proposal.twins)
