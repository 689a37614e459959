"""Grouped rows become sequences: sorted by time (ties keep the order of the file), measured from their start.

`gap`: with label times, let T be the earliest label time of a sequence; events at or after T, and events less than
`gap` seconds before T, are left out. Sequences without a timed label stay whole; sequences that lose every event are
dropped and named.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from oscar_causal.data.importers.cells import Mask, mask_of
from oscar_causal.data.importers.grouping import Group, Int64, Problem, clean
from oscar_causal.data.schema import sequences_schema


@dataclass(frozen=True)
class Assembled:
    """The sequences of one partition, in the order of their first row."""

    table: pa.Table
    first: Int64
    """Running number of the first row of each sequence."""
    problems: list[Problem]
    dropped: list[Problem]
    """Sequences left without events by `gap`."""
    left_out: int
    """Events left out by `gap`."""


def assemble(group: Group) -> Assembled:
    """Sequences from the rows of one partition."""
    group, problems = clean(group)
    keep = ~_too_late(group)[group.order]
    order = group.order[keep]
    lengths = np.bincount(group.codes[order], minlength=len(group.ids))
    alive = lengths > 0
    firsts = _first_ordinals(group)
    table = _table(group, order, lengths[alive], alive)
    dropped = _dropped(group, np.flatnonzero(~alive), firsts)
    return Assembled(table, firsts[alive], problems, dropped, int(np.sum(~keep)))


def _first_ordinals(group: Group) -> Int64:
    first = np.empty(len(group.ids), np.int64)
    first[group.codes[::-1]] = group.events["ordinal"].to_numpy()[::-1]
    return first


def _too_late(group: Group) -> Mask:
    """Event rows that `gap` leaves out."""
    late = np.zeros(len(group.events), bool)
    if group.plan.gap is None or group.labels is None:
        return late
    names, known = group.labels["label"].combine_chunks(), group.labels["time"].combine_chunks()
    rows = np.flatnonzero(mask_of(names.is_valid()) & mask_of(known.is_valid()))
    if not len(rows):
        return late
    times, codes = known.take(pa.array(rows)).to_numpy(), group.label_codes[rows]
    order = np.lexsort((times, codes))
    sequences, at = np.unique(codes[order], return_index=True)
    outcome = np.zeros(len(group.ids), times.dtype)
    outcome[sequences] = times[order][at]
    has = np.isin(group.codes, sequences)
    ahead = outcome[group.codes] - group.events["time"].to_numpy()
    late[has] = ((ahead <= 0) | (group.plan.clock.seconds(ahead) < group.plan.gap))[has]
    return late


def _dropped(group: Group, sequences: Int64, firsts: Int64) -> list[Problem]:
    problem = f"no event of this sequence is left before its outcome with --gap {group.plan.gap or 0:g}"
    column = group.plan.roles.time
    return [Problem(False, int(firsts[i]), column, problem, group.ids[int(i)].as_py()) for i in sequences]


def _table(group: Group, order: Int64, lengths: Int64, alive: Mask) -> pa.Table:
    rows, roles, label_roles = pa.array(order), group.plan.roles, group.plan.label_roles
    offsets = _offsets(lengths)
    since = group.plan.clock.seconds(group.events["time"].to_numpy() - group.origins[group.codes])
    columns = {
        "sequence_id": group.ids.filter(pa.array(alive)),
        "subject_id": _subjects(group).filter(pa.array(alive)),
        "start": _starts(group).filter(pa.array(alive)),
        "events": pa.ListArray.from_arrays(offsets, group.events["event"].combine_chunks().take(rows)),
        "times": pa.ListArray.from_arrays(offsets, pa.array(since[order] + 0.0)),
    }
    for name in roles.channels:
        values = group.events[f"channel:{name}"].combine_chunks().take(rows)
        columns[name] = pa.ListArray.from_arrays(offsets, values)
    static = [key for key in group.values if key.startswith("static:")]
    if static:
        known = [group.values[key][0].filter(pa.array(alive)) for key in static]
        columns["static"] = static_maps([key.removeprefix("static:") for key in static], known)
    columns["labels"], label_times = _labels(group, alive)
    if label_roles is not None and label_roles.time is not None:
        columns["label_times"] = label_times
    return pa.table(
        columns, schema=sequences_schema(roles.channels, static=bool(static), label_times="label_times" in columns)
    )


def _offsets(lengths: npt.NDArray[np.int64]) -> pa.Array:
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())


def _subjects(group: Group) -> pa.Array:
    return group.values["subject"][0] if "subject" in group.values else group.ids


def _starts(group: Group) -> pa.Array:
    utc = pa.timestamp("us", tz="UTC")
    if group.plan.clock.timestamps:
        return pa.array(group.origins).cast(utc)
    return group.starts if group.starts is not None else pa.nulls(len(group.ids), utc)


def static_maps(keys: list[str], values: list[pa.Array]) -> pa.MapArray:
    """One map per sequence from one array per key; null = the map lacks this key.

    >>> static_maps(["age", "site"], [pa.array(["7", None]), pa.array(["A", "B"])]).to_pylist()
    [[('age', '7'), ('site', 'A')], [('site', 'B')]]
    """
    count = len(values[0])
    known = np.stack([mask_of(value.is_valid()) for value in values], axis=1)  # (sequences, keys)
    cells = (np.arange(count)[:, None] + count * np.arange(len(keys)))[known]
    items = pa.concat_arrays(values).take(pa.array(cells))
    names = pa.array(keys, pa.string()).take(pa.array(np.tile(np.arange(len(keys)), (count, 1))[known]))
    return pa.MapArray.from_arrays(_offsets(known.sum(axis=1)), names, items)


def _labels(group: Group, alive: Mask) -> tuple[pa.Array, pa.Array]:
    """The lists of labels and of their times; null lists = unlabelled."""
    if group.plan.label_roles is None:
        count = int(alive.sum())
        return pa.nulls(count, pa.list_(pa.string())), pa.nulls(count, pa.list_(pa.float64()))
    codes, labelled = group.label_codes, np.full(len(group.ids), group.plan.label_roles.label is not None)
    if group.labels is None:
        rows = np.empty(0, np.int64)
    else:
        flags = mask_of(group.labels["labelled"].combine_chunks())
        labelled[codes[flags]], labelled[codes[~flags]] = True, False
        rows = np.flatnonzero(mask_of(group.labels["label"].combine_chunks().is_valid()) & alive[codes])
        rows = rows[np.argsort(codes[rows], kind="stable")]
    lengths = np.bincount(codes[rows], minlength=len(group.ids))[alive]
    null = pa.array(~labelled[alive])
    names, times = _label_values(group, rows)
    return tuple(pa.ListArray.from_arrays(_offsets(lengths), values, mask=null) for values in (names, times))


def _label_values(group: Group, rows: Int64) -> tuple[pa.Array, pa.Array]:
    if group.labels is None:
        return pa.array([], pa.string()), pa.array([], pa.float64())
    names = group.labels["label"].combine_chunks().take(pa.array(rows))
    times = group.labels["time"].combine_chunks().take(pa.array(rows))
    known = mask_of(times.is_valid())
    raw = pc.fill_null(times, 0).to_numpy(zero_copy_only=False)
    since = group.plan.clock.seconds(raw - group.origins[group.label_codes[rows]]) + 0.0
    return names, pa.array(since, mask=~known)
