"""A proposed rule beside an expert's: same, stricter, looser or contradicting, and what tells them apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from oscar_causal.data.rules import And, PublishedRule, Rule, equivalent, evaluate, event_names, format_rule, parse
from oscar_causal.data.rules.tree import format_name
from oscar_causal.data.sequences import Dataset
from oscar_causal.graph.population_folder import Population
from oscar_causal.graph.rules.mining import EXAMPLES, Bool, Mined

Relation = Literal["same", "stricter", "looser", "contradicting", "unknown"]
RELATIONS: tuple[Relation, ...] = get_args(Relation)


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
    sequences: int
    """Sequences in which both rules were read."""

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return asdict(self)

    def sentence(self) -> str:
        """In one line: `your rule lacks U0428: only the proposal holds in 32 sequences (31 with the label)`."""
        if self.relation == "same":
            return "your rule says the same"
        parts = []
        if self.lacks:
            parts.append(f"your rule lacks {', '.join(map(format_name, self.lacks))}")
        if self.superfluous:
            parts.append(f"the proposal does without {', '.join(map(format_name, self.superfluous))}")
        head = "; ".join(parts) or f"the proposal is {self.relation}"
        told = [
            f"only {whose} in {number:,} sequences ({with_label:,} with the label)"
            for whose, number, with_label in (
                ("the proposal holds", self.only_proposed, self.only_proposed_with_label),
                ("yours holds", self.only_expert, self.only_expert_with_label),
            )
            if number
        ]
        return f"{head}: {', '.join(told) or 'no sequence tells the two apart'}"


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
        len(holds),
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


def compare_rules(
    proposed: Mapping[str, str], experts: Mapping[str, PublishedRule], dataset: Dataset
) -> dict[str, Comparison]:
    """Every label with a rule on both sides, by name.

    Read in the labelled sequences that begin while the expert's rule is in force; an unknown start counts as inside.
    """
    labelled = dataset.take(dataset.labelled)
    whole = Mined(labelled)
    found = {}
    for label in sorted(proposed.keys() & experts.keys()):
        inside = in_force(experts[label], labelled)
        mined = whole if inside.all() else Mined(labelled.take(inside))
        found[label] = compare_with_expert(label, proposed[label], experts[label].rule, mined)
    return found


def in_force(published: PublishedRule, dataset: Dataset) -> Bool:
    """Sequences that begin while a rule is in force: (n,)."""
    inside: Bool = np.ones(len(dataset), bool)
    for moment, compare in ((published.start, pc.greater_equal), (published.end, pc.less)):
        if moment is not None:
            bound = pa.scalar(moment, dataset.start.type)
            inside &= pc.fill_null(compare(dataset.start, bound), True).to_numpy(zero_copy_only=False)
    return inside


def _day(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def with_expert(
    population: Population, dataset: Dataset, experts: Mapping[str, PublishedRule], *, file: str
) -> Population:
    """The population with each of its rules, best guesses too, beside an expert's; `file` says whose they are."""
    told = {str(item["label"]): item for item in population.proposals}
    proposed = {label: str(item["rule"]) for label, item in told.items() if item["rule"] is not None}
    found = compare_rules(proposed, experts, dataset)
    content = {
        "file": file,
        "rules": {
            label: {
                **item.to_json(),
                "status": told[label]["status"],
                "sentence": item.sentence(),
                "from": _day(experts[label].start),
                "to": _day(experts[label].end),
            }
            for label, item in found.items()
        },
        "without_proposal": sorted(experts.keys() - proposed.keys()),
        "without_expert": sorted(proposed.keys() - experts.keys()),
    }
    return replace(population, expert=content)
