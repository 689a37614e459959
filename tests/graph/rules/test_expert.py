"""Proposed rules beside an expert's."""

from __future__ import annotations

import pytest

from oscar_causal.data.rules import parse
from oscar_causal.data.sequences import from_records
from oscar_causal.graph.rules.expert import compare_with_expert, relation
from oscar_causal.graph.rules.mining import Mined


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
    assert found.sentence() == (
        "your rule lacks C: only the proposal holds in 3 sequences (2 with the label), only yours in 0 (0)"
    )
    assert compare_with_expert("fault", "A", "A", mined).sentence() == "your rule says the same"
