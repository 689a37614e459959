"""The digest sees all content and nothing else."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oscar_causal.data.digest import ContentDigest
from oscar_causal.data.schema import conform, sequences_schema

ROWS: list[dict[str, Any]] = [
    {"sequence_id": "a", "subject_id": "s", "events": ["A", "B"], "times": [0.0, 1.0], "km": [1.0, None]},
    {"sequence_id": "b", "subject_id": "s", "events": ["AB"], "times": [0.0], "km": [2.0]},
]
for row, labels in zip(ROWS, (["y", "z"], None), strict=True):
    row.update(static=[("age", "7"), ("site", "X")], labels=labels, label_times=labels and [1.0, None])
SCHEMA = sequences_schema(["km"], static=True, label_times=True)


def digest(*tables: pa.Table) -> str:
    total = ContentDigest()
    for table in tables:
        total.update(table)
    return total.hexdigest()


def of(rows: list[dict[str, Any]], schema: pa.Schema = SCHEMA) -> str:
    return digest(conform(pa.Table.from_pylist(rows, schema=schema)))


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_how_tables_are_cut_leaves_no_trace(data: st.DataObject, table_strategy: st.SearchStrategy[pa.Table]) -> None:
    table = data.draw(table_strategy)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(table)), max_size=3)))
    pieces = [table.slice(a, b - a) for a, b in zip([0, *cuts], [*cuts, len(table)], strict=True)]
    assert digest(*pieces) == digest(table) == digest(table.combine_chunks())
    assert digest(pa.concat_tables(pieces)) == digest(table)


@pytest.mark.parametrize(
    "change",
    [
        {"sequence_id": "c"},
        {"subject_id": "t"},
        {"events": ["A", "C"]},
        {"events": ["AB", ""]},
        {"events": ["B", "A"]},
        {"times": [0.0, 1.0000000000000002]},
        {"km": [None, 1.0]},
        {"km": [1.0, 0.0]},
        {"static": [("age", "7")]},
        {"static": [("age", "X"), ("site", "7")]},
        {"static": []},
        {"labels": ["z", "y"]},
        {"labels": ["y"], "label_times": [1.0]},
        {"labels": [], "label_times": []},
        {"labels": None, "label_times": None},
        {"label_times": [None, 1.0]},
        {"label_times": [1.0, 0.0]},
        {"label_times": None},
        {"start": 0},
    ],
)
def test_every_change_shows(change: dict[str, Any]) -> None:
    assert of([{**ROWS[0], **change}, ROWS[1]]) != of(ROWS)


def test_rows_and_events_do_not_flow_together() -> None:
    moved = [
        {**ROWS[0], "events": ["A"], "times": [0.0], "km": [1.0]},
        {**ROWS[1], "events": ["B", "AB"], "times": [1.0, 0.0], "km": [None, 2.0]},
    ]
    assert of(moved) != of(ROWS)
    assert of(ROWS[::-1]) != of(ROWS)
    assert of([{**ROWS[0], "events": ["AA", "B"]}]) != of([{**ROWS[0], "events": ["A", "AB"]}])


@pytest.mark.parametrize(
    "change",
    [
        {"static": [("site", "X"), ("age", "7")]},
        {"km": [1.0, float("nan")]},
        {"times": [-0.0, 1.0]},
        {"label_times": [1.0, float("nan")]},
    ],
)
def test_what_says_nothing_leaves_no_trace(change: dict[str, Any]) -> None:
    assert of([{**ROWS[0], **change}, ROWS[1]]) == of(ROWS)


def test_optional_columns_without_content() -> None:
    bare = [{key: value for key, value in row.items() if key not in ("static", "label_times")} for row in ROWS]
    plain = of(bare, sequences_schema(["km"]))
    assert of([{**row, "static": None, "label_times": None} for row in bare]) == plain
    assert of([{**row, "static": [], "label_times": row["labels"] and [None, None]} for row in bare]) == plain
    assert of(ROWS) != plain


def test_what_lies_under_a_null_is_not_content() -> None:
    names = pa.array(["hidden", "seen"])
    masked = pa.StringArray.from_buffers(2, names.buffers()[1], names.buffers()[2], pa.py_buffer(b"\x02"))
    assert masked.to_pylist() == [None, "seen"]
    clean = pa.array([None, "seen"])
    assert digest(pa.table({"x": masked})) == digest(pa.table({"x": clean}))


def test_a_known_value() -> None:
    """The digest is written into dataset.json: it may not change from version to version."""
    assert of(ROWS) == "7a2f52650b710d150f93c56e2b7550c9616eca090a5d773559405f3c5fa8394b"
