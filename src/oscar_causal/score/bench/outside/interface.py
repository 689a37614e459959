"""What an outside set is: sequences, folds that no method may look across, truth, its own figures, published ones.

A method's `Answer` for a (sequence, label) pair names causes and inhibitors by event type; every set is scored by
`scoring.our_figures` and by the figures its field uses (`OutsideSet.own`).
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from oscar_causal.discovery.boundary import Boundary
from oscar_causal.errors import DataError
from oscar_causal.score.matching import Pair

Positions = Mapping[str, frozenset[int]]
"""Event type -> 0-based positions in the sequence."""
FOLDS = 5


@dataclass(frozen=True)
class Reasons:
    """What is true of one pair: event types that are there and caused the label; every other type did not."""

    causes: frozenset[str]
    unknown: frozenset[str] = frozenset()
    """Types of which the source does not tell: naming them is neither right nor wrong."""
    positions: Positions | None = None
    """Which occurrences of the causes mattered, where the source tells."""


Truth = Mapping[Pair, Reasons]


@dataclass(frozen=True)
class Answer:
    """What a method says of one pair."""

    causes: frozenset[str] = frozenset()
    inhibitors: frozenset[str] = frozenset()
    scores: Mapping[str, float] = field(default_factory=dict)
    """Type -> strength as a cause, of every type the method ranks, named or not."""
    positions: Positions = field(default_factory=dict)
    """Which occurrences of a cause the method means; a cause that is not in here: all."""


Answers = Mapping[Pair, Answer]


@dataclass(frozen=True)
class Published:
    """A figure from elsewhere."""

    method: str
    figure: str
    value: float
    remark: str


def same(event: str) -> str:
    """The event type itself is what is named."""
    return event


@dataclass(frozen=True)
class OutsideSet:
    """One set, ready to be split, explained and scored."""

    name: str
    sequences: pa.Table
    """In the columns of a dataset; `subject_id` is what a split must not cut."""
    fold: npt.NDArray[np.int64]
    """For each sequence the fold in which it is tested, by what learnt from all other folds; -1 = never tested."""
    truth: Truth
    """Every pair whose causes are known; those of tested sequences are scored, some of the others tune methods."""
    own: Callable[[Answers, Truth], Mapping[str, float]]
    """The figures of the set's own field, over the pairs of this truth."""
    published: tuple[Published, ...] = ()
    unit: Callable[[str], str] = same
    """What is scored instead of an event type, e.g. the variable of `variable=value`."""
    remarks: tuple[str, ...] = ()


def read_rows(path: Path, columns: Sequence[str]) -> list[dict[str, str]]:
    """The rows of a CSV file, plain or .gz, which must have these columns."""
    try:
        with gzip.open(path, "rt", newline="") if path.suffix == ".gz" else path.open(newline="") as file:
            reader = csv.DictReader(file)
            missing = [name for name in columns if name not in (reader.fieldnames or [])]
            if missing:
                raise DataError(f"{path}: expected column {missing[0]!r}, found {', '.join(reader.fieldnames or [])}")
            return list(reader)
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from error


def whole_number(row: Mapping[str, str], column: str, path: Path) -> int:
    """A column's value as a whole number."""
    return int(number(row, column, path))


def number(row: Mapping[str, str], column: str, path: Path) -> float:
    """A column's value as a number."""
    try:
        return float(row[column])
    except (TypeError, ValueError) as error:
        raise DataError(f"{path}: column {column!r}: expected a number, got {row[column]!r}") from error


def answers_of(boundaries: Iterable[Boundary]) -> dict[Pair, Answer]:
    """The verdicts of any method of this package as answers; ranked by its score, else by its effect."""
    answers = {}
    for found in boundaries:
        named: dict[str, set[str]] = {"cause": set(), "inhibitor": set()}
        for item in found.evidence:
            named.get(item.verdict, set()).add(item.event)
        ranked = [item for item in found.evidence if item.verdict != "inhibitor"]
        answers[found.sequence_id, found.label] = Answer(
            frozenset(named["cause"]),
            frozenset(named["inhibitor"]),
            {item.event: item.effect if item.score is None else item.score for item in ranked},
            {item.event: frozenset(item.mattered or item.positions) for item in found.evidence},
        )
    return answers
