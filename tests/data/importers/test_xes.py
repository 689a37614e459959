"""XES logs: what stands in the sample, the trace as label table, and files that are no such log."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from oscar_causal.data.importers import ImportOptions, import_tables
from oscar_causal.data.readers import read_xes
from oscar_causal.data.sequences import read_dataset

SAMPLE = Path(__file__).parent / "samples" / "clinic.xes"


def test_the_sample_is_read_as_written() -> None:
    options = ImportOptions(
        labels=SAMPLE, label_column="case:outcome", static=("case:age",), channels=("lactate",), subject_column=None
    )
    data = read_xes(SAMPLE, options)
    assert data.sequence_ids.to_pylist() == ["case 1", "case 2"]
    assert data.events_of(0) == ["ER registration", "lab: lactate", "discharge & letter"]
    assert data.times.tolist() == [0, 1800.25, 88200, 0, 0]
    assert data.start.to_pylist() == [datetime(2024, 3, 1, 7, tzinfo=UTC), datetime(2024, 3, 1, 8, tzinfo=UTC)]
    assert [data.labels_of(i) for i in range(2)] == [["readmitted"], []]
    assert data.static() == [{"case:age": "71"}, {"case:age": "44"}]
    assert data.channel("lactate")[1] == 2.5
    assert data.info["imported"]["format"] == "xes"


def test_packed_and_by_the_command(tmp_path: Path, oscar: Callable[..., Any]) -> None:
    (tmp_path / "log.xes.gz").write_bytes(gzip.compress(SAMPLE.read_bytes()))
    assert oscar("import", tmp_path / "log.xes.gz", "--out", tmp_path / "one").code == 0
    assert oscar("import", SAMPLE, "--out", tmp_path / "two").code == 0
    one, two = (read_dataset(tmp_path / name).info["digest"] for name in ("one", "two"))
    assert one == two
    (tmp_path / "journal.log").write_bytes(SAMPLE.read_bytes())  # a name that says nothing
    words = ["import", tmp_path / "journal.log", "--labels", tmp_path / "journal.log", "--label-column", "case:outcome"]
    oscar(*words, "--out", tmp_path / "three").refused("journal.log")
    assert oscar(*words, "--format", "xes", "--out", tmp_path / "three").code == 0
    assert read_dataset(tmp_path / "three").label_names == ("readmitted",)


def log(*events: str, head: str = "") -> bytes:
    traces = f'<trace><string key="concept:name" value="c"/>{"".join(events)}</trace>'
    return f"<?xml version='1.0'?>{head}<log>{traces}</log>".encode()


def event(name: str | None, time: str | None) -> str:
    parts = [f'<string key="concept:name" value="{name}"/>'] if name is not None else []
    parts += [f'<date key="time:timestamp" value="{time}"/>'] if time is not None else []
    return f"<event>{''.join(parts)}</event>"


GOOD = event("A", "2024-01-01T00:00:00Z")
BAD_EVENTS = {
    "a time that is none": (event("B", "zebra"), ("row 2", "'time:timestamp'", '"zebra"')),
    "no time": (event("B", None), ("row 2", "'time:timestamp'", "nothing")),
    "no name": (event(None, "2024-01-01T00:00:00Z"), ("row 2", "'concept:name'", "nothing")),
}


@pytest.mark.parametrize("case", BAD_EVENTS)
def test_bad_events_have_a_row(tmp_path: Path, oscar: Callable[..., Any], case: str) -> None:
    bad, words = BAD_EVENTS[case]
    (tmp_path / "a.xes").write_bytes(log(GOOD, bad))
    oscar("import", tmp_path / "a.xes", "--out", tmp_path / "o").refused("a.xes", *words, "--skip-bad-rows")
    assert [item.name for item in tmp_path.iterdir()] == ["a.xes"]
    summary = import_tables([tmp_path / "a.xes"], tmp_path / "o", ImportOptions(skip_bad_rows=True))
    assert (summary.events, summary.rejected) == (1, 1)
    assert (tmp_path / "o" / "rejected.csv").read_text().count("\n") == 2


def test_a_trace_without_events_is_named(tmp_path: Path, oscar: Callable[..., Any]) -> None:
    empty = b'<trace><string key="concept:name" value="lonely"/></trace></log>'
    (tmp_path / "a.xes").write_bytes(log(GOOD).replace(b"</log>", empty))
    oscar("import", tmp_path / "a.xes", "--out", tmp_path / "o").refused('"lonely"', "at least one event")
    summary = import_tables([tmp_path / "a.xes"], tmp_path / "o", ImportOptions(skip_bad_rows=True))
    assert (summary.sequences, summary.rejected) == (1, 1)


LAUGHS = '<!DOCTYPE log [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]>'
OUTSIDE = '<!DOCTYPE log [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
FILES = {
    "cut off": (log(GOOD)[:-20], ("whole XML document",)),
    "no XML": (b"case,time\n", ("XML document",)),
    "another document": (b"<html><body/></html>", ("expected an XES log",)),
    "laughing entities": (log(event("&b;", "2024-01-01T00:00:00Z"), head=LAUGHS), ("document type", "line 1")),
    "entities outside": (log(event("&x;", "2024-01-01T00:00:00Z"), head=OUTSIDE), ("document type",)),
    "an encoding nobody knows": (log(GOOD).replace(b"'1.0'", b"'1.0' encoding='klingon'"), ("XML document", "klingon")),
    "an entity nobody declared": (log(event("&b;", "2024-01-01T00:00:00Z")), ("undefined entity",)),
    "a broken gzip": (gzip.compress(log(GOOD) * 50)[:-30], ("gzip",)),
}


@pytest.mark.parametrize("case", FILES)
def test_files_that_are_refused(tmp_path: Path, oscar: Callable[..., Any], case: str) -> None:
    data, words = FILES[case]
    (tmp_path / "a.xes").write_bytes(data)
    oscar("import", tmp_path / "a.xes", "--out", tmp_path / "o").refused("a.xes", *words)
    assert [item.name for item in tmp_path.iterdir()] == ["a.xes"]


def test_entities_in_another_encoding_are_refused_too(tmp_path: Path, oscar: Callable[..., Any]) -> None:
    text = log(event("&b;", "2024-01-01T00:00:00Z"), head=LAUGHS).decode().replace("'1.0'", "'1.0' encoding='utf-16'")
    (tmp_path / "a.xes").write_bytes(text.encode("utf-16"))
    oscar("import", tmp_path / "a.xes", "--out", tmp_path / "o").refused("document type")
