"""What `inspect` says, counted again by slow means."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oscar_causal.data import inspect
from oscar_causal.data.inspect import inspect_dataset
from oscar_causal.data.schema import sequences_schema
from oscar_causal.data.writer import write_dataset


def kinds(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {problem["kind"]: problem for problem in found["problems"]}


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_counts(data: st.DataObject, table_strategy: st.SearchStrategy[pa.Table]) -> None:
    table = data.draw(table_strategy)
    rows = table.to_pylist()
    with tempfile.TemporaryDirectory() as name:
        write_dataset(Path(name) / "one", [table])
        found = inspect_dataset(Path(name) / "one")
    events = [event for row in rows for event in row["events"]]
    labels = [label for row in rows for label in row["labels"] or []]
    assert found["sequences"] == len(rows)
    assert found["subjects"] == len({row["subject_id"] for row in rows})
    assert (found["events"], found["event_types"]) == (len(events), len(set(events)))
    assert found["labels"] == dict(Counter(labels))
    assert found["unlabelled"] == sum(row["labels"] is None for row in rows)
    assert found["lengths"]["mean"] == pytest.approx(np.mean([len(row["events"]) for row in rows]))
    assert found["lengths"]["sd"] == pytest.approx(np.std([len(row["events"]) for row in rows]))
    tied = [row["times"].count(t) > 1 for row in rows for t in row["times"]]
    assert found["ties"]["events_share"] == pytest.approx(np.mean(tied))
    top = Counter(events).most_common(1)[0][1]
    assert next(iter(found["tail"]["most_frequent"].values())) == top
    for name in found["channels"]:
        missing = [value is None for row in rows for value in row[name]]
        assert found["channels"][name]["missing_share"] == pytest.approx(np.mean(missing))
    late = 0
    for row in rows:
        known = [t for t in row.get("label_times") or [] if t is not None]
        late += sum(t >= min(known) for t in row["times"]) if known else 0
    assert found["label_times"]["events_at_or_after"] == late
    assert json.dumps(found, allow_nan=False)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.lists(st.sampled_from("ABCDE"), min_size=1, max_size=4), min_size=1, max_size=8),
    cut=st.integers(1, 8),
)
def test_events_in_exactly_the_same_sequences(rows: list[list[str]], cut: int) -> None:
    types = inspect.EventTypes()
    for begin in range(0, len(rows), cut):
        types.add(pa.array(rows[begin : begin + cut]), begin)
    where = {
        name: {i for i, row in enumerate(rows) if name in row} for name in sorted({n for row in rows for n in row})
    }
    pairs = {pair for pair in combinations(where, 2) if where[pair[0]] == where[pair[1]]}
    found = {pair for names, _ in types.inseparable(1) for pair in combinations(names, 2)}
    assert found == pairs
    assert all(count == len(where[names[0]]) for names, count in types.inseparable(1))
    assert dict(zip(types.ids, types.occurrences.tolist(), strict=True)) == Counter(n for row in rows for n in row)


def test_problems(tmp_path: Path, oscar: Callable[..., Any]) -> None:
    rows = [
        {
            "sequence_id": f"q{i}",
            "subject_id": f"q{i}",
            "events": ["always", *(["left", "right"] if i % 2 else ["y"])],
            "times": [0.0, 1.0, 1.0][: 3 if i % 2 else 2],
            "labels": ["y", "all"] if i < 3 else ["all"],
            "label_times": [1.0, None] if i < 3 else [None],
        }
        for i in range(40)
    ]
    table = pa.Table.from_pylist(rows, schema=sequences_schema(label_times=True))
    write_dataset(tmp_path / "one", [table])
    found = kinds(inspect_dataset(tmp_path / "one"))
    assert found["rare_labels"]["names"] == ("y",)
    assert found["constant_labels"]["names"] == ("all",)
    assert found["events_named_like_labels"]["names"] == ("y",)
    assert found["events_everywhere"]["names"] == ("always",)
    assert found["events_after_label"]["count"] == 4
    assert found["inseparable_events"]["names"] == ({"events": ["left", "right"], "sequences": 20},)
    assert "ties" in found
    assert "length_one" not in found
    printed = oscar("inspect", tmp_path / "one").out
    assert "left = right in 20" in printed
    assert json.loads(oscar("inspect", tmp_path / "one", "--json").out)["sequences"] == 40


def test_nothing_to_complain_about_and_nothing_labelled(tmp_path: Path, oscar: Callable[..., Any]) -> None:
    rows = [
        {"sequence_id": f"q{i}", "subject_id": "s", "events": ["A", "B"] if i % 2 else ["B", "C"], "times": [0.0, 1.0]}
        for i in range(40)
    ]
    for name, labels in (("good", lambda i: ["y"] * (i % 3 == 0)), ("bare", lambda i: None)):
        labelled = [{**row, "labels": labels(i)} for i, row in enumerate(rows)]
        write_dataset(tmp_path / name, [pa.Table.from_pylist(labelled, schema=sequences_schema())])
    assert list(kinds(inspect_dataset(tmp_path / "good"))) == ["events_everywhere"]
    assert "unlabelled" in kinds(inspect_dataset(tmp_path / "bare"))
    assert "no sequence is labelled" in oscar("inspect", tmp_path / "bare").out


def test_nasty_names_are_shown_on_one_line(tmp_path: Path, oscar: Callable[..., Any], nasty: tuple[str, ...]) -> None:
    names = [*nasty, "x" * 10_000]
    row = {"sequence_id": "q", "subject_id": "q", "events": names, "times": [float(t) for t in range(len(names))]}
    schema = sequences_schema()
    write_dataset(tmp_path / "one", [pa.Table.from_pylist([{**row, "labels": names}], schema=schema)])
    printed = oscar("inspect", tmp_path / "one").out
    assert "<script>" in printed
    assert max(map(len, printed.splitlines())) < 1000
    assert json.loads(oscar("inspect", tmp_path / "one", "--json").out)["labels"].keys() == set(names)


def test_not_a_dataset(tmp_path: Path, oscar: Callable[..., Any]) -> None:
    oscar("inspect", tmp_path).refused("expected a dataset folder")
    (tmp_path / "dataset.json").write_text('{"kind": "dataset", "format_version": 99}')
    oscar("inspect", tmp_path).refused("newer OSCAR")
    (tmp_path / "dataset.json").write_text('{"kind": "dataset", "format_version": 1}')
    oscar("inspect", tmp_path).refused("the number of sequences")
    (tmp_path / "dataset.json").write_text('{"kind": "dataset", "format_version": 1, "sequences": 1}')
    oscar("inspect", tmp_path).refused("expected Parquet files, found none")
    (tmp_path / "sequences").mkdir()
    (tmp_path / "sequences" / "part-00000.parquet").write_bytes(b"PAR1 not really")
    oscar("inspect", tmp_path).refused("part-00000.parquet", "damaged")
