"""Sufficient statistics of one-shot evidence over any number of sequences, that merge in any order to the same bits.

Every number is a whole one: counts, and sums of values from -1 to 1 in fixed point (`ONE` = 1.0), so adding them knows
no rounding. Sequences are kept apart by *group* = hash(subject) mod 64: the spread between groups is the spread between
subjects (clustered errors), and a subject is left out of its own prior by leaving out its groups' fold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from oscar_causal.data.sequences import Dataset
from oscar_causal.data.subjects import subject_hashes
from oscar_causal.discovery.results import part_files, read_parts
from oscar_causal.errors import FolderError, UsageError

GROUPS = 64
FOLDS = 8
"""The fold of a group is its number mod 8."""
ONE = 1 << 30
"""1.0 in fixed point: 2^33 sequences fit into 64 bits."""
SUBJECT_SEED = 20_483
"""Groups are hashed apart from the splits that training makes with the same subjects."""
NO_WINDOW = -1
"""The window of sequences without a start."""
CONTROL = ""
"""Stands for the event in `cells` where an event was looked at that nothing speaks for."""
DAY_US = 86_400_000_000
SHORTEST_WINDOW, LONGEST_WINDOW = 0.01, 36_525.0
"""Days: a quarter of an hour to a century."""

PAIR_KEYS = ["label", "event", "window", "group"]
PAIR_SUMS = ["present", "tested", "effect", "effect_square", "noise", "noisy", "causes", "inhibitors"]
CELL_KEYS = ["label", "event", "group", "cell"]
LABEL_KEYS = ["label", "window", "group"]
LABEL_SUMS = ["sequences", "probability", "untrusted", "seen", "unlabelled", "absent"]
PATTERN_KEYS = ["label", "boundary", "pattern", "group"]
SCHEMAS = {
    "pairs": (PAIR_KEYS, PAIR_SUMS),
    "cells": (CELL_KEYS, ["count"]),
    "labels": (LABEL_KEYS, LABEL_SUMS),
    "patterns": (PATTERN_KEYS, ["sequences", "positives"]),
}
"""Table -> (keys, sums). `pairs`: sequences with a row of evidence; how many were tested; sums over the tested ones of
effect, its square and its squared standard error (over `noisy` of them). `cells`: close looks, see `cells`. `labels`:
`unlabelled` of the sequences have no recorded labels (the model's word alone); `absent` further ones were explained
although the label is recorded not to have come, and count nowhere else. `patterns`: which features of a boundary (a
hash of them) held, in hexadecimal, see `reading`."""


@dataclass(frozen=True)
class FleetEvidence:
    """Tables of whole numbers, sorted by their keys."""

    pairs: pa.Table
    cells: pa.Table
    labels: pa.Table
    patterns: pa.Table = field(default_factory=lambda: _schema("patterns").empty_table())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FleetEvidence) and all(
            getattr(self, name).equals(getattr(other, name)) for name in SCHEMAS
        )

    __hash__ = None  # type: ignore[assignment]


def merge(parts: Iterable[FleetEvidence]) -> FleetEvidence:
    """Add up. The result depends on the set of parts alone, not on their order or how they were merged before."""
    listed = list(parts)
    return FleetEvidence(**{name: _sum(name, [getattr(part, name) for part in listed]) for name in SCHEMAS})


def empty_evidence() -> FleetEvidence:
    """Nothing yet; the neutral element of `merge`."""
    return FleetEvidence(**{name: _schema(name).empty_table() for name in SCHEMAS})


@dataclass(frozen=True)
class Whereabouts:
    """Group and window of each sequence of a dataset, by sequence id."""

    table: pa.Table

    @classmethod
    def of(cls, dataset: Dataset, window_days: float | None = None) -> Whereabouts:
        """Windows are spans of so many days since 1970; None = all in one."""
        columns = {
            "sequence_id": dataset.sequence_ids,
            "group": pa.array(subject_groups(dataset.subject_ids), pa.int32()),
            "window": pa.array(start_windows(dataset.start, window_days), pa.int32()),
        }
        return cls(pa.table(columns))


def subject_groups(subject_ids: pa.Array) -> npt.NDArray[np.int64]:
    """hash(subject) mod 64.

    >>> groups = subject_groups(pa.array(["car 1", "car 2", "car 1"]))
    >>> bool(groups[0] == groups[2])
    True
    """
    return (subject_hashes(subject_ids, seed=SUBJECT_SEED) % np.uint64(GROUPS)).astype(np.int64)


def start_windows(start: pa.Array, window_days: float | None) -> npt.NDArray[np.int64]:
    """Number of the window in which each sequence begins; `NO_WINDOW` where that is unknown."""
    if window_days is None:
        return np.zeros(len(start), np.int64)
    check_window(window_days)
    micros = start.cast(pa.int64())
    known = ~micros.is_null().to_numpy(zero_copy_only=False)
    days = pc.fill_null(micros, 0).to_numpy(zero_copy_only=False) / DAY_US
    return np.where(known, np.floor(days / window_days), NO_WINDOW).astype(np.int64)


def check_window(days: float) -> None:
    """Refuse what is no length of a window."""
    if not SHORTEST_WINDOW <= days <= LONGEST_WINDOW:
        raise UsageError(f"window: expected {SHORTEST_WINDOW:g} to {LONGEST_WINDOW:g} days, got {days:g}")


def collect_results(results: Path | str, where: Whereabouts) -> Iterator[FleetEvidence]:
    """The statistics of a results folder, one part file at a time."""
    names = [[path.name for path in part_files(results, table)] for table in ("verdicts", "evidence")]
    if names[0] != names[1]:
        lone = sorted({*names[0]} ^ {*names[1]})[0]
        raise FolderError(f"{results}: expected the same parts in verdicts/ and evidence/, found {lone} in one alone")
    for verdicts, evidence in zip(*(read_parts(results, table) for table in ("verdicts", "evidence")), strict=True):
        yield collect(verdicts, evidence, where, source=str(results))


def collect(verdicts: pa.Table, evidence: pa.Table, where: Whereabouts, *, source: str = "results") -> FleetEvidence:
    """The statistics of some rows of `verdicts` and `evidence`; `source` is named where they cannot be.

    Labels that the model predicts where none are recorded count like recorded ones and are marked as `unlabelled`;
    labels recorded not to have come are counted as `absent` and left out of everything else.
    """
    at = pc.index_in(verdicts["sequence_id"], where.table["sequence_id"])
    if at.null_count:
        raise FolderError(f"{source}: {at.null_count} explained sequences are not in the dataset")
    _check_numbers(verdicts, evidence, source)
    orphans = pc.index_in(_pair_key(evidence), _pair_key(verdicts)).null_count
    if orphans:
        raise FolderError(f"{source}: {orphans} rows of evidence are on pairs that verdicts/ does not hold")
    every = verdicts.select(["sequence_id", "label", "observed", "probability", "trusted", "seen_in_training"])
    for name in ("group", "window"):
        every = every.append_column(name, where.table[name].take(at))
    came = pc.fill_null(every["observed"], True)
    placed, absent = every.filter(came), every.filter(pc.invert(came))
    of_verdict = pc.index_in(_pair_key(evidence), _pair_key(placed))
    known = pc.is_valid(of_verdict)
    rows = evidence.filter(known)
    for name in ("group", "window"):
        rows = rows.append_column(name, placed[name].take(of_verdict.filter(known)))
    return FleetEvidence(
        pairs=_sum("pairs", [_pair_rows(rows)]),
        cells=empty_evidence().cells,
        labels=_sum("labels", [_label_rows(placed), _absent_rows(absent)]),
    )


def _check_numbers(verdicts: pa.Table, evidence: pa.Table, source: str) -> None:
    """Sums in fixed point take numbers from -1 to 1 only; a name that is missing cannot be counted."""
    tested = ~np.isnan(_floats(evidence["p_value"]))
    for name, values, low in (
        ("effect", _floats(evidence["effect"])[tested], -1.0),
        ("se", pc.drop_null(evidence["se"]).to_numpy(), 0.0),
        ("probability", pc.drop_null(verdicts["probability"]).to_numpy(), 0.0),
    ):
        high = np.inf if name == "se" else 1.0
        wrong = values[~((values >= low) & (values <= high))]
        if len(wrong):
            raise FolderError(f"{source}: {name}: expected numbers from {low:g} to {high:g}, got {wrong[0]:g}")
    for name, column in (("label", verdicts["label"]), ("event", evidence["event"])):
        if column.null_count:
            raise FolderError(f"{source}: {name}: expected a name in every row, found none in {column.null_count}")


def _pair_key(table: pa.Table) -> pa.ChunkedArray:
    return pc.binary_join_element_wise(table["sequence_id"], table["label"], "\0")


def look_evidence(label: pa.Array, event: pa.Array, group: Any, cell: Any) -> FleetEvidence:
    """Statistics of close looks alone: one row per (sequence, label, event) that was looked at."""
    columns = {"label": label, "event": event, "group": group, "cell": cell, "count": np.ones(len(label), np.int64)}
    return FleetEvidence(
        pairs=empty_evidence().pairs,
        cells=_sum("cells", [pa.table(columns, schema=_schema("cells"))]),
        labels=empty_evidence().labels,
    )


def pattern_evidence(parts: Iterable[dict[str, Any]]) -> FleetEvidence:
    """Statistics of patterns alone: each part has the columns of `patterns`."""
    tables = [pa.table(part, schema=_schema("patterns")) for part in parts]
    return replace(empty_evidence(), patterns=_sum("patterns", tables))


def _pair_rows(rows: pa.Table) -> pa.Table:
    tested = ~np.isnan(_floats(rows["p_value"]))
    effect, error = _floats(rows["effect"]), _floats(rows["se"])
    noisy = tested & ~np.isnan(error)
    verdict = rows["verdict"]
    columns: dict[str, Any] = {name: rows[name] for name in PAIR_KEYS}
    columns |= {
        "present": np.ones(len(rows), np.int64),
        "tested": tested.astype(np.int64),
        "effect": fixed(np.where(tested, effect, 0.0)),
        "effect_square": fixed(np.where(tested, effect**2, 0.0)),
        "noise": fixed(np.where(noisy, np.minimum(error, 1.0) ** 2, 0.0)),
        "noisy": noisy.astype(np.int64),
        "causes": pc.equal(verdict, "cause").cast(pa.int64()),
        "inhibitors": pc.equal(verdict, "inhibitor").cast(pa.int64()),
    }
    return pa.table(columns, schema=_schema("pairs"))


def _label_rows(verdicts: pa.Table) -> pa.Table:
    columns: dict[str, Any] = {name: verdicts[name] for name in LABEL_KEYS}
    columns |= {
        "sequences": np.ones(len(verdicts), np.int64),
        "probability": fixed(np.nan_to_num(_floats(verdicts["probability"]))),
        "untrusted": pc.fill_null(pc.equal(verdicts["trusted"], False), False).cast(pa.int64()),
        "seen": pc.fill_null(verdicts["seen_in_training"], False).cast(pa.int64()),
        "unlabelled": pc.is_null(verdicts["observed"]).cast(pa.int64()),
        "absent": np.zeros(len(verdicts), np.int64),
    }
    return pa.table(columns, schema=_schema("labels"))


def _absent_rows(verdicts: pa.Table) -> pa.Table:
    nothing = dict.fromkeys(LABEL_SUMS, np.zeros(len(verdicts), np.int64))
    columns = {name: verdicts[name] for name in LABEL_KEYS} | nothing | {"absent": np.ones(len(verdicts), np.int64)}
    return pa.table(columns, schema=_schema("labels"))


def fixed(values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Numbers from -1 to 1 in fixed point, rounded to the nearest.

    >>> fixed(np.array([1.0, -0.5])).tolist() == [ONE, -ONE // 2]
    True
    """
    return np.rint(values * ONE).astype(np.int64)


def _sum(name: str, tables: list[pa.Table]) -> pa.Table:
    keys, sums = SCHEMAS[name]
    stacked = pa.concat_tables([*tables, _schema(name).empty_table()])
    added = stacked.group_by(keys, use_threads=False).aggregate([(column, "sum") for column in sums])
    added = added.rename_columns([column.removesuffix("_sum") for column in added.column_names])
    ordered = added.select([*keys, *sums]).sort_by([(key, "ascending") for key in keys])
    return ordered.cast(_schema(name)).combine_chunks()


def _schema(name: str) -> pa.Schema:
    keys, sums = SCHEMAS[name]
    kinds = [(key, pa.string() if key in ("label", "event", "boundary", "pattern") else pa.int32()) for key in keys]
    return pa.schema([*kinds, *((column, pa.int64()) for column in sums)])


def _floats(column: pa.ChunkedArray) -> npt.NDArray[np.float64]:
    return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)
