"""What an outside set is: sequences, folds that no method may look across, truth, its own figures, published ones."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from oscar_causal.errors import DataError
from oscar_causal.score.bench.ladder.interface import Answers, Truth, same

FOLDS = 5


@dataclass(frozen=True)
class Published:
    """A figure from elsewhere."""

    method: str
    figure: str
    value: float
    remark: str


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
