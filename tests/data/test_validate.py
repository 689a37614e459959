"""Every invariant of the format, broken once; and tables that hold them all."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oscar_causal.data.schema import conform, sequences_schema
from oscar_causal.data.validate import check_sequences, list_offsets
from oscar_causal.errors import DataError

GOOD: dict[str, Any] = {
    "sequence_id": "a",
    "subject_id": "s",
    "events": ["A", "B"],
    "times": [0.0, 0.0],
    "km": [1.0, None],
    "static": [("age", "7")],
    "labels": ["y"],
    "label_times": [5.0],
}
SCHEMA = sequences_schema(["km"], static=True, label_times=True)
INFINITE = float("inf")


def check(*rows: dict[str, Any]) -> None:
    check_sequences(conform(pa.Table.from_pylist(list(rows), schema=SCHEMA)), where="here")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sequence_id": ""}, ["row 2", "'sequence_id'"]),
        ({"sequence_id": None}, ["row 2", "'sequence_id'"]),
        ({"subject_id": ""}, ["row 2", "'subject_id'"]),
        ({"events": [], "times": [], "km": []}, ["'b'", "'events'", "an empty sequence"]),
        ({"events": None, "times": None, "km": None}, ["'b'", "'events'", "an empty sequence"]),
        ({"events": ["A", None]}, ["'b'", "'events'", "position 1"]),
        ({"events": ["", "A"]}, ["'b'", "'events'", "position 0"]),
        ({"times": [0.0]}, ["'b'", "'times'", "1 for 2 events"]),
        ({"times": None}, ["'b'", "'times'", "0 for 2 events"]),
        ({"times": [1.0, 0.5]}, ["'b'", "'times'", "position 1", "in order", "0.5"]),
        ({"times": [-1.0, 0.5]}, ["'b'", "'times'", "position 0", "-1.0"]),
        ({"times": [0.0, INFINITE]}, ["'b'", "position 1", "inf"]),
        ({"times": [0.0, float("nan")]}, ["'b'", "position 1", "nan"]),
        ({"times": [0.0, None]}, ["'b'", "position 1", "nan"]),
        ({"times": [0.0, 1.1e15]}, ["'b'", "position 1", "1100000000000000.0"]),
        ({"km": [1.0]}, ["'b'", "'km'", "1 for 2 events"]),
        ({"km": [1.0, -INFINITE]}, ["'b'", "'km'", "infinity"]),
        ({"static": [("age", "7"), ("age", "8")]}, ["'b'", "'static'", "'age' twice"]),
        ({"static": [("age", "")]}, ["'b'", "'static'"]),
        ({"static": [("age", None)]}, ["'b'", "'static'"]),
        ({"static": [("", "7")]}, ["'b'", "'static'"]),
        ({"labels": ["y", "y"], "label_times": [1.0, 2.0]}, ["'b'", "'labels'", "'y' twice"]),
        ({"labels": [""]}, ["'b'", "'labels'", "position 0"]),
        ({"labels": [None]}, ["'b'", "'labels'", "position 0"]),
        ({"label_times": [1.0, 2.0]}, ["'b'", "'label_times'", "2 for 1 labels"]),
        ({"label_times": [INFINITE]}, ["'b'", "'label_times'", "infinity"]),
        ({"labels": None}, ["'b'", "'label_times'", "1 for 0 labels"]),
    ],
)
def test_the_first_offender_is_named(change: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(DataError) as error:
        check(GOOD, {**GOOD, "sequence_id": "b", **change}, {**GOOD, "sequence_id": "c"})
    line = str(error.value)
    assert all(word in line for word in ["here", *words]), line
    assert "\n" not in line


def test_good_rows_pass() -> None:
    check(GOOD, {**GOOD, "labels": None, "label_times": None}, {**GOOD, "labels": [], "label_times": []})
    check({**GOOD, "label_times": None}, {**GOOD, "label_times": [None]}, {**GOOD, "static": None})
    check()


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_valid_tables_pass_also_as_slices(
    data: st.DataObject, table_strategy: st.SearchStrategy[pa.Table]
) -> None:
    table = data.draw(table_strategy)
    check_sequences(table, where="here")
    check_sequences(table.slice(data.draw(st.integers(0, len(table)))), where="here")
    check_sequences(pa.concat_tables([table.slice(0, 1), table.slice(1)]), where="here")


@given(st.lists(st.lists(st.integers(0, 9), max_size=3) | st.none(), max_size=6), st.integers(0, 6))
def test_offsets(lists: list[list[int] | None], begin: int) -> None:
    column = pa.array(lists, pa.list_(pa.int64()))[begin:]
    lengths = [len(item or []) for item in lists[begin:]]
    assert list_offsets(column).tolist() == [sum(lengths[:i]) for i in range(len(lengths) + 1)]
