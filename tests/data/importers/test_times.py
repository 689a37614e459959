"""Clocks: numbers in every unit, ISO timestamps with and without zones, given starts."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oscar_causal.data.importers import ImportOptions, import_tables
from oscar_causal.data.importers.cells import as_flag, as_number, as_text, as_timestamp, try_cast
from oscar_causal.data.importers.clock import guess_clock
from oscar_causal.data.sequences import Dataset, read_dataset
from oscar_causal.errors import DataError, UsageError


def take(folder: Path, text: str, **options: Any) -> Dataset:
    (folder / "a.csv").write_text(text)
    import_tables([folder / "a.csv"], folder / "out", ImportOptions(**options), force=True)
    return read_dataset(folder / "out")


@pytest.mark.parametrize(
    ("unit", "seconds"), [("us", 1e-6), ("ms", 1e-3), ("s", 1), ("m", 60), ("h", 3600), ("d", 86400), (None, 1)]
)
def test_units(tmp_path: Path, unit: str | None, seconds: float) -> None:
    data = take(tmp_path, "id,t,code\nq,10,A\nq,13,B\n", time_unit=unit)
    assert data.times.tolist() == [0, pytest.approx(3 * seconds)]
    assert take(tmp_path, "id,t,code\nq,10,A\n", time_unit=unit, keep_origin=True).times.tolist() == [
        pytest.approx(10 * seconds)
    ]


def test_milliseconds_since_1970_keep_their_precision(tmp_path: Path) -> None:
    data = take(tmp_path, "id,t,code\nq,1700000000123,A\nq,1700000000124,B\n", time_unit="ms")
    assert data.times.tolist() == [0.0, 0.001]


zones = st.sampled_from([None, UTC, timezone(timedelta(hours=2)), timezone(-timedelta(hours=9, minutes=30))])
stamps = st.tuples(st.datetimes(datetime(1000, 1, 1), datetime(3000, 1, 1)), zones)  # noqa: DTZ001


@settings(max_examples=100, deadline=None)
@given(times=st.lists(stamps, min_size=1, max_size=8), letter=st.sampled_from("T "))
def test_timestamps_as_the_standard_library_reads_them(times: list[Any], letter: str) -> None:
    texts = [t.replace(tzinfo=zone).isoformat(sep=letter).replace("+00:00", "Z") for t, zone in times]
    wanted = [t.replace(tzinfo=zone or UTC).astimezone(UTC) for t, zone in times]
    values, bad = as_timestamp(pa.array(texts))
    assert values.to_pylist() == wanted
    assert not bad.any()
    rows = "\n".join(f"q,{text},E{i}" for i, text in enumerate(texts))
    with tempfile.TemporaryDirectory() as folder:
        data = take(Path(folder), f"id,t,code\n{rows}\n")
        first = min(wanted)
        assert data.start.to_pylist() == [first]
        assert data.times.tolist() == pytest.approx(sorted((t - first).total_seconds() for t in wanted))


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("2024-05-31", True),
        (" 2024-05-31 14:00 ", True),
        ("2024-05-31T14:00:00.123456789Z", True),
        ("2024-05-31T14:00:00+0200", True),
        ("2024-02-30", False),
        ("2024-05-31T25:00", False),
        ("31.05.2024", False),
        ("20240531", False),
        ("soon", False),
    ],
)
def test_what_is_a_timestamp(text: str, good: bool) -> None:
    values, bad = as_timestamp(pa.array([text.encode(), None, b""]))
    assert bad.tolist() == [not good, False, False]
    assert values.null_count == 2 + (not good)


def test_a_parquet_file_of_timestamps_and_one_of_dates(tmp_path: Path) -> None:
    for kind in (pa.timestamp("ns"), pa.timestamp("s", tz="Europe/Berlin"), pa.date32()):
        when = pa.array([datetime(2024, 1, 2), datetime(2024, 1, 1)], pa.timestamp("us")).cast(kind)  # noqa: DTZ001
        pq.write_table(pa.table({"id": [7, 7], "time": when, "event": ["B", "A"]}), tmp_path / "a.parquet")
        import_tables([tmp_path / "a.parquet"], tmp_path / "out", force=True)
        data = read_dataset(tmp_path / "out")
        assert data.sequence_ids.to_pylist() == ["7"]
        assert data.times.tolist() == [0, 86400]
        assert data.start.to_pylist() == [datetime(2024, 1, 1, tzinfo=UTC)]


def test_a_start_column(tmp_path: Path) -> None:
    text = "id,t,code,begin\nq,5,A,2024-01-01\nq,7,B,\nr,1,A,\n"
    data = take(tmp_path, text, start_column="begin")
    assert data.start.to_pylist() == [datetime(2024, 1, 1, tzinfo=UTC), None]
    assert data.times.tolist() == [0, 2, 0]
    text = "id,t,code,begin\nq,2024-01-01T00:00:10,A,2024-01-01\nr,2024-05-01,A,\n"
    data = take(tmp_path, text, start_column="begin")
    assert data.times.tolist() == [10, 0]
    assert data.start.to_pylist()[1] == datetime(2024, 5, 1, tzinfo=UTC)
    with pytest.raises(DataError, match="row 1, column 't': expected a time not before the start"):
        take(tmp_path, "id,t,code,begin\nq,2023-12-31,A,2024-01-01\n", start_column="begin")


def test_keep_origin(tmp_path: Path) -> None:
    assert take(tmp_path, "id,t,code\nq,5,A\nq,5,B\n", keep_origin=True).times.tolist() == [5, 5]
    with pytest.raises(DataError, match="row 1, column 't': expected a time of 0 or more"):
        take(tmp_path, "id,t,code\nq,-5,A\n", keep_origin=True)
    with pytest.raises(UsageError, match="--keep-origin: expected numeric times"):
        take(tmp_path, "id,t,code\nq,2024-01-01,A\n", keep_origin=True)


def test_times_too_far_apart(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="row 2, column 't': expected a time within 1e\\+15 s of the first"):
        take(tmp_path, "id,t,code\nq,-9e14,A\nq,9e14,B\n")


def test_the_clock_of_the_first_time_that_is_one() -> None:
    assert guess_clock(pa.array(["zebra", "", "2024-01-01", "5"])).timestamps  # type: ignore[union-attr]
    assert guess_clock(pa.array(["x"] * 5000 + ["5", "2024-01-01"])).unit == "s"  # type: ignore[union-attr]
    assert guess_clock(pa.array(["zebra", None])) is None


def test_numbers() -> None:
    texts = ["1", " 2 ", "-3e2", "x", "", None, "nan", "inf", "1e400", "0x1", "1_0", "١"]
    values, bad = as_number(pa.array(texts))
    assert values.to_pylist()[:3] == [1.0, 2.0, -300.0]
    assert bad.tolist() == [False, False, False, True, False, False, True, True, True, True, True, True]
    decimals = pa.array([Decimal(1), None], pa.decimal128(5, 2))
    assert as_number(decimals)[0].to_pylist() == [1.0, None]


def test_text() -> None:
    values, bad = as_text(pa.array([b"a", b"", None, b"\xff", b"x\0"]))
    assert values.to_pylist()[:3] == ["a", None, None]
    assert bad.tolist() == [False, False, False, True, True]
    assert as_text(pa.array([11.0, 2.5]))[0].to_pylist() == ["11", "2.5"]


def test_flags() -> None:
    yes, bad = as_flag(pa.array(["1", "0", "TRUE", "false", "1.0", "2", "", None]))
    assert yes.tolist() == [True, False, True, False, True, False, False, False]
    assert bad.tolist() == [False] * 5 + [True] * 3


@settings(max_examples=50)
@given(st.lists(st.sampled_from(["1", "2.5", "x", None]), max_size=30))
def test_try_cast(texts: list[str | None]) -> None:
    found = try_cast(pa.array(texts, pa.string()), pa.float64()).to_pylist()
    assert found == [None if text in (None, "x") else float(text) for text in texts]
