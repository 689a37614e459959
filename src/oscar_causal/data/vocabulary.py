"""The fixed list of event types and labels a model knows; rare and unseen events share one id, `unknown`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from oscar_causal.data.sequences import Dataset
from oscar_causal.errors import DataError, UsageError

PAD_ID = 0
UNKNOWN_ID = 1
START_ID = 2
SPECIAL_IDS = 3
"""Event types begin at this id."""


@dataclass(frozen=True)
class Vocabulary:
    """Events by falling frequency, labels by name. Model id of event k is `SPECIAL_IDS + k`.

    >>> names = Vocabulary(events=("boot", "login"), labels=("outage",))
    >>> names.size, names.event_ids["login"], names.name(4)
    (5, 4, 'login')
    """

    events: tuple[str, ...]
    labels: tuple[str, ...]

    @property
    def size(self) -> int:
        """Number of model ids V: padding, unknown, start, then the event types."""
        return SPECIAL_IDS + len(self.events)

    @cached_property
    def event_ids(self) -> Mapping[str, int]:
        """Event name -> model id."""
        return {name: SPECIAL_IDS + index for index, name in enumerate(self.events)}

    @cached_property
    def label_ids(self) -> Mapping[str, int]:
        """Label name -> label id."""
        return {name: index for index, name in enumerate(self.labels)}

    def name(self, event_id: int) -> str:
        """The event's name; the special ids have names in angle brackets."""
        if event_id < SPECIAL_IDS:
            return ("<pad>", "<unknown>", "<start>")[event_id]
        return self.events[event_id - SPECIAL_IDS]

    def event_table(self, names: Sequence[str]) -> npt.NDArray[np.int32]:
        """Model id of each of these names (a dataset's `event_names`); unknown names become `UNKNOWN_ID`."""
        return np.array([self.event_ids.get(name, UNKNOWN_ID) for name in names], np.int32)

    def label_table(self, names: Sequence[str]) -> npt.NDArray[np.int32]:
        """Label id of each of these names; -1 where this vocabulary lacks it."""
        return np.array([self.label_ids.get(name, -1) for name in names], np.int32)

    def to_json(self) -> dict[str, Any]:
        """The content of `vocabulary.json`."""
        return {"events": list(self.events), "labels": list(self.labels)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Vocabulary:
        """Read `vocabulary.json`; anything but two lists of different names is an error."""
        lists = []
        for key in ("events", "labels"):
            names = value.get(key)
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise DataError(f"vocabulary: expected {key!r} to be a list of names, got {type(names).__name__}")
            if len(set(names)) != len(names):
                raise DataError(f"vocabulary: expected {key!r} without repeats")
            lists.append(tuple(names))
        return cls(*lists)


def build_vocabulary(dataset: Dataset, *, min_count: int = 1, max_events: int | None = None) -> Vocabulary:
    """Collect the events seen at least `min_count` times (at most `max_events` of them) and all labels.

    >>> from oscar_causal.data.sequences import from_records
    >>> data = from_records([{"sequence_id": "1", "events": ["A", "B", "B"], "times": [0, 1, 2], "labels": ["y"]}])
    >>> build_vocabulary(data, min_count=2).events
    ('B',)
    """
    if min_count < 1:
        raise UsageError(f"min_count: expected at least 1, got {min_count}")
    counts = np.bincount(dataset.events.ids, minlength=len(dataset.event_names))
    order = np.argsort(-counts, kind="stable")  # names are sorted, so ties go by name
    kept = [dataset.event_names[i] for i in order if counts[i] >= min_count]
    used_labels = set(np.unique(dataset.labels.ids).tolist())
    labels = tuple(name for index, name in enumerate(dataset.label_names) if index in used_labels)
    return Vocabulary(tuple(kept[:max_events]), labels)
