"""An OCEL 2.0 log in memory, from JSON, XML or SQLite: events, objects, and which events concern which objects.

It is held as a whole, so its text has a limit. Of a SQLite file only plain tables are read: a view, a virtual table or
a generated column is a program of whoever wrote the file.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oscar_causal.data.folders import parse_json
from oscar_causal.data.importers.safe_xml import parse_xml
from oscar_causal.data.importers.text_source import BLOCK_BYTES, first_bytes, open_bytes
from oscar_causal.errors import DataError

MOST_BYTES = 512 << 20
"""Text of a log: what is read becomes about ten times as large in memory."""
STEPS = 10_000
"""Instructions of SQLite between two counts of them."""


@dataclass
class Event:
    """`number` is its place in the log, from 1; cells are as they were written, None = not given."""

    number: int
    id: str | None
    type: str | None
    time: str | None
    attributes: dict[str, str] = field(default_factory=dict)
    objects: list[str] = field(default_factory=list)


@dataclass
class Thing:
    """An object of the log; each attribute has one value per time of change."""

    type: str | None
    changes: list[tuple[str, str, str]] = field(default_factory=list)
    """(attribute, ISO time of the change, value)"""

    def values(self, *, latest: bool) -> dict[str, str]:
        """The earliest or the latest value of every attribute."""
        found: dict[str, str] = {}
        for name, _, value in sorted(self.changes, key=lambda change: change[1], reverse=not latest):
            found[name] = value
        return found


@dataclass
class Log:
    """Events in the order of the file, objects by id."""

    events: list[Event] = field(default_factory=list)
    objects: dict[str, Thing] = field(default_factory=dict)


def read_log(path: Path) -> Log:
    """Read a log, whichever of the three forms it has."""
    start = first_bytes(path, 16)
    if start.startswith(b"SQLite format 3\0"):
        return _from_sqlite(path)
    if start.lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"<") or start.startswith(b"\x1f\x8b"):
        return _from_xml(path)
    return _from_json(path)


def _from_json(path: Path) -> Log:
    with open_bytes(path) as file:
        data = file.read(MOST_BYTES + 1)
    _check_size(path, len(data))
    try:
        content = parse_json(data.decode(json.detect_encoding(data)))
        log = Log()
        for item in content["objects"]:
            thing = Thing(_text(item.get("type")))
            thing.changes += [
                (str(a["name"]), str(a.get("time", "")), str(a["value"])) for a in _list(item, "attributes")
            ]
            log.objects[str(item["id"])] = thing
        for number, item in enumerate(content["events"], 1):
            event = Event(number, _text(item.get("id")), _text(item.get("type")), _text(item.get("time")))
            event.attributes = {str(a["name"]): str(a["value"]) for a in _list(item, "attributes")}
            event.objects = [str(relation["objectId"]) for relation in _list(item, "relationships")]
            log.events.append(event)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(f"{path}: expected an OCEL 2.0 log in JSON (objects, events): {_reason(error)}") from error
    return log


def _from_xml(path: Path) -> Log:
    reader = _XmlLog()
    for _ in parse_xml(path, reader.start, reader.end, reader.text):
        _check_size(path, reader.size)
    if not reader.seen:
        raise DataError(f"{path}: expected an OCEL 2.0 log (<log> with <objects> and <events>), got another document")
    return reader.log


class _XmlLog:
    """Collects a log while the parser walks through the file."""

    def __init__(self) -> None:
        self.log, self.seen, self.size = Log(), False, 0
        self._event: Event | None = None
        self._thing: Thing | None = None
        self._attribute: tuple[str, str] | None = None
        self._text: list[str] = []

    def start(self, tag: str, values: dict[str, str]) -> None:
        self.size += len(tag) + sum(len(name) + len(value) for name, value in values.items())
        if tag == "event" and self._event is None:
            event = Event(len(self.log.events) + 1, values.get("id"), values.get("type"), values.get("time"))
            self._event = event
            self.log.events.append(event)
        elif tag == "object" and self._event is None and "id" in values:
            self._thing = self.log.objects.setdefault(values["id"], Thing(values.get("type")))
        elif tag == "attribute" and (self._event or self._thing):
            self._attribute, self._text = (values.get("name", ""), values.get("time", "")), []
        elif tag in ("relationship", "relobj") and self._event is not None:
            self._event.objects.append(values.get("object-id", ""))
        elif tag == "log":
            self.seen = True

    def text(self, data: str) -> None:
        if self._attribute is not None:
            self.size += len(data)
            self._text.append(data)

    def end(self, tag: str) -> None:
        if tag == "attribute" and self._attribute is not None:
            name, time = self._attribute
            value = "".join(self._text).strip()
            if self._event is not None:
                self._event.attributes[name] = value
            elif self._thing is not None:
                self._thing.changes.append((name, time, value))
            self._attribute = None
        elif tag == "event":
            self._event = None
        elif tag == "object":
            self._thing = None


def _from_sqlite(path: Path) -> Log:
    log = Log()
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            base = _Tables(path, connection)
            by_id = _sqlite_events(base, log)
            for event_id, object_id in base.rows("event_object", "ocel_event_id", "ocel_object_id"):
                if str(event_id) in by_id:
                    by_id[str(event_id)].objects.append(str(object_id))
            for object_id, kind in base.rows("object", "ocel_id", "ocel_type"):
                log.objects[str(object_id)] = Thing(_text(kind))
            for row in base.typed_rows("object"):
                thing = log.objects.get(str(row.pop("ocel_id")))
                time = str(row.pop("ocel_time", "") or "")
                changed = row.pop("ocel_changed_field", None)
                if thing is not None:
                    names = [str(changed)] if changed else list(row)
                    thing.changes += [(name, time, str(row[name])) for name in names if row.get(name) is not None]
    except (sqlite3.Error, UnicodeError) as error:
        too_long = "it takes more work to read than a file of its size should" if str(error) == "interrupted" else error
        raise DataError(f"{path}: expected an OCEL 2.0 log in SQLite: {too_long}") from error
    return log


class _Tables:
    """The plain tables of a SQLite file, read with bounds on cells, on all text together and on the work."""

    def __init__(self, path: Path, base: sqlite3.Connection) -> None:
        self._path, self._base, self._size = path, base, 0
        base.execute("PRAGMA trusted_schema = OFF")
        base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, BLOCK_BYTES)
        left = 1000 + path.stat().st_size // 100  # times STEPS: a row of n bytes takes some ten steps
        base.set_progress_handler(_countdown(left), STEPS)
        found = base.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0")  # virtual ones: 0
        self._columns = {str(name).lower(): self._columns_of(str(name)) for (name,) in found.fetchall()}

    def rows(self, table: str, *columns: str) -> Iterator[tuple[Any, ...]]:
        """These columns of a table."""
        self.columns(table, *columns)
        chosen = ", ".join(map(_quoted, columns))
        for row in self._base.execute(f"SELECT {chosen} FROM {_quoted(table)}"):  # noqa: S608 - quoted names
            self._size += sum(len(cell) if isinstance(cell, str | bytes) else 8 for cell in row)
            _check_size(self._path, self._size)
            yield row

    def typed_rows(self, what: str) -> Iterator[dict[str, Any]]:
        """Rows of the tables that hold one type of events or objects each."""
        for (suffix,) in self.rows(f"{what}_map_type", "ocel_type_map"):
            table = f"{what}_{suffix}"
            names = self.columns(table, "ocel_id")
            for row in self.rows(table, *names):
                yield dict(zip(names, row, strict=True))

    def columns(self, table: str, *needed: str) -> tuple[str, ...]:
        """The columns of a table; one that is needed and not there is a DataError."""
        names = self._columns.get(table.lower())
        if names is None:
            raise DataError(f"{self._path}: expected an OCEL 2.0 log in SQLite with a table {table!r}, found none")
        missing = [name for name in needed if name not in names]
        if missing:
            raise DataError(f"{self._path}: table {table!r}: expected a column {missing[0]!r}, found none")
        return names

    def _columns_of(self, table: str) -> tuple[str, ...]:
        """Names of the columns; one that is computed (hidden = 2) is refused."""
        told = self._base.execute(f"PRAGMA table_xinfo({_quoted(table)})").fetchall()
        for _, name, *_, hidden in told:
            if hidden == 2:
                raise DataError(
                    f"{self._path}: table {table!r}: expected stored columns, got {name!r}, which is computed"
                )
        return tuple(str(row[1]) for row in told)


def _countdown(left: int) -> Callable[[], bool]:
    """Says True, which stops SQLite, when it was asked so many times."""
    numbers = iter(range(left))
    return lambda: next(numbers, None) is None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _sqlite_events(base: _Tables, log: Log) -> dict[str, Event]:
    by_id: dict[str, Event] = {}
    for event_id, kind in base.rows("event", "ocel_id", "ocel_type"):
        event = Event(len(log.events) + 1, _text(event_id), _text(kind), None)
        log.events.append(event)
        by_id[str(event_id)] = event
    for row in base.typed_rows("event"):
        found = by_id.get(str(row.pop("ocel_id")))
        if found is not None:
            found.time = _text(row.pop("ocel_time", None))
            found.attributes = {name: str(value) for name, value in row.items() if value is not None}
    return by_id


def _check_size(path: Path, size: int) -> None:
    if size > MOST_BYTES:
        limit = f"at most {MOST_BYTES >> 20} MB of text, as it is held in memory"
        raise DataError(f"{path}: expected an OCEL 2.0 log with {limit}; cut it, or write it as XES or as a table")


def _list(item: Any, key: str) -> list[Any]:
    return item.get(key) or []


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _reason(error: Exception) -> str:
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)
