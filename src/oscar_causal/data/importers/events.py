"""Event tables to spilled rows: every cell is parsed here, every bad cell found here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from oscar_causal.data.importers.cells import as_number, as_text, as_timestamp, mask_of
from oscar_causal.data.importers.clock import UNDECIDED, Clock, guess_clock, named_clock
from oscar_causal.data.importers.long_table import LongTable, RawBatch
from oscar_causal.data.importers.options import ImportOptions
from oscar_causal.data.importers.places import Places
from oscar_causal.data.importers.rejects import Faults, Rejects
from oscar_causal.data.importers.roles import Attribute, EventRoles
from oscar_causal.data.importers.spill import Spill
from oscar_causal.errors import UsageError

OnBytes = Callable[[int], None]


class EventRows:
    """Reads event tables into a spill; afterwards `clock`, `spill` and `places` say what was found."""

    def __init__(self, roles: EventRoles, options: ImportOptions, partitions: int) -> None:
        self.roles, self._options, self._partitions = roles, options, partitions
        self.clock: Clock | None = named_clock(options.time_unit, options.decimal) if options.time_unit else None
        self.spill: Spill | None = None
        self.places = Places()

    def read(self, tables: Sequence[LongTable], folder: Path, rejects: Rejects, on_bytes: OnBytes) -> None:
        """Parse all rows; the good ones are spilled to `folder`, the bad ones handed to `rejects`."""
        done = 0
        for table in tables:
            base, position = self.places.begin(table.name), 0
            for batch in table.batches(self.roles.columns):
                self._take(batch, table.name, base, folder, rejects)
                position = batch.position
                on_bytes(done + position)
            done += position
        if self.spill is not None:
            self.spill.finish()

    def _take(self, batch: RawBatch, name: str, base: int, folder: Path, rejects: Rejects) -> None:
        numbers = [int(batch.rows[-1])] if len(batch.rows) else []
        self.places.reach(max(numbers + [bad.row for bad in batch.broken], default=0))
        self.clock = self.clock or guess_clock(batch.columns[self.roles.time], self._options.decimal)
        self._check_origin()
        faults = Faults(name, batch.rows)
        rows = parse_events(
            batch,
            self.roles,
            self.clock or UNDECIDED,
            faults,
            keep_origin=self._options.keep_origin,
            decimal=self._options.decimal,
        )
        rejects.add(sorted([*batch.broken, *faults.rows()], key=lambda bad: bad.row))
        rows = rows.append_column("ordinal", pa.array(batch.rows + base)).filter(pa.array(~faults.bad))
        if len(rows):
            self.spill = self.spill or Spill(folder, rows.schema, self._partitions)
            self.spill.write(rows)

    def _check_origin(self) -> None:
        timestamps = self.clock is not None and self.clock.timestamps
        if timestamps and self._options.keep_origin and not self._options.start_column:
            raise UsageError("--keep-origin: expected numeric times or a --start-column, got timestamps without")


def parse_events(
    batch: RawBatch,
    roles: EventRoles,
    clock: Clock,
    faults: Faults,
    *,
    keep_origin: bool = False,
    decimal: str = ".",
) -> pa.Table:
    """Columns id, time, event, then `subject`, `start`, `static:*` and `channel:*`; bad cells are noted in `faults`."""
    columns = {
        "id": parse_name(batch, roles.sequence, "the id of a sequence", faults),
        "time": _time(batch, roles.time, clock, faults, keep_origin=keep_origin),
        "event": parse_name(batch, roles.event, "the name of an event", faults),
    }
    columns |= parse_attributes(batch, roles.attributes, faults)
    columns |= {f"channel:{name}": _channel(batch, name, faults, decimal) for name in roles.channels}
    return pa.table(columns)


def parse_name(batch: RawBatch, column: str, what: str, faults: Faults, *, required: bool = True) -> pa.Array:
    """A text column; where `required`, an empty cell is bad too."""
    cells = batch.columns[column]
    text, bad = as_text(cells)
    faults.add(column, bad, f"{what} in UTF-8 without NUL bytes (see --encoding)", cells)
    if required:
        faults.add(column, mask_of(text.is_null()), what, cells)
    return text


def parse_attributes(batch: RawBatch, attributes: Sequence[Attribute], faults: Faults) -> dict[str, pa.Array]:
    """What belongs to the whole sequence; empty cells are null."""
    columns = {}
    for item in attributes:
        if item.key == "start":
            cells = batch.columns[item.column]
            columns[item.key], bad = as_timestamp(cells)
            faults.add(item.column, bad, "an ISO timestamp", cells)
        else:
            columns[item.key] = parse_name(batch, item.column, "text", faults, required=False)
    return columns


def _time(batch: RawBatch, column: str, clock: Clock, faults: Faults, *, keep_origin: bool) -> pa.Array:
    cells = batch.columns[column]
    times, bad = clock.read(cells)
    faults.add(column, bad | mask_of(times.is_null()), clock.expected, cells)
    if keep_origin and not clock.timestamps:
        faults.add(column, mask_of(pc.less(times, 0)), "a time of 0 or more (--keep-origin)", cells)
    return times


def _channel(batch: RawBatch, column: str, faults: Faults, decimal: str) -> pa.Array:
    cells = batch.columns[column]
    numbers, bad = as_number(cells, decimal)
    values = numbers.cast(pa.float32(), safe=False)
    faults.add(column, bad | mask_of(pc.is_inf(values)), "a finite number (32 bits; see --decimal) or nothing", cells)
    return values
