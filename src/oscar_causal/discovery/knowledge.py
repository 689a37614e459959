"""Background knowledge: what the user knows for sure about events and labels. It is obeyed, whatever the evidence says.

The file is JSON. Lists at the top hold for every label, those under `labels` for one:

    {"excluded": ["odometer"], "forbidden": ["B1000"], "required": [],
     "labels": {"steering degraded": {"forbidden": ["U0428"], "required": ["C0051"]}}}
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from oscar_causal.data.vocabulary import Vocabulary
from oscar_causal.discovery.boundary import EventEvidence
from oscar_causal.discovery.contexts import Bool
from oscar_causal.errors import DataError, UsageError


@dataclass(frozen=True)
class LabelKnowledge:
    """What is known about one label.

    >>> Knowledge(labels={"outage": LabelKnowledge(required=("disk slow",))}).labels["outage"].required
    ('disk slow',)
    """

    forbidden: tuple[str, ...] = ()
    """Events that cannot be in its boundary: not tested for it."""
    required: tuple[str, ...] = ()
    """Events that are in its boundary wherever they occur; their evidence is measured and shown."""


@dataclass(frozen=True)
class Knowledge:
    """Events excluded, forbidden or required, for all labels or for one.

    >>> known = Knowledge(forbidden=("A",), labels={"fault": LabelKnowledge(required=("B",))})
    >>> known.forbidden_for("fault"), known.required_for("fault"), known.required_for("other")
    ({'A'}, {'B'}, set())
    """

    excluded: tuple[str, ...] = ()
    """Never replaced and never tested. Contexts are shared by all labels, so this cannot be said for one of them."""
    forbidden: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    labels: Mapping[str, LabelKnowledge] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for label in (None, *self.labels):
            where = "" if label is None else f" for label {label!r}"
            for word, barred in (("forbidden", self.forbidden_for(label)), ("excluded", {*self.excluded})):
                both = barred & self.required_for(label)
                if both:
                    raise UsageError(f"knowledge: event {min(both)!r} is both {word} and required{where}")

    def forbidden_for(self, label: str | None) -> set[str]:
        """Events that cannot be in the boundary of this label (None: of any)."""
        return {*self.forbidden, *self._of(label).forbidden}

    def required_for(self, label: str | None) -> set[str]:
        """Events that are in the boundary of this label (None: of any)."""
        return {*self.required, *self._of(label).required}

    def _of(self, label: str | None) -> LabelKnowledge:
        return LabelKnowledge() if label is None else self.labels.get(label, LabelKnowledge())

    def check(self, vocabulary: Vocabulary) -> None:
        """Refuse names that a model does not know: a typing error must not pass for knowledge."""
        for label in self.labels:
            if label not in vocabulary.label_ids:
                raise UsageError(f"knowledge: the model does not know the label {label!r}")
        parts = [self.excluded, self.forbidden, self.required]
        parts += [names for part in self.labels.values() for names in (part.forbidden, part.required)]
        unknown = sorted({name for names in parts for name in names if name not in vocabulary.event_ids})
        if unknown:
            more = f" (and {len(unknown) - 1} more)" if len(unknown) > 1 else ""
            raise UsageError(f"knowledge: the model does not know the event {unknown[0]!r}{more}")

    def forbidden_mask(self, labels: Sequence[str], events: Sequence[str]) -> Bool:
        """Which events are not to be tested for which label: (labels, events)."""
        lists = [self.forbidden_for(label) for label in labels]
        rows = [[event in names for event in events] for names in lists]
        return np.array(rows, bool).reshape(len(labels), len(events))

    def obey(
        self, label: str, evidence: Iterable[EventEvidence], present: Mapping[str, tuple[int, ...]]
    ) -> tuple[tuple[EventEvidence, ...], list[str]]:
        """Evidence of one label with this knowledge applied, and a flag for every required event.

        `present`: positions of each event of the sequence. A required event that nothing was measured about is listed
        without figures.
        """
        barred, wanted = {*self.excluded, *self.forbidden_for(label)}, self.required_for(label)
        kept = {item.event: item for item in evidence if item.event not in barred}
        flags = []
        for event in sorted(wanted & set(present)):
            item = kept.get(event)
            flags.append(f"{event}: required by background knowledge; evidence: {item.verdict if item else 'none'}")
            item = item or EventEvidence(event, present[event], "not resolvable", math.nan)
            if item.accepted:
                kept[event] = replace(item, source="both")
            else:
                kept[event] = replace(item, verdict="cause", source="background knowledge")
        return tuple(kept.values()), flags


def read_knowledge(path: Path | str) -> Knowledge:
    """Read a file of background knowledge; anything unexpected in it is one clear line.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as place:
    ...     _ = Path(place, "known.json").write_text('{"excluded": ["odometer"]}')
    ...     read_knowledge(f"{place}/known.json").excluded
    ('odometer',)
    """
    path = Path(path)
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: expected a JSON file of background knowledge, cannot read it: {error}") from error
    top = _fields(value, ("excluded", "forbidden", "required", "labels"), f"{path}")
    labels = _fields(top.pop("labels", {}), None, f"{path}: labels")
    parts = {}
    for label, part in labels.items():
        where = f"{path}: labels: {label!r}"
        lists = _fields(part, ("forbidden", "required"), where)
        parts[label] = LabelKnowledge(**{name: _names(lists[name], f"{where}: {name}") for name in lists})
    try:
        return Knowledge(**{name: _names(top[name], f"{path}: {name}") for name in top}, labels=parts)
    except UsageError as error:
        raise DataError(f"{path}: {error}") from error


def _fields(value: Any, expected: tuple[str, ...] | None, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DataError(f"{where}: expected a JSON object, got {type(value).__name__}")
    odd = [name for name in value if expected is not None and name not in expected]
    if odd and expected is not None:
        raise DataError(f"{where}: expected only {', '.join(expected)}, got {odd[0]!r}")
    return dict(value)


def _names(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise DataError(f"{where}: expected a list of event names, got {json.dumps(value)[:60]}")
    return tuple(value)
