"""Label tables to spilled rows: long (sequence, label[, time]) or wide (sequence, one 0/1 column per label).

Both become rows (id, label, time, labelled, ordinal). A row without a label only mentions its sequence. In a long
table a sequence that is not mentioned has no labels observed, one with `labelled` = 0 is unlabelled; in a wide table
a sequence that is not mentioned is unlabelled.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from oscar_causal.data.importers.cells import as_flag, as_text, mask_of
from oscar_causal.data.importers.clock import Clock
from oscar_causal.data.importers.events import parse_attributes, parse_name
from oscar_causal.data.importers.long_table import LongTable, RawBatch
from oscar_causal.data.importers.options import ImportOptions
from oscar_causal.data.importers.places import Places
from oscar_causal.data.importers.rejects import Faults, Mask, Rejects, shown
from oscar_causal.data.importers.roles import LabelRoles
from oscar_causal.data.importers.spill import Spill
from oscar_causal.errors import DataError, UsageError

FLAGS = {"0", "1"}


class LabelRows:
    """Reads the label table into a spill, on the clock of the events."""

    def __init__(self, roles: LabelRoles, options: ImportOptions, clock: Clock, partitions: int) -> None:
        if options.gap is not None and roles.time is None:
            raise UsageError("--gap: expected a label table with times (--label-time-column), got one without")
        self.roles, self._options, self._clock, self._partitions = roles, options, clock, partitions
        self.spill: Spill | None = None
        self.places = Places()

    def read(self, table: LongTable, folder: Path, rejects: Rejects) -> None:
        """Parse all rows; the good ones are spilled to `folder`, the bad ones handed to `rejects`."""
        base = self.places.begin(table.name)
        seen: set[str] = set()
        for batch in table.batches(self.roles.columns):
            numbers = [int(batch.rows[-1])] if len(batch.rows) else []
            self.places.reach(max(numbers + [bad.row for bad in batch.broken], default=0))
            if self.roles.label is not None and seen <= FLAGS:
                seen |= set(as_text(batch.columns[self.roles.label])[0].drop_null().unique().to_pylist())
            faults = Faults(table.name, batch.rows)
            tables = list(self._parse(batch, table.name, base, faults))
            rejects.add(sorted([*batch.broken, *faults.rows()], key=lambda bad: bad.row))
            for rows in tables:
                self.spill = self.spill or Spill(folder, rows.schema, self._partitions)
                self.spill.write(rows)
        if seen and seen <= FLAGS and self._options.label_column is None:
            name = self.roles.label
            raise DataError(
                f"{table.name}: column {name!r} holds only 0 and 1: say --label-columns {name} if it is a wide table, "
                f"--label-column {name} if these are names of labels"
            )
        if self.spill is not None:
            self.spill.finish()

    def _parse(self, batch: RawBatch, name: str, base: int, faults: Faults) -> Iterator[pa.Table]:
        shared = {"id": parse_name(batch, self.roles.sequence, "the id of a sequence", faults)}
        shared["time"] = self._time(batch, faults)
        shared["ordinal"] = pa.array(batch.rows + base)
        shared |= parse_attributes(batch, self.roles.attributes, faults)
        if self.roles.label is not None:
            label, labelled = self._long(batch, faults)
            rows = pa.table(shared | {"label": label, "labelled": pa.array(labelled)})
            yield rows.filter(pa.array(~faults.bad))
            return
        flags = {column: self._wide(batch, column, name, faults) for column in self.roles.wide}
        yes = np.ones(len(batch.rows), bool)
        mention = pa.table(shared | {"label": pa.nulls(len(yes), pa.string()), "labelled": pa.array(yes)})
        yield mention.filter(pa.array(~faults.bad))
        for column, present in flags.items():
            chosen = mention.filter(pa.array(present & ~faults.bad))
            label = pa.repeat(pa.scalar(column, pa.string()), len(chosen))
            yield chosen.set_column(chosen.schema.get_field_index("label"), "label", label)

    def _time(self, batch: RawBatch, faults: Faults) -> pa.Array:
        if self.roles.time is None:
            return pa.nulls(len(batch.rows), self._clock.spill_type)
        cells = batch.columns[self.roles.time]
        times, bad = self._clock.read(cells)
        faults.add(self.roles.time, bad, f"{self._clock.expected} (as in the event table) or nothing", cells)
        return times

    def _long(self, batch: RawBatch, faults: Faults) -> tuple[pa.Array, Mask]:
        assert self.roles.label is not None
        label = parse_name(batch, self.roles.label, "the name of a label", faults, required=False)
        if self._options.gap is not None and self.roles.time is not None:
            cells = batch.columns[self.roles.time]
            timeless = mask_of(label.is_valid()) & mask_of(as_text(cells)[0].is_null())
            faults.add(self.roles.time, timeless, "a time for the label (--gap)", cells)
        if self.roles.labelled is None:
            return label, np.ones(len(label), bool)
        cells = batch.columns[self.roles.labelled]
        labelled, bad = as_flag(cells)
        faults.add(self.roles.labelled, bad, "0 or 1", cells)
        both = ~labelled & mask_of(label.is_valid())
        faults.add(self.roles.labelled, both, "1 on a row that names a label", cells)
        return label, labelled

    def _wide(self, batch: RawBatch, column: str, name: str, faults: Faults) -> Mask:
        cells = batch.columns[column]
        present, bad = as_flag(cells)
        if bad.any() and self.roles.wide_guessed:
            at = int(np.argmax(bad))
            raise DataError(
                f"{name}: row {int(batch.rows[at]):,}, column {column!r}: expected 0 or 1 in a label column, got "
                f"{shown(cells[at].as_py())}: say --label-column {column} if it names labels, say what else it is "
                "(--subject-column, --static), or name the 0/1 columns with --label-columns ('*': all the rest)"
            )
        faults.add(column, bad, "0 or 1", cells)
        if self._options.gap is not None and self.roles.time is not None:
            times = batch.columns[self.roles.time]
            timeless = present & mask_of(as_text(times)[0].is_null())
            faults.add(self.roles.time, timeless, "a time for the labels (--gap)", times)
        return present
