"""Proposed rules beside an expert's."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from oscar_causal.data.rules import PublishedRule, parse
from oscar_causal.data.sequences import Dataset, from_records
from oscar_causal.discovery.evidence import empty_evidence
from oscar_causal.graph.population_folder import Population
from oscar_causal.graph.rules.expert import compare_rules, compare_with_expert, in_force, relation, with_expert
from oscar_causal.graph.rules.mining import Mined
from oscar_causal.graph.rules.proposal import RuleProposal


@pytest.mark.parametrize(
    ("proposed", "expert", "wanted"),
    [
        ("A & B", "B & A", "same"),
        ("A & B", "A", "stricter"),
        ("A | B", "A", "looser"),
        ("A & !B", "A & B", "contradicting"),
        ("A then B", "A & B", "stricter"),
        ("A then B within 60s", "A then B", "stricter"),
        ("A", "A >= 2", "looser"),
    ],
)
def test_relations(proposed: str, expert: str, wanted: str) -> None:
    assert relation(parse(proposed), parse(expert)) == wanted


def test_the_sequences_that_tell_rules_apart() -> None:
    rows = [("AB", True), ("AC", True), ("AC", True), ("AC", False), ("A", False), ("B", False)]
    mined = Mined(
        from_records(
            {
                "sequence_id": str(k),
                "subject_id": f"car {k // 2}",
                "events": list(events),
                "times": list(range(len(events))),
                "labels": ["fault"] if label else [],
            }
            for k, (events, label) in enumerate(rows)
        )
    )
    found = compare_with_expert("fault", "A & (B | C)", "A & B", mined)
    assert (found.relation, found.lacks, found.superfluous) == ("looser", ("C",), ())
    assert (found.only_proposed, found.only_proposed_with_label, found.only_expert) == (3, 2, 0)
    assert found.only_proposed_ids == ("1", "2", "3")
    assert found.subjects == 2
    assert found.sentence() == ("your rule lacks C: only the proposal holds in 3 sequences (2 with the label)")
    assert compare_with_expert("fault", "A", "A", mined).sentence() == "your rule says the same"
    apart = compare_with_expert("fault", "A & X", "A & Y", mined)
    assert apart.sentence() == ("your rule lacks X; the proposal does without Y: no sequence tells the two apart")
    both = compare_with_expert("fault", "C", "B", mined).sentence()
    assert both.endswith(
        "only the proposal holds in 3 sequences (2 with the label), only yours holds in 2 sequences (1 with the label)"
    )


def dated() -> Dataset:
    """A alone brings the fault in the first months, B in the later ones; the last car has no date, one no labels."""
    rows = [("A", 1, True), ("B", 2, False), ("A", 3, False), ("B", 4, True), ("A", None, True)]
    records = [
        {
            "sequence_id": f"s{k}",
            "events": [event],
            "times": [0],
            "start": None if month is None else datetime(2024, month, 1, tzinfo=UTC),
            "labels": ["fault"] if label else [],
        }
        for k, (event, month, label) in enumerate(rows)
    ]
    return from_records([*records, {"sequence_id": "x", "events": ["A"], "times": [0], "labels": None}])


def test_only_sequences_in_the_time_of_the_rule_are_read() -> None:
    data = dated()
    moments = data.start.to_pylist()
    for start, end in ((None, None), (2, None), (None, 3), (2, 4)):
        bounds = [None if month is None else datetime(2024, month, 1, tzinfo=UTC) for month in (start, end)]
        rule = PublishedRule(parse("A"), *bounds)
        assert in_force(rule, data).tolist() == [rule.in_force(moment) for moment in moments]
    old = {"fault": PublishedRule(parse("A"), end=datetime(2024, 3, 1, tzinfo=UTC)), "other": PublishedRule(parse("A"))}
    (found,) = compare_rules({"fault": "B", "news": "A"}, old, data).values()
    assert (found.sequences, found.only_expert_ids, found.only_proposed_ids) == (3, ("s0", "s4"), ("s1",))
    assert (found.only_expert_with_label, found.only_proposed_with_label) == (2, 0)


def test_a_population_beside_the_book() -> None:
    proposals = [
        RuleProposal("fault", "not identifiable from this data", "B", 0.3, 12, "patterns"),
        RuleProposal("news", "proposed", "A", 0.9, 12, "patterns"),
        RuleProposal("rare", "too few positives", None, 0.0, 2, "none"),
    ]
    nothing = pa.table({})
    told = tuple(item.to_json() for item in proposals)
    population = Population({}, empty_evidence(), nothing, nothing, proposals=told)
    start = datetime(2024, 3, 1, tzinfo=UTC)
    book = {"fault": PublishedRule(parse("A"), start=start), "rare": PublishedRule(parse("A & B"))}
    found = with_expert(population, dated(), book, file="book.json").expert
    assert found is not None
    assert (found["file"], found["without_proposal"], found["without_expert"]) == ("book.json", ["rare"], ["news"])
    assert set(found["rules"]) == {"fault"}
    beside = found["rules"]["fault"]
    assert (beside["relation"], beside["status"]) == ("contradicting", "not identifiable from this data")
    assert (beside["from"], beside["to"], beside["sequences"]) == ("2024-03-01T00:00:00+00:00", None, 3)
