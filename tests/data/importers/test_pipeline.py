"""Import against a slow reading of the same file, row by row, with the standard library."""

from __future__ import annotations

import csv
import io
import json
import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oscar_causal.data.importers import ImportOptions, csv_table, import_tables, pipeline
from oscar_causal.data.sequences import Dataset, read_dataset
from oscar_causal.errors import DataError

Row = list[str]
HEADER = ["seq_id", "time", "event"]
QUICK = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def names(nasty: tuple[str, ...]) -> st.SearchStrategy[str]:
    free = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=5)
    return st.sampled_from([*nasty, "s1", "s2", "s3"]) | free


def good_rows(nasty: tuple[str, ...]) -> st.SearchStrategy[Row]:
    times = st.sampled_from(["0", "1", "2.5", "-3", " 7 ", "1e3", "+4", ".5"]) | st.floats(-1e6, 1e6).map(repr)
    return st.tuples(names(nasty), times, names(nasty)).map(list)


def any_rows(nasty: tuple[str, ...]) -> st.SearchStrategy[Row]:
    bad_times = st.sampled_from(["zebra", "nan", "inf", "-inf", "1e999", "", "1e16", "0x10", "2024-01-01", "1,5"])
    cells = st.tuples(st.sampled_from(["", "s1"]), bad_times | st.just("5"), st.sampled_from(["", "A"])).map(list)
    ragged = st.lists(st.sampled_from(["s1", "5", "A"]), min_size=1, max_size=5).filter(lambda row: len(row) != 3)
    nul = st.sampled_from([["s\0", "1", "A"], ["s1", "1", "A\0"]])
    return good_rows(nasty) | cells | ragged | nul


def problem(row: Row) -> str | None:
    """The column a reader should complain about; "" = the row as a whole; None = the row is good."""
    if len(row) != 3:
        return ""
    name, time, event = row
    if not name or "\0" in name:
        return "seq_id"
    try:
        seconds = float(time) if time.strip().lower() == time.strip() and "_" not in time else math.nan
    except ValueError:
        return "time"
    if not abs(seconds) <= 1e15:
        return "time"
    return "event" if not event or "\0" in event else None


def expected(rows: list[Row]) -> list[dict[str, Any]]:
    """The sequences of good rows: in order of first appearance, sorted by time, the first event at 0."""
    groups: dict[str, list[tuple[float, str]]] = {}
    for name, time, event in rows:
        groups.setdefault(name, []).append((float(time), event))
    found = []
    for name, events in groups.items():
        events = sorted(events, key=lambda item: item[0])
        zero = events[0][0]
        found.append({"id": name, "events": [e for _, e in events], "times": [t - zero for t, _ in events]})
    return found


def content(data: Dataset) -> list[dict[str, Any]]:
    bounds = data.events.offsets
    return [
        {"id": name, "events": data.events_of(i), "times": data.times[bounds[i] : bounds[i + 1]].tolist()}
        for i, name in enumerate(data.sequence_ids.to_pylist())
    ]


def as_csv(rows: list[Row], *, end: str = "\n", quote_all: bool = False) -> bytes:
    """Python's own writer leaves a lone carriage return unquoted, so cells are quoted by hand here."""
    lines = []
    for index, row in enumerate([HEADER, *rows]):
        cells = [
            '"' + cell.replace('"', '""') + '"' if quote_all or set(cell) & set(',"\r\n') else cell for cell in row
        ]
        lines.append(",".join(cells) + end * (2 if index % 3 == 2 else 1))  # blank lines are nothing
    return "".join(lines).encode()


@contextmanager
def cut_small(small: bool) -> Iterator[Path]:
    """A folder, and an import that reads in large or in tiny blocks: how the work is cut must not show."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        if small:
            patch.setattr(csv_table, "BLOCK_BYTES", 512)
            patch.setattr(pipeline, "_partitions", lambda files, chunk_mb: 7)
        yield Path(folder)


@pytest.mark.parametrize("small", [False, True])
@QUICK
@given(data=st.data())
def test_good_rows_become_the_sequences_a_slow_reader_makes(data: st.DataObject, small: bool, nasty: Any) -> None:
    rows = data.draw(st.lists(good_rows(nasty), min_size=1, max_size=30))
    end, quote_all = data.draw(st.sampled_from(["\n", "\r\n"])), data.draw(st.booleans())
    split = data.draw(st.integers(1, len(rows)))
    with cut_small(small) as folder:
        files = [folder / "a.csv", folder / "b.csv"][: 1 if split == len(rows) else 2]
        for file, part in zip(files, (rows[:split], rows[split:]), strict=False):
            file.write_bytes(as_csv(part, end=end, quote_all=quote_all))
        summary = import_tables(files, folder / "out")
        found = read_dataset(folder / "out")
        assert content(found) == expected(rows)
        assert not found.labelled.any()
        assert (summary.rows, summary.events, summary.sequences) == (len(rows), len(rows), len(found))
        assert sorted(item.name for item in (folder / "out").iterdir()) == [
            "checksums.json",
            "dataset.json",
            "sequences",
        ]


@pytest.mark.parametrize("small", [False, True])
@QUICK
@given(data=st.data())
def test_bad_rows_are_named_and_the_rest_is_kept(data: st.DataObject, small: bool, nasty: Any) -> None:
    rows = [["s1", "0", "A"], *data.draw(st.lists(any_rows(nasty), max_size=25))]
    bad = [(number, column) for number, row in enumerate(rows, 1) if (column := problem(row)) is not None]
    with cut_small(small) as folder:
        file, out = folder / "rows.csv", folder / "out"
        file.write_bytes(as_csv(rows))
        summary = import_tables([file], out, ImportOptions(skip_bad_rows=True))
        assert content(read_dataset(out)) == expected([row for row in rows if problem(row) is None])
        assert (summary.rows, summary.rejected) == (len(rows), len(bad))
        assert json.loads((out / "dataset.json").read_text())["imported"]["rejected"] == len(bad)
        if bad:
            with (out / "rejected.csv").open(encoding="utf-8", newline="") as text:
                rejected = list(csv.DictReader(text))
            assert [(int(row["row"]), row["column"]) for row in rejected] == bad
            assert all(row["file"] == str(file) for row in rejected)
            assert [row["text"] for row in rejected] == [_offence(rows[n - 1], column) for n, column in bad]
            with pytest.raises(DataError, match=rf"rows\.csv: row {bad[0][0]}[,:]") as error:
                import_tables([file], folder / "strict")
            assert "\n" not in str(error.value)
        assert sorted(item.name for item in folder.iterdir()) == ["out", "rows.csv"]


def _offence(row: Row, column: str) -> str:
    if not column:
        return ",".join(row)
    return row[HEADER.index(column)]


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "tsv", "jsonl", "jsonl.gz", "parquet"])
def test_every_kind_of_file_gives_the_same_dataset(tmp_path: Path, nasty: tuple[str, ...], kind: str) -> None:
    nasty = (*nasty, "x" * 10_000)
    rows = [[nasty[i % 7], str((i * 7919) % 101 / 4), nasty[i % len(nasty)]] for i in range(500)]
    reference = tmp_path / "rows.csv"
    reference.write_bytes(as_csv(rows))
    file = tmp_path / f"other.{kind}"
    _write(file, rows)
    digests = [import_tables([f], tmp_path / f"out{i}").digest for i, f in enumerate((reference, file))]
    assert digests[0] == digests[1]


def _write(file: Path, rows: list[Row]) -> None:
    import gzip

    if file.suffix == ".parquet":
        columns = list(zip(*rows, strict=True))
        table = pa.table({"seq_id": columns[0], "time": [float(t) for t in columns[1]], "event": columns[2]})
        pq.write_table(table.set_column(2, "event", table["event"].dictionary_encode()), file, row_group_size=100)
        return
    if "jsonl" in file.name:
        records = (dict(zip(HEADER, [row[0], float(row[1]), row[2]], strict=True)) for row in rows)
        data = "\n\n".join(json.dumps(record) for record in records).encode()
    else:
        text = io.StringIO()
        csv.writer(text, delimiter="\t" if file.suffix == ".tsv" else ",").writerows([HEADER, *rows])
        data = text.getvalue().encode()
    file.write_bytes(gzip.compress(data) if file.suffix == ".gz" else data)


def test_a_sequence_of_a_million_events(tmp_path: Path) -> None:
    count = 1_000_000
    lines = "\n".join(f"one,{(i * 7919) % count},E{i % 17}" for i in range(count))
    (tmp_path / "rows.csv").write_text(f"id,t,code\n{lines}\n")
    summary = import_tables([tmp_path / "rows.csv"], tmp_path / "out")
    data = read_dataset(tmp_path / "out")
    assert (summary.events, len(data)) == (count, 1)
    assert (data.times == range(count)).all()
    inverse = pow(7919, -1, count)
    assert [data.events_of(0)[t] for t in (0, 1, 999_999)] == [f"E{t * inverse % count % 17}" for t in (0, 1, 999_999)]
