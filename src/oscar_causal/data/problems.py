"""What in a dataset will trouble a causal analysis, in words for people and names for programs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

FEW_POSITIVES = 10
MANY_TIES = 0.1
MOST_NAMES = 20


@dataclass(frozen=True)
class Problem:
    """`names` are the first few of `count` offenders (labels, events, or groups of events)."""

    kind: str
    message: str
    count: int
    names: tuple[Any, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class Facts:
    """What the search for problems looks at."""

    sequences: int
    labelled: int
    labels: Mapping[str, int]
    """Label -> sequences that carry it."""
    event_names: Collection[str]
    everywhere: Sequence[str]
    """Events of every sequence."""
    single: int
    """Sequences of one event."""
    tied_share: float
    late_events: int
    """Events at or after the first label of their sequence."""
    inseparable: Sequence[tuple[list[str], int]]
    """Events that occur in exactly the same sequences, and in how many."""


def find_problems(facts: Facts) -> list[Problem]:
    """The problems found, the gravest first."""
    found = [
        *_label_problems(facts.labels, facts.labelled),
        *_leaks(facts.labels, facts.event_names, facts.late_events),
        *_event_problems(facts.everywhere, facts.inseparable),
    ]
    if facts.single:
        message = f"sequences of a single event: {facts.single:,} of {facts.sequences:,}"
        found.append(Problem("length_one", message, facts.single))
    if facts.tied_share > MANY_TIES:
        message = f"{facts.tied_share:.0%} of the events share their timestamp: the order inside a tie means nothing"
        found.append(Problem("ties", message, 0))
    return found


def _label_problems(labels: Mapping[str, int], labelled: int) -> list[Problem]:
    if not labelled:
        return [Problem("unlabelled", "no sequence is labelled: there is nothing to explain", 0)]
    if not labels:
        return [Problem("no_labels", "no label is ever observed", 0)]
    found = []
    rare = sorted((name for name, count in labels.items() if count < FEW_POSITIVES), key=lambda name: labels[name])
    if rare:
        message = f"labels seen fewer than {FEW_POSITIVES} times, too rare to judge: {len(rare):,} of {len(labels):,}"
        found.append(_named("rare_labels", message, rare))
    constant = sorted(name for name, count in labels.items() if count == labelled)
    if constant:
        found.append(_named("constant_labels", f"labels on every labelled sequence: {len(constant):,}", constant))
    return found


def _leaks(labels: Mapping[str, int], event_names: Collection[str], late_events: int) -> list[Problem]:
    found = []
    if late_events:
        message = (
            f"events at or after their sequence's first label (import with --gap leaves them out): {late_events:,}"
        )
        found.append(Problem("events_after_label", message, late_events))
    same = sorted(set(labels) & set(event_names))
    if same:
        found.append(
            _named("events_named_like_labels", f"event types named like a label, perhaps a leak: {len(same):,}", same)
        )
    return found


def _event_problems(everywhere: Sequence[str], inseparable: Sequence[tuple[list[str], int]]) -> list[Problem]:
    found = []
    if everywhere:
        message = f"event types in every sequence, whose presence explains nothing: {len(everywhere):,}"
        found.append(_named("events_everywhere", message, sorted(everywhere)))
    if inseparable:
        message = (
            f"groups of event types in exactly the same sequences, which only order can part: {len(inseparable):,}"
        )
        groups = [{"events": names, "sequences": count} for names, count in inseparable]
        found.append(Problem("inseparable_events", message, len(groups), tuple(groups[:MOST_NAMES])))
    return found


def _named(kind: str, message: str, names: Sequence[str]) -> Problem:
    return Problem(kind, message, len(names), tuple(names[:MOST_NAMES]))
