"""The rows of one partition, grouped by sequence; rows that contradict each other are found here.

A row is judged against the rows before it: the second subject of a sequence is wrong, not the first. Taking out bad
rows can make others bad (a label whose sequence has lost its last event), so the search repeats until none is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from oscar_causal.data.importers.cells import Mask, mask_of
from oscar_causal.data.importers.clock import Clock
from oscar_causal.data.importers.rejects import shown
from oscar_causal.data.importers.roles import Attribute, EventRoles, LabelRoles
from oscar_causal.data.schema import MAX_SECONDS

Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True, order=True)
class Problem:
    """A bad row, by its running number; events before labels."""

    in_labels: bool
    ordinal: int
    column: str
    problem: str
    text: str


@dataclass(frozen=True)
class Plan:
    """What assembling needs to know."""

    clock: Clock
    roles: EventRoles
    label_roles: LabelRoles | None
    keep_origin: bool = False
    gap: float | None = None


@dataclass(frozen=True)
class Group:
    """Event and label rows of one partition, in the order of the files."""

    events: pa.Table
    labels: pa.Table | None
    plan: Plan

    @cached_property
    def _encoded(self) -> pa.DictionaryArray:
        return self.events["id"].combine_chunks().dictionary_encode()

    @property
    def ids(self) -> pa.Array:
        """The sequences, in the order of their first row."""
        return self._encoded.dictionary

    @cached_property
    def codes(self) -> Int64:
        """For each event row the index of its sequence."""
        return np.asarray(self._encoded.indices.to_numpy(zero_copy_only=False), np.int64)

    @cached_property
    def label_codes(self) -> Int64:
        """For each label row the index of its sequence; -1 = unknown."""
        if self.labels is None:
            return np.empty(0, np.int64)
        found = pc.index_in(self.labels["id"].combine_chunks(), value_set=self.ids)
        return np.asarray(pc.fill_null(found, -1).to_numpy(zero_copy_only=False), np.int64)

    @cached_property
    def order(self) -> Int64:
        """The event rows by sequence, then by time; ties keep the order of the files."""
        return np.lexsort((self.events["time"].to_numpy(), self.codes))

    @cached_property
    def first_times(self) -> npt.NDArray[Any]:
        """The earliest time of each sequence, in the clock's unit."""
        first = self.order[np.searchsorted(self.codes[self.order], np.arange(len(self.ids)))]
        return np.asarray(self.events["time"].to_numpy()[first])

    @cached_property
    def starts(self) -> pa.Array | None:
        """The given start of each sequence; None when no start column was named."""
        return self.values["start"][0] if "start" in self.values else None

    @cached_property
    def origins(self) -> npt.NDArray[Any]:
        """Time zero of each sequence, in the clock's unit."""
        if self.plan.clock.timestamps and self.starts is not None:
            given = self.starts.cast(pa.int64())
            return np.asarray(pc.coalesce(given, pa.array(self.first_times)).to_numpy(zero_copy_only=False))
        return np.zeros(len(self.ids)) if self.plan.keep_origin else self.first_times

    def attributes(self) -> list[tuple[Attribute, bool]]:
        """What belongs to whole sequences, and whether it stands in the label table."""
        here = [(item, False) for item in self.plan.roles.attributes]
        return here + [(item, True) for item in (self.plan.label_roles.attributes if self.plan.label_roles else ())]

    @cached_property
    def values(self) -> dict[str, tuple[pa.Array, Mask]]:
        """For each attribute the first value of each sequence (null = none), and the rows that say something else."""
        return {item.key: self._values(item, in_labels) for item, in_labels in self.attributes()}

    def _values(self, item: Attribute, in_labels: bool) -> tuple[pa.Array, Mask]:
        table, codes = (self.labels, self.label_codes) if in_labels else (self.events, self.codes)
        if table is None:
            return pa.nulls(len(self.ids), pa.timestamp("us", "UTC") if item.key == "start" else pa.string()), codes > 0
        values = table[item.key].combine_chunks()
        known = np.flatnonzero(mask_of(values.is_valid()) & (codes >= 0))[::-1]
        first = np.full(len(self.ids), -1, np.int64)
        first[codes[known]] = known  # backwards: the first one stays
        value = values.take(pa.array(first, mask=first < 0))
        other = mask_of(pc.not_equal(values, value.take(pa.array(codes, mask=codes < 0))))
        return value, other

    def without(self, problems: list[Problem]) -> Group:
        """The group without the bad rows."""
        rows = [np.array([p.ordinal for p in problems if p.in_labels == side], np.int64) for side in (False, True)]
        events = self.events.filter(pa.array(~np.isin(self.events["ordinal"].to_numpy(), rows[0])))
        labels = self.labels
        if labels is not None:
            labels = labels.filter(pa.array(~np.isin(labels["ordinal"].to_numpy(), rows[1])))
        return Group(events, labels, self.plan)


def clean(group: Group) -> tuple[Group, list[Problem]]:
    """The group without rows that contradict others, and these rows."""
    found: list[Problem] = []
    while problems := _problems(group):
        found += problems
        group = group.without(problems)
    return group, found


def _problems(group: Group) -> list[Problem]:
    if not len(group.events):
        return _unknown_sequences(group)
    found = [*_contradictions(group), *_without_subject(group), *_impossible_times(group)]
    if group.labels is not None:
        found += [*_unknown_sequences(group), *_double_labels(group), *_labelled_twice(group)]
    return list({(p.in_labels, p.ordinal): p for p in reversed(found)}.values())


def _contradictions(group: Group) -> list[Problem]:
    found = []
    for item, in_labels in group.attributes():
        value, other = group.values[item.key]
        table, codes = (group.labels, group.label_codes) if in_labels else (group.events, group.codes)
        for row in np.flatnonzero(other).tolist():
            assert table is not None
            here, there = table[item.key][row].as_py(), value[int(codes[row])].as_py()
            sequence = shown(group.ids[int(codes[row])].as_py())
            problem = f"expected {shown(there)} as before in sequence {sequence}, got {shown(here)}"
            found.append(Problem(in_labels, table["ordinal"][row].as_py(), item.column, problem, str(here)))
    return found


def _without_subject(group: Group) -> list[Problem]:
    if "subject" not in group.values:
        return []
    (column,) = (item.column for item, _ in group.attributes() if item.key == "subject")
    lacking = mask_of(group.values["subject"][0].is_null())
    found = []
    for row in np.flatnonzero(lacking[group.codes]).tolist():
        problem = f"expected a subject for sequence {shown(group.events['id'][row].as_py())}, got nothing"
        found.append(Problem(False, group.events["ordinal"][row].as_py(), column, problem, ""))
    return found


def _impossible_times(group: Group) -> list[Problem]:
    since = group.plan.clock.seconds(group.events["time"].to_numpy() - group.origins[group.codes])
    found = []
    for row in np.flatnonzero((since < 0) | (since > MAX_SECONDS)).tolist():
        wrong = "a time not before the start" if since[row] < 0 else f"a time within {MAX_SECONDS:g} s of the first"
        sequence = shown(group.events["id"][row].as_py())
        problem = f"expected {wrong} of sequence {sequence}, got one {since[row]:g} s from it"
        text = str(group.events["time"][row].as_py())
        found.append(Problem(False, group.events["ordinal"][row].as_py(), group.plan.roles.time, problem, text))
    return found


def _unknown_sequences(group: Group) -> list[Problem]:
    if group.labels is None or group.plan.label_roles is None:
        return []
    found = {}
    for row in np.flatnonzero(group.label_codes < 0).tolist():
        name, ordinal = group.labels["id"][row].as_py(), group.labels["ordinal"][row].as_py()
        problem = f"expected a sequence that has events, got {shown(name)}"
        found[ordinal] = Problem(True, ordinal, group.plan.label_roles.sequence, problem, name)
    return list(found.values())


def _double_labels(group: Group) -> list[Problem]:
    """The same label twice in a long table, the same sequence twice in a wide one."""
    assert group.labels is not None
    assert group.plan.label_roles is not None
    column, long = group.plan.label_roles.label or group.plan.label_roles.sequence, bool(group.plan.label_roles.label)
    labels = group.labels["label"].combine_chunks()
    rows = np.flatnonzero(mask_of(labels.is_valid() if long else labels.is_null()) & (group.label_codes >= 0))
    names = labels.take(pa.array(rows)).dictionary_encode(null_encoding="encode").indices.to_numpy(zero_copy_only=False)
    order = np.lexsort((names, group.label_codes[rows]))
    same = (np.diff(names[order]) == 0) & (np.diff(group.label_codes[rows][order]) == 0)
    found = []
    for row in np.sort(rows[order[1:][same]]).tolist():
        sequence, label = group.labels["id"][row].as_py(), labels[row].as_py()
        what = f"label {shown(label)} of sequence {shown(sequence)}" if long else f"sequence {shown(sequence)}"
        ordinal = group.labels["ordinal"][row].as_py()
        found.append(Problem(True, ordinal, column, f"expected it once, got {what} again", label or sequence))
    return found


def _labelled_twice(group: Group) -> list[Problem]:
    """`labelled` = 0 for a sequence that has labels."""
    assert group.labels is not None
    if group.plan.label_roles is None or group.plan.label_roles.labelled is None:
        return []
    known = group.label_codes >= 0
    denied = ~mask_of(group.labels["labelled"].combine_chunks()) & known
    named = mask_of(group.labels["label"].combine_chunks().is_valid()) & known
    wrong = denied & np.isin(group.label_codes, group.label_codes[named])
    found = []
    for row in np.flatnonzero(wrong).tolist():
        problem = f"expected 1 for sequence {shown(group.labels['id'][row].as_py())}, which has labels, got 0"
        ordinal = group.labels["ordinal"][row].as_py()
        found.append(Problem(True, ordinal, group.plan.label_roles.labelled, problem, "0"))
    return found
