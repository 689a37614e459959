"""The global result of a classical algorithm: one Markov boundary for each label, with how it came about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import NoneType
from typing import Any

from oscar_causal.data.rules import event_names, parse
from oscar_causal.errors import FolderError

_KINDS: dict[Any, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "bool": (bool,),
    "float": (float, int),
    "float | None": (float, int, NoneType),
    "str | None": (str, NoneType),
    "tuple[Member, ...]": (tuple,),
}
"""What a line of `boundaries.jsonl` may hold for a field of this type."""


@dataclass(frozen=True)
class Member:
    """One feature of a boundary, with the evidence for it given all the other members."""

    feature: str
    """As a rule: an event (`A`), a count (`A >= 2`), an order (`A then B within 600s`)."""
    statistic: float
    """G² or χ² given the other members; G² / 2n is the conditional mutual information in nats."""
    p_value: float
    """Of that test, not corrected for the search that chose the member: a ranking, not an error rate."""
    effect: float | None
    """Difference in the label's frequency with and without the feature, the other members held fixed, averaged over the
    labelled sequences. None where the feature never varies there."""
    effect_se: float | None
    role: str | None
    """parent, child, spouse or undirected, where the algorithm learns it."""

    @property
    def events(self) -> tuple[str, ...]:
        """The event types of the feature."""
        return event_names(parse(self.feature))


@dataclass(frozen=True)
class GlobalBoundary:
    """The Markov boundary of one label in a whole dataset."""

    label: str
    members: tuple[Member, ...]
    rows: int
    """Labelled sequences that were counted."""
    positives: int
    """Those among them with the label."""
    tests: int
    """Conditional-independence tests made."""
    complete: bool
    """False when a time limit came first; the members are then what was found so far."""
    seconds: float

    @property
    def events(self) -> tuple[str, ...]:
        """All event types of the boundary, in the order they were found."""
        return tuple(dict.fromkeys(name for member in self.members for name in member.events))

    @property
    def statistics(self) -> tuple[float, ...]:
        """Of the members."""
        return tuple(member.statistic for member in self.members)

    @property
    def p_values(self) -> tuple[float, ...]:
        """Of the members."""
        return tuple(member.p_value for member in self.members)

    def to_json(self) -> dict[str, Any]:
        """One line of `boundaries.jsonl`."""
        return {**vars(self), "members": [dict(vars(member)) for member in self.members]}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> GlobalBoundary:
        """Read a line of `boundaries.jsonl`; anything else is a FolderError."""
        try:
            members = tuple(_checked(Member(**member)) for member in value["members"])
            found: GlobalBoundary = _checked(cls(**{**value, "members": members}))
            return found
        except (KeyError, TypeError) as error:
            raise FolderError(f"boundaries.jsonl: expected the line of a boundary, got {str(value)[:80]}") from error


def _checked(item: Any) -> Any:
    for field in fields(item):
        if not isinstance(getattr(item, field.name), _KINDS[field.type]):
            raise TypeError(field.name)
    return item
