"""Partitions on disk: every row comes back, in order."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oscar_causal.data.importers import merge
from oscar_causal.data.importers.merge import Merger
from oscar_causal.data.importers.spill import Spill, partition_of


@settings(max_examples=60, deadline=None)
@given(
    owners=st.lists(st.integers(0, 3), min_size=1, max_size=40),
    lengths=st.lists(st.integers(1, 9), min_size=40, max_size=40),
    most=st.integers(1, 7),
    most_events=st.integers(1, 20),
)
def test_sequences_come_back_by_first_appearance(
    owners: list[int], lengths: list[int], most: int, most_events: int
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(merge, "CHUNK_SEQUENCES", most)
        patch.setattr(merge, "CHUNK_EVENTS", most_events)
        patch.setattr(merge, "BATCH_EVENTS", 5)
        merger = Merger(Path(folder) / "m")
        for owner in range(4):
            rows = [i for i, own in enumerate(owners) if own == owner]
            events = pa.array([[f"{i}.{k}" for k in range(lengths[i])] for i in rows], pa.list_(pa.string()))
            merger.add(pa.table({"id": pa.array(rows, pa.int64()), "events": events}), np.array(rows, np.int64))
        tables = list(merger.tables())
        found = pa.concat_tables(tables)
        assert found["id"].to_pylist() == list(range(len(owners)))
        assert found["events"].to_pylist() == [[f"{i}.{k}" for k in range(lengths[i])] for i in range(len(owners))]
        for table in tables:
            events = sum(map(len, table["events"].to_pylist()))
            assert len(table) <= most
            assert events <= most_events or len(table) == 1


@settings(max_examples=60, deadline=None)
@given(batches=st.lists(st.lists(st.text(max_size=3), max_size=8), max_size=5), partitions=st.sampled_from([1, 2, 9]))
def test_rows_of_one_id_stay_together_in_order(batches: list[list[str]], partitions: int) -> None:
    rows = [(name, number) for number, name in enumerate(name for batch in batches for name in batch)]
    with tempfile.TemporaryDirectory() as folder:
        schema = pa.schema([("id", pa.string()), ("number", pa.int64())])
        spill = Spill(Path(folder) / "s", schema, partitions)
        at = 0
        for batch in batches:
            numbers = pa.array(range(at, at + len(batch)), pa.int64())
            spill.write(pa.table({"id": pa.array(batch, pa.string()), "number": numbers}))
            at += len(batch)
        spill.finish()
        parts = [spill.read(p).to_pylist() for p in range(partitions)]
        assert sorted((row["number"], row["id"]) for part in parts for row in part) == [(n, name) for name, n in rows]
        for part in parts:
            assert [row["number"] for row in part] == sorted(row["number"] for row in part)
        homes = {row["id"]: {i for i, part in enumerate(parts) if row in part} for part in parts for row in part}
        assert all(len(home) == 1 for home in homes.values())
        assert list((Path(folder) / "s").iterdir()) == []


def test_the_hash_spreads_and_does_not_depend_on_the_batch() -> None:
    ids = pa.array([f"car {i}" for i in range(10_000)])
    found = partition_of(ids, 16)
    assert np.bincount(found, minlength=16).min() > 400
    assert (partition_of(ids[5000:], 16) == found[5000:]).all()
