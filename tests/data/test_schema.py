"""The format's columns and how tables are brought to them."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oscar_causal.data.schema import RESERVED, channels_of, conform, sequences_schema
from oscar_causal.errors import DataError

MINIMAL = {"sequence_id": ["a", "b"], "events": [["A"], ["B", "C"]], "times": [[0], [0, 5]]}


def test_the_columns_of_a_file() -> None:
    names = sequences_schema(["km"], static=True, label_times=True).names
    assert names == ["sequence_id", "subject_id", "start", "events", "times", "km", "static", "labels", "label_times"]


@pytest.mark.parametrize("name", RESERVED)
def test_a_channel_cannot_take_a_name_of_the_format(name: str) -> None:
    with pytest.raises(DataError, match=f"channel '{name}'"):
        sequences_schema([name])


def test_defaults_are_filled_in() -> None:
    table = conform(pa.table(MINIMAL))
    assert table["subject_id"].to_pylist() == ["a", "b"]
    assert table["start"].null_count == table["labels"].null_count == 2
    assert table.schema == sequences_schema()
    assert table["times"].to_pylist() == [[0.0], [0.0, 5.0]]


def test_record_batches_and_other_types_are_taken_too() -> None:
    table = pa.table({**MINIMAL, "km": [[1], [2, None]], "labels": [["y"], None]})
    table = table.set_column(1, "events", table["events"].cast(pa.large_list(pa.large_string())))
    (batch,) = table.to_batches()
    found = conform(batch)
    assert channels_of(found.schema) == ("km",)
    assert found["events"].to_pylist() == MINIMAL["events"]
    assert found["km"].type == pa.list_(pa.float32())


@pytest.mark.parametrize("name", ["sequence_id", "events", "times"])
def test_a_missing_column_is_named(name: str) -> None:
    with pytest.raises(DataError, match=f"expected column '{name}'"):
        conform(pa.table({key: value for key, value in MINIMAL.items() if key != name}))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("times", [["x"], ["y", "z"]]),
        ("events", [5, 6]),
        ("km", [["x"], ["y", "z"]]),
        ("km", ["x", "y"]),
        ("start", ["x", "y"]),
    ],
)
def test_a_column_of_another_type_is_named(name: str, values: list[object]) -> None:
    with pytest.raises(DataError, match=f"column '{name}': expected"):
        conform(pa.table({**MINIMAL, name: values}))


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_what_conforms_is_left_alone(data: st.DataObject, table_strategy: st.SearchStrategy[pa.Table]) -> None:
    table = data.draw(table_strategy)
    assert conform(table).equals(table)
