"""Folders that were changed after they were written: refused, or noted where people edit files by hand."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oscar_causal.data.checksums import check_file
from oscar_causal.data.digest import check_digest
from oscar_causal.data.inspect import inspect_dataset
from oscar_causal.data.rows import SequenceRows
from oscar_causal.data.rules import read_rules
from oscar_causal.data.select import Selection, select_sequences
from oscar_causal.data.sequences import read_dataset
from oscar_causal.data.stream import describe_dataset, stream_tables, stream_why
from oscar_causal.data.writer import dataset_writer
from oscar_causal.errors import FolderError

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """A dataset with all its files."""
    rng = np.random.default_rng(0)
    rows = [
        {
            "sequence_id": f"s{k}",
            "events": rng.choice(list("ABCDEF"), 9).tolist(),
            "times": list(range(9)),
            "labels": ["x"],
        }
        for k in range(200)
    ]
    why = [{"sequence_id": "s1", "label": "x", "event": "A", "positions": [0], "role": "cause", "necessary": True}]
    with dataset_writer(tmp_path / "fleet") as writer:
        writer.write(pa.Table.from_pylist(rows))
        writer.write_why(pa.Table.from_pylist(why))
        writer.write_names({"A": "a thing"})
        (writer.folder / "rules.json").write_text('{"x": "A & B"}')
    return tmp_path / "fleet"


def flip(path: Path, share: float, bit: int = 0) -> None:
    content = bytearray(path.read_bytes())
    content[min(int(share * len(content)), len(content) - 1)] ^= 1 << bit
    path.unlink()  # another file, whatever the clock's resolution
    path.write_bytes(content)


def rewrite(path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    table = pq.read_table(path)
    path.unlink()
    pq.write_table(change(table), path)


def reversed_rows(table: pa.Table) -> pa.Table:
    return table.take(list(range(len(table)))[::-1])


def test_every_file_is_listed_with_its_sha256(fleet: Path) -> None:
    listed = json.loads((fleet / "checksums.json").read_text())["files"]
    files = [path for path in fleet.rglob("*") if path.is_file() and path.name != "checksums.json"]
    assert listed == {str(path.relative_to(fleet)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    assert len(listed) == 5


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.8, 0.95, 1.0])
@pytest.mark.parametrize(
    "read",
    [read_dataset, lambda path: list(stream_tables(path)), lambda path: SequenceRows(path).take([0]), inspect_dataset],
    ids=["read", "stream", "rows", "inspect"],
)
def test_one_flipped_bit_in_sequences_is_refused(fleet: Path, read: Callable[[Path], Any], share: float) -> None:
    part = fleet / "sequences" / "part-00000.parquet"
    flip(part, share)
    with pytest.raises(
        FolderError, match=r"part-00000.parquet: damaged or changed .* expected SHA-256 .* got .*"
    ) as told:
        read(fleet)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("name", "share"), [("why/part-00000.parquet", 0.5), ("dataset.json", 0.5), ("checksums.json", 0.15)]
)
def test_so_is_one_elsewhere(fleet: Path, name: str, share: float) -> None:
    flip(fleet / name, share)
    with pytest.raises(FolderError):
        inspect_dataset(fleet)


def test_without_checksums_pages_have_their_own(fleet: Path) -> None:
    """What a flip does to a page's content is noticed by Parquet itself."""
    (fleet / "checksums.json").unlink()
    part = fleet / "sequences" / "part-00000.parquet"
    meta = pq.ParquetFile(part).metadata.row_group(0)
    column = next(meta.column(k) for k in range(meta.num_columns) if meta.column(k).path_in_schema.startswith("times"))
    flip(part, (column.dictionary_page_offset + column.total_compressed_size - 4) / part.stat().st_size)
    with pytest.raises(FolderError, match=r"part-00000\.parquet: damaged or no Parquet file: .*CRC"):
        list(stream_tables(fleet))


def test_a_lost_and_a_foreign_part_are_refused(fleet: Path) -> None:
    part = fleet / "why" / "part-00000.parquet"
    shutil.copy(part, part.with_name("part-00001.parquet"))
    with pytest.raises(FolderError, match=r"part-00001\.parquet: .*expected no such file"):
        list(stream_why(fleet))
    part.with_name("part-00001.parquet").unlink()
    part.unlink()
    with pytest.raises(FolderError, match=r"why/part-00000\.parquet: missing"):
        inspect_dataset(fleet)


@pytest.mark.parametrize(("name", "text"), [("names.json", '{"A": "else"}'), ("rules.json", '{"x": "C"}')])
def test_what_people_edit_is_noted_and_used(
    fleet: Path, name: str, text: str, caplog: pytest.LogCaptureFixture, oscar: Callable[..., Any]
) -> None:
    before = describe_dataset(fleet)
    (fleet / name).write_text(text)
    with caplog.at_level(logging.INFO, logger="oscar_causal.data.checksums"):
        select_sequences(fleet, fleet.parent / "part", Selection(last=3))
        assert f"{name}: edited since" in caplog.text
        caplog.clear()
        list(read_rules(fleet.parent / "part" / "rules.json"))
        assert not caplog.text  # the new folder has hashes of its own
    assert (fleet.parent / "part" / name).read_text() == text
    after = describe_dataset(fleet)
    assert after["edited_sha256"][name] == hashlib.sha256(text.encode()).hexdigest() != before["edited_sha256"][name]
    assert after["sequences_sha256"] == before["sequences_sha256"]
    ran = oscar("export", fleet, "--out", fleet.parent / "tables", "--json")
    assert ran.code == 0
    assert [line for line in ran.err.splitlines() if f"{name}: edited since" in line] == ran.err.splitlines()
    json.loads(ran.out)
    assert not oscar("export", fleet, "--out", fleet.parent / "again", "--quiet").err


def test_a_folder_of_earlier_versions_is_read_with_a_note(oscar: Callable[..., Any]) -> None:
    ran = oscar("inspect", GOLDEN / "dataset-1", "--json")
    assert ran.code == 0
    assert (
        ran.err == f"{GOLDEN / 'dataset-1'}: carries no checksums (checksums.json): damage in it would not be noticed\n"
    )


def test_without_checksums_the_digest_is_compared(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "dataset-1", tmp_path / "fleet")
    check_digest(tmp_path / "fleet")
    rewrite(tmp_path / "fleet" / "sequences" / "part-00000.parquet", lambda table: table.slice(0, len(table)))
    check_digest(tmp_path / "fleet")  # other bytes, the same content
    rewrite(tmp_path / "fleet" / "sequences" / "part-00000.parquet", reversed_rows)
    with pytest.raises(FolderError, match=r"expected sequences with the digest .* got .*"):
        check_digest(tmp_path / "fleet")


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"kind": "checksums", "format_version": 2, "files": {}}',
             '{"kind": "checksums", "format_version": 1, "files": []}',
             '{"kind": "checksums", "format_version": 1, "files": {"dataset.json": "12"}}',
             '{"kind": "checksums", "format_version": 1, "files": {"' + "a" * 5000 + '": "' + "0" * 64 + '"}}'],
)  # fmt: skip
def test_damaged_checksums_are_told_in_one_line(fleet: Path, text: str) -> None:
    (fleet / "checksums.json").write_text(text)
    with pytest.raises(FolderError, match=r"checksums\.json: expected") as told:
        read_dataset(fleet)
    assert "\n" not in str(told.value)
    assert len(str(told.value)) < 500


def test_a_file_that_is_not_there_is_left_to_its_reader(fleet: Path) -> None:
    check_file(fleet / "nothing.json")
