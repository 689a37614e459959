"""OCEL 2.0, the object-centric event log: a sequence is the life of one object, so a type of objects must be chosen.

An event that concerns several objects of the type stands in the sequence of each of them. Columns: `object_id`, `time`,
`event`, `event_id`, attributes of the event as `event:NAME`, of the object as `object:NAME` (its earliest value). As a
label table the log has one row per object, with the latest values: `--labels log.json --label-column object:status`.
The log is read as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from oscar_causal.data.importers.long_table import RawBatch
from oscar_causal.data.importers.ocel_log import Event, Log, read_log
from oscar_causal.data.importers.rejects import BadRow, shown
from oscar_causal.errors import DataError, UsageError

KNOWN = {"sequence_id": "object_id", "time": "time", "event": "event"}
BATCH_EVENTS = 20_000

Cells = dict[str, str | None]


class OcelTable:
    """A log as a `LongTable`: one row per event and object of the type (row = number of the event), or per object."""

    known = KNOWN

    def __init__(self, path: Path, object_type: str | None, *, objects: bool = False) -> None:
        self._path, self._log, self._objects = path, read_log(path), objects
        self.name = str(path)
        self._type = _choose(self._log, object_type, self.name)
        self._things = {key: thing for key, thing in self._log.objects.items() if thing.type == self._type}
        self._values = {
            key: {f"object:{name}": value for name, value in thing.values(latest=objects).items()}
            for key, thing in self._things.items()
        }
        self.header = self._columns()

    def batches(self, columns: Sequence[str]) -> Iterator[RawBatch]:
        """The rows in the order of the log."""
        size = self._path.stat().st_size
        if self._objects:
            things: list[tuple[int, Cells]] = [
                (k, {"object_id": key, **values}) for k, (key, values) in enumerate(self._values.items(), 1)
            ]
            yield _batch(things, columns, [], size)
            return
        events = self._log.events
        for begin in range(0, len(events), BATCH_EVENTS):
            part = events[begin : begin + BATCH_EVENTS]
            lost = [bad for event in part for bad in self._unknown(event)]
            wrong = {bad.row for bad in lost}
            rows = [row for event in part if event.number not in wrong for row in self._rows(event)]
            yield _batch(rows, columns, lost, size * (begin + len(part)) // len(events))

    def _rows(self, event: Event) -> Iterator[tuple[int, Cells]]:
        own = {f"event:{name}": value for name, value in event.attributes.items()}
        cells: Cells = {"event_id": event.id, "event": event.type, "time": event.time, **own}
        for key in dict.fromkeys(event.objects):
            if key in self._things:
                yield event.number, {"object_id": key, **cells, **self._values[key]}

    def _unknown(self, event: Event) -> list[BadRow]:
        """An event about an object that the log does not list."""
        for key in event.objects:
            if key not in self._log.objects:
                problem = f"expected objects of the log in event {shown(event.id)}, got {shown(key)}"
                return [BadRow(self.name, event.number, "object_id", problem, key)]
        return []

    def _columns(self) -> list[str]:
        found = dict.fromkeys(["object_id"] if self._objects else ["object_id", "time", "event", "event_id"])
        if not self._objects:
            found.update(dict.fromkeys(f"event:{name}" for event in self._log.events for name in event.attributes))
        found.update(dict.fromkeys(name for values in self._values.values() for name in values))
        return list(found)


def _choose(log: Log, wanted: str | None, name: str) -> str:
    types = sorted({thing.type for thing in log.objects.values() if thing.type})
    if not types:
        raise DataError(f"{name}: expected objects with a type, got none")
    if wanted is None and len(types) > 1:
        raise UsageError(f"{name}: say --object-type: a sequence is the life of one object of {', '.join(types)}")
    if wanted is not None and wanted not in types:
        raise UsageError(f"--object-type: expected one of {', '.join(types)} ({name}), got {wanted!r}")
    return wanted or types[0]


def _batch(rows: list[tuple[int, Cells]], columns: Sequence[str], broken: list[BadRow], position: int) -> RawBatch:
    cells = {name: pa.array([row.get(name) for _, row in rows], pa.string()) for name in columns}
    return RawBatch(cells, np.array([number for number, _ in rows], np.int64), broken, position)
