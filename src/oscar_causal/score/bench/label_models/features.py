"""Sequences as tables for models that read no sequences: counts, recencies, last values, static covariates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from oscar_causal.data.batches import Encoded
from oscar_causal.data.sequences import Dataset, Float64
from oscar_causal.data.vocabulary import SPECIAL_IDS

Float32 = npt.NDArray[np.float32]
TYPES = 512
"""Columns are made of the most frequent event types, at most so many (ids of a vocabulary are sorted so)."""
LEAST_SEEN = 10
"""A value of a static covariate has a column of its own from so many training sequences on."""


def counts(encoded: Encoded, types: int) -> Float32:
    """(n, types): occurrences of each of the most frequent event types."""
    column = encoded.events.ids - SPECIAL_IDS
    known = (column >= 0) & (column < types)
    table = np.zeros((len(encoded), types), np.float32)
    np.add.at(table, (encoded.events.rows()[known], column[known]), 1)
    return table


def recencies(encoded: Encoded, types: int) -> Float32:
    """(n, types): seconds from the last occurrence to the end of the record; NaN where there is none."""
    rows = encoded.events.rows()
    age = encoded.times[encoded.events.offsets[1:] - 1][rows] - encoded.times
    return _last(encoded, age, types)


def last_values(encoded: Encoded, types: int) -> Float32:
    """(n, types * channels): channel values at the last occurrence of each type; NaN where there is none."""
    tables = [_last(encoded, encoded.channels[:, c], types) for c in range(encoded.channels.shape[1])]
    return np.concatenate([np.empty((len(encoded), 0), np.float32), *tables], axis=1)


def _last(encoded: Encoded, values: npt.NDArray[np.floating], types: int) -> Float32:
    column = encoded.events.ids - SPECIAL_IDS
    known = (column >= 0) & (column < types)
    table = np.full((len(encoded), types), np.nan, np.float32)
    table[encoded.events.rows()[known], column[known]] = values[known]  # of equal places the last one stays
    return table


@dataclass(frozen=True)
class StaticTable:
    """Static covariates as columns: numbers standardised, other values a column of 0 and 1 for each."""

    numbers: tuple[tuple[str, float, float], ...]
    """Name, mean and standard deviation in the training part."""
    values: tuple[tuple[str, str], ...]
    """Name and value."""

    @classmethod
    def of(cls, train: Dataset) -> StaticTable:
        """Columns that the training part gives reason for."""
        seen: dict[str, list[str]] = {}
        for known in train.static():
            for name, value in known.items():
                seen.setdefault(name, []).append(value)
        numbers, values = [], []
        for name, found in sorted(seen.items()):
            parsed = _numbers(found)
            if np.isfinite(parsed).all():
                numbers.append((name, float(parsed.mean()), float(parsed.std()) or 1.0))
            else:
                often = zip(*np.unique(found, return_counts=True), strict=True)
                values += [(name, str(value)) for value, times in often if times >= LEAST_SEEN]
        return cls(tuple(numbers), tuple(values))

    def __call__(self, data: Dataset) -> Float32:
        """(n, columns); 0 where nothing is known."""
        rows = data.static()
        columns = [
            np.nan_to_num((_numbers([row.get(name, "") for row in rows]) - mean) / sd)
            for name, mean, sd in self.numbers
        ]
        columns += [np.array([row.get(name) == value for row in rows], float) for name, value in self.values]
        return np.stack(columns, axis=1).astype(np.float32) if columns else np.zeros((len(data), 0), np.float32)


def _numbers(values: Sequence[str]) -> Float64:
    return np.array([_number(value) for value in values])


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        return float("nan")
