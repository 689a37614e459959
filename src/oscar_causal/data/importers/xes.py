"""XES event logs (IEEE 1849): a trace is a sequence, its events are rows.

Columns are the attribute keys as they stand in the file (`concept:name`, `time:timestamp`, `org:resource`, ...); those
of the trace with `case:` before them. As a label table the same file has one row per trace, so that an attribute of the
trace can be the outcome: `--labels log.xes --label-column case:outcome`. Attributes inside attributes are not read.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from oscar_causal.data.importers.long_table import RawBatch
from oscar_causal.data.importers.rejects import BadRow, shown
from oscar_causal.data.importers.safe_xml import parse_xml
from oscar_causal.errors import DataError

KNOWN = {"sequence_id": "case:concept:name", "time": "time:timestamp", "event": "concept:name"}
ATTRIBUTES = frozenset({"string", "date", "int", "float", "boolean", "id"})
NESTED = frozenset({"list", "container", "values"})
HEADER_EVENTS = 20_000
"""The columns are the keys declared in <global> and those met in the first traces, up to about this many events."""

Cells = dict[str, str]


@dataclass
class Trace:
    """One trace as it stands in the file; `first` is the number of its first event, from 1."""

    number: int
    first: int
    attributes: Cells = field(default_factory=dict)
    events: list[Cells] = field(default_factory=list)


class XesTable:
    """An XES file as a `LongTable`: one row per event, or one per trace."""

    known = KNOWN

    def __init__(self, path: Path, *, traces: bool = False) -> None:
        self._path, self._traces = path, traces
        self.name = str(path)
        self.header = self._read_header()

    def batches(self, columns: Sequence[str]) -> Iterator[RawBatch]:
        """The rows, about a megabyte of the file at a time."""
        for traces, position in read_traces(self._path):
            rows = [row for trace in traces for row in self._rows(trace)]
            cells = {name: pa.array([row.get(name) for _, row in rows], pa.string()) for name in columns}
            yield RawBatch(cells, np.array([number for number, _ in rows], np.int64), self._empty(traces), position)

    def _empty(self, traces: list[Trace]) -> list[BadRow]:
        """Traces that are no sequence; the row is that of the next event."""
        found = []
        for trace in traces if not self._traces else []:
            if not trace.events:
                name = trace.attributes.get("concept:name", "")
                problem = f"expected at least one event in trace {trace.number:,} ({shown(name)}), got none"
                found.append(BadRow(self.name, trace.first, "", problem, name))
        return found

    def _rows(self, trace: Trace) -> Iterator[tuple[int, Cells]]:
        case = {f"case:{key}": value for key, value in trace.attributes.items()}
        if self._traces:
            yield trace.number, case
            return
        for number, event in enumerate(trace.events, trace.first):
            yield number, {**case, **event}

    def _read_header(self) -> list[str]:
        keys = dict.fromkeys([KNOWN["sequence_id"]] if self._traces else KNOWN.values())
        log = _Log()
        with closing(read_traces(self._path, log)) as pieces:
            for traces, _ in pieces:
                for trace in traces:
                    for _, cells in self._rows(trace):
                        keys.update(dict.fromkeys(cells))
                if log.events > HEADER_EVENTS:
                    break
        keys.update(dict.fromkeys(f"case:{key}" for key in log.declared["trace"]))
        keys.update({} if self._traces else dict.fromkeys(log.declared["event"]))
        return list(keys)


def read_traces(path: Path, log: _Log | None = None) -> Generator[tuple[list[Trace], int], None, None]:
    """The finished traces after each piece of the file, and the bytes read so far."""
    log = log or _Log()
    for position in parse_xml(path, log.start, log.end):
        yield log.take(), position
    if not log.seen:
        raise DataError(f"{path}: expected an XES log (<log> with <trace>), got another XML document")


class _Log:
    """Collects traces while the parser walks through the file."""

    def __init__(self) -> None:
        self.seen, self.events, self._count = False, 0, 0
        self.declared: dict[str, dict[str, None]] = {"event": {}, "trace": {}}
        self._done: list[Trace] = []
        self._trace: Trace | None = None
        self._event: Cells | None = None
        self._scope: dict[str, None] | None = None
        self._depth = 0  # inside an attribute: what stands there belongs to it

    def take(self) -> list[Trace]:
        done, self._done = self._done, []
        return done

    def start(self, tag: str, values: dict[str, str]) -> None:
        if self._depth or tag in NESTED:
            self._depth += 1
        elif tag in ATTRIBUTES:
            self._depth = 1
            self._note(values)
        elif tag == "log":
            self.seen = True
        elif tag == "trace":
            self._count += 1
            self._trace = Trace(self._count, self.events + 1)
        elif tag == "event" and self._trace is not None:
            self._event = {}
            self.events += 1
        elif tag == "global":
            self._scope = self.declared.get(values.get("scope", "event"))

    def end(self, tag: str) -> None:
        if self._depth:
            self._depth -= 1
        elif tag == "event" and self._trace is not None and self._event is not None:
            self._trace.events.append(self._event)
            self._event = None
        elif tag == "trace" and self._trace is not None:
            self._done.append(self._trace)
            self._trace = None
        elif tag == "global":
            self._scope = None

    def _note(self, values: dict[str, str]) -> None:
        key = values.get("key", "")
        if self._scope is not None:
            self._scope[key] = None
        elif self._event is not None:
            self._event[key] = values.get("value", "")
        elif self._trace is not None:
            self._trace.attributes[key] = values.get("value", "")
