"""A proposed rule beside an expert's: same, stricter, looser or contradicting, and what tells them apart."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from oscar_causal.data.rules import And, Rule, equivalent, evaluate, event_names, format_rule, parse
from oscar_causal.data.rules.tree import format_name
from oscar_causal.graph.rules.mining import EXAMPLES, Mined

Relation = Literal["same", "stricter", "looser", "contradicting", "unknown"]


@dataclass(frozen=True)
class Comparison:
    """A proposed rule beside an expert's, for one label."""

    label: str
    proposed: str
    expert: str
    relation: Relation
    """Of the proposed rule to the expert's: stricter = it holds in fewer sequences."""
    lacks: tuple[str, ...]
    """Events the expert's rule does not mention."""
    superfluous: tuple[str, ...]
    """Events only the expert's rule mentions."""
    only_proposed: int
    """Sequences where only the proposed rule holds."""
    only_proposed_with_label: int
    only_expert: int
    """Sequences where only the expert's rule holds."""
    only_expert_with_label: int
    subjects: int
    """Subjects (cars, patients) with a sequence that tells the rules apart."""
    only_proposed_ids: tuple[str, ...]
    only_expert_ids: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return asdict(self)

    def sentence(self) -> str:
        """In one line: `your rule lacks U0428: 31 of 32 sequences that only the proposal explains have the label`."""
        if self.relation == "same":
            return "your rule says the same"
        parts = []
        if self.lacks:
            parts.append(f"your rule lacks {', '.join(map(format_name, self.lacks))}")
        if self.superfluous:
            parts.append(f"the proposal does without {', '.join(map(format_name, self.superfluous))}")
        head = "; ".join(parts) or f"the proposal is {self.relation}"
        return (
            f"{head}: only the proposal holds in {self.only_proposed:,} sequences "
            f"({self.only_proposed_with_label:,} with the label), only yours in {self.only_expert:,} "
            f"({self.only_expert_with_label:,})"
        )


def compare_with_expert(label: str, proposed: str | Rule, expert: str | Rule, mined: Mined) -> Comparison:
    """How a proposed rule relates to an expert's, and which sequences tell them apart.

    >>> from oscar_causal.data.sequences import from_records
    >>> car = {"sequence_id": "1", "events": ["A", "C"], "times": [0, 9], "labels": ["fault"]}
    >>> found = compare_with_expert("fault", "A & (B | C)", "A & B", Mined(from_records([car])))
    >>> found.relation, found.lacks, found.only_proposed_with_label
    ('looser', ('C',), 1)
    """
    ours = parse(proposed) if isinstance(proposed, str) else proposed
    theirs = parse(expert) if isinstance(expert, str) else expert
    has = mined.with_label(label)
    holds, wanted = evaluate(ours, mined.index), evaluate(theirs, mined.index)
    more, less = holds & ~wanted, wanted & ~holds
    apart = mined.dataset.subject_ids.filter(pa.array(more | less))
    our_names, their_names = event_names(ours), event_names(theirs)
    return Comparison(
        label,
        format_rule(ours),
        format_rule(theirs),
        relation(ours, theirs),
        tuple(name for name in our_names if name not in their_names),
        tuple(name for name in their_names if name not in our_names),
        int(more.sum()),
        int((more & has).sum()),
        int(less.sum()),
        int((less & has).sum()),
        int(pc.count_distinct(apart).as_py()),
        mined.ids(more)[:EXAMPLES],
        mined.ids(less)[:EXAMPLES],
    )


def relation(proposed: Rule, expert: Rule) -> Relation:
    """By logic alone: same, stricter, looser, contradicting (neither implies the other), or unknown.

    >>> relation(parse("A & B"), parse("A"))
    'stricter'
    """
    same = equivalent(proposed, expert)
    if same:
        return "same"
    both = And((proposed, expert))
    stricter, looser = equivalent(both, proposed), equivalent(both, expert)
    if stricter:
        return "stricter"
    if looser:
        return "looser"
    return "unknown" if None in (same, stricter, looser) else "contradicting"
