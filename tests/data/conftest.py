"""Random datasets for property tests."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import strategies as st

from oscar_causal.data.schema import sequences_schema

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=6)


@pytest.fixture(scope="session")
def name_strategy(nasty: tuple[str, ...]) -> st.SearchStrategy[str]:
    """Names of all sorts."""
    return st.sampled_from([*nasty, "x" * 10_000]) | TEXT


@pytest.fixture(scope="session")
def table_strategy(name_strategy: st.SearchStrategy[str]) -> st.SearchStrategy[pa.Table]:
    """Valid tables of sequences with every optional part."""

    @st.composite
    def tables(draw: st.DrawFn) -> pa.Table:
        channels = draw(st.lists(TEXT.filter(lambda n: n not in RESERVED), unique=True, max_size=2))
        keys = draw(st.lists(TEXT.filter(lambda n: n not in channels), unique=True, max_size=2))
        ids = draw(st.lists(name_strategy, unique=True, min_size=1, max_size=5))
        timed = draw(st.booleans())
        rows = [_sequence(draw, name, name_strategy, channels, keys, timed) for name in ids]
        schema = sequences_schema(channels, static=bool(keys), label_times=timed)
        return pa.Table.from_pylist(rows, schema=schema)

    return tables()


RESERVED = ("sequence_id", "subject_id", "start", "events", "times", "static", "labels", "label_times")
STARTS = st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)).map(lambda t: t.replace(tzinfo=UTC)) | st.none()  # noqa: DTZ001


def _sequence(
    draw: st.DrawFn, name: str, names: st.SearchStrategy[str], channels: list[str], keys: list[str], timed: bool
) -> dict[str, Any]:
    times = sorted(draw(st.lists(st.sampled_from([0.0, 1.0, 0.1]) | st.floats(0, 1e15), min_size=1, max_size=5)))
    labels = draw(st.lists(names, unique=True, max_size=3) | st.none())
    numbers = st.floats(width=32, allow_infinity=False, allow_nan=False) | st.none()
    row: dict[str, Any] = {
        "sequence_id": name,
        "subject_id": draw(st.sampled_from([name, "subject"])),
        "start": draw(STARTS),
        "events": draw(st.lists(names, min_size=len(times), max_size=len(times))),
        "times": times,
        "static": [(key, draw(names)) for key in keys if draw(st.booleans())],
        "labels": labels,
    }
    for channel in channels:
        row[channel] = draw(st.lists(numbers, min_size=len(times), max_size=len(times)))
    if timed:
        when = st.floats(-1e6, 1e15) | st.none()
        row["label_times"] = None if labels is None else [draw(when) for _ in labels]
    return row
