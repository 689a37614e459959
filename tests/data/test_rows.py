"""Sequences by row number: the same as from the whole dataset, whatever its files and row groups are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oscar_causal.data.rows import SequenceRows
from oscar_causal.data.sequences import read_dataset
from oscar_causal.data.writer import write_dataset
from oscar_causal.errors import DataError, FolderError

COUNT = 23


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """Two files in row groups of five."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 6, COUNT)
    table = pa.table(
        {
            "sequence_id": [f"s{k}" for k in range(COUNT)],
            "events": [[f"E{e}" for e in rng.integers(0, 9, n)] for n in lengths],
            "times": [sorted(rng.random(n).tolist()) for n in lengths],
            "mileage": [[None if x < 0.2 else float(x) for x in rng.random(n)] for n in lengths],
            "labels": [None if k % 7 == 0 else ["y"] * (k % 2) for k in range(COUNT)],
        }
    )
    write_dataset(tmp_path / "fleet", [table])
    (tmp_path / "fleet" / "checksums.json").unlink()
    (part,) = (tmp_path / "fleet" / "sequences").iterdir()
    whole = pq.read_table(part)
    pq.write_table(whole.slice(0, 12), part, row_group_size=5)
    pq.write_table(whole.slice(12), part.with_name("part-00001.parquet"), row_group_size=5)
    return tmp_path / "fleet"


def test_any_rows_in_any_order(fleet: Path) -> None:
    whole, rows = read_dataset(fleet), SequenceRows(fleet)
    assert len(rows) == len(whole) == COUNT
    rng = np.random.default_rng(1)
    for _ in range(30):
        chosen = rng.permutation(COUNT)[: rng.integers(1, COUNT + 1)]
        one, two = whole.take(chosen), rows.take(chosen)
        assert one.sequence_ids.equals(two.sequence_ids)
        assert one.subject_ids.equals(two.subject_ids)
        assert [one.events_of(k) for k in range(len(one))] == [two.events_of(k) for k in range(len(two))]
        assert [one.labels_of(k) for k in range(len(one))] == [two.labels_of(k) for k in range(len(two))]
        np.testing.assert_array_equal(one.times, two.times)
        np.testing.assert_array_equal(one.labelled, two.labelled)
        np.testing.assert_array_equal(one.channel("mileage"), two.channel("mileage"))


def test_only_the_groups_that_are_needed_are_read(fleet: Path) -> None:
    rows = SequenceRows(fleet)
    part = fleet / "sequences" / "part-00001.parquet"
    part.write_bytes(b"damaged")  # rows 12 to 22
    assert rows.take([0, 11]).sequence_ids.to_pylist() == ["s0", "s11"]
    with pytest.raises(FolderError, match=r"part-00001\.parquet"):
        rows.take([12])


@pytest.mark.parametrize("chosen", [[], [-1], [COUNT], [0, 99]])
def test_rows_that_are_not_there(fleet: Path, chosen: list[int]) -> None:
    with pytest.raises(DataError, match="row numbers from 0 to 22"):
        SequenceRows(fleet).take(chosen)


def test_a_missing_file_is_noticed(fleet: Path) -> None:
    (fleet / "sequences" / "part-00001.parquet").unlink()
    with pytest.raises(FolderError, match="expected 23 sequences"):
        SequenceRows(fleet)


def test_lengths_are_those_of_the_whole(fleet: Path) -> None:
    assert SequenceRows(fleet).lengths().tolist() == read_dataset(fleet).lengths.tolist()
