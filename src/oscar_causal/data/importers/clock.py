"""How the times of an import are read: numbers in a unit, or ISO timestamps. Event and label times share one clock.

In the spill files a time is a float64 in the table's own unit, or whole microseconds since 1970: differences are taken
before scaling, so that nothing is lost to rounding far from zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from oscar_causal.data.importers.cells import Mask, as_number, as_timestamp, is_number, mask_of
from oscar_causal.data.importers.options import TIME_UNITS
from oscar_causal.data.schema import MAX_SECONDS


@dataclass(frozen=True)
class Clock:
    """`unit` is a key of TIME_UNITS or "timestamp"; `expected` is what messages say a cell should hold."""

    unit: str
    expected: str
    decimal: str = "."

    @property
    def timestamps(self) -> bool:
        """ISO timestamps, not numbers."""
        return self.unit == "timestamp"

    @property
    def spill_type(self) -> pa.DataType:
        """The type of a time in the spill files."""
        return pa.int64() if self.timestamps else pa.float64()

    def read(self, cells: pa.Array) -> tuple[pa.Array, Mask]:
        """Times in the clock's own unit, and which cells are no time; an empty cell is null, not bad."""
        if self.timestamps:
            stamps, bad = as_timestamp(cells.cast(pa.string()) if is_number(cells.type) else cells)
            return stamps.cast(pa.int64()), bad
        numbers, bad = as_number(cells, self.decimal)
        limit = MAX_SECONDS / TIME_UNITS[self.unit]
        return numbers, bad | mask_of(pc.greater(pc.abs(numbers), limit))

    def seconds(self, differences: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Differences of times, in seconds."""
        scale = 1e-6 if self.timestamps else TIME_UNITS[self.unit]
        if scale < 1:
            return np.asarray(differences / round(1 / scale), np.float64)
        return np.asarray(differences * scale, np.float64)


def named_clock(unit: str, decimal: str = ".") -> Clock:
    """The clock the user asked for."""
    if unit == "timestamp":
        return Clock(unit, "an ISO timestamp (2024-05-31T14:00:00)")
    words = {"us": "microseconds", "ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
    return Clock(unit, f"a number of {words[unit]}", decimal)


def guess_clock(cells: pa.Array, decimal: str = ".") -> Clock | None:
    """The clock of the first cell that is a time of either kind; None when there is no such cell."""
    if pa.types.is_timestamp(cells.type) or pa.types.is_date(cells.type):
        return named_clock("timestamp")
    for begin in range(0, len(cells), 4096):
        part = cells[begin : begin + 4096]
        number, stamp = (_known(named_clock(unit, decimal), part) for unit in ("s", "timestamp"))
        if (number | stamp).any():
            return named_clock("s" if number[np.argmax(number | stamp)] else "timestamp", decimal)
    return None


def _known(clock: Clock, cells: pa.Array) -> Mask:
    values, bad = clock.read(cells)
    return mask_of(values.is_valid()) & ~bad


UNDECIDED = Clock("s", "a number or an ISO timestamp")
"""Reads the cells of a batch in which no time was found, to say what is wrong with them."""
