"""The bytes that reach the CSV reader are those of the file, however they are cut."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import tempfile
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oscar_causal.data.importers import csv_table, text_source
from oscar_causal.data.importers.csv_table import CsvTable
from oscar_causal.data.importers.text_source import TextSource, restored
from oscar_causal.errors import DataError

PIECES = st.sampled_from(
    [b"\r", b"\n", b"\r\n", b"a", b",", b'"', b"\xff", b"\xe9", "é".encode(), "\ufdd0".encode(), b"00"]
)


def read_all(path: Path, size: int, encoding: str = "utf-8") -> list[bytes]:
    with TextSource(path, encoding) as source:
        blocks = []
        while block := source.read(size):
            blocks.append(block)
        assert source.quotes == sum(block.count(b'"') for block in blocks)
    return blocks


@settings(max_examples=200, deadline=None)
@given(pieces=st.lists(PIECES, max_size=30), size=st.integers(2, 9), pull=st.integers(1, 7), packed=st.booleans())
def test_every_byte_comes_through_once(pieces: list[bytes], size: int, pull: int, packed: bool) -> None:
    data = b"".join(pieces)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_source, "BLOCK_BYTES", pull)
        path = Path(folder) / "a.csv"
        path.write_bytes(gzip.compress(data) if packed else data)
        blocks = read_all(path, size)
        body = data.lstrip(b"\r\n")
        assert restored(b"".join(blocks)) == body + (b"\n" if body and not body.endswith(b"\n") else b"")
        assert all(len(block) <= size for block in blocks)
        assert not any(one.endswith(b"\r") and two.startswith(b"\n") for one, two in pairwise(blocks))
        b"".join(blocks).decode()  # always UTF-8


def test_other_encodings(tmp_path: Path) -> None:
    for encoding in ("utf-16", "utf-8-sig", "latin-1", "cp1252"):
        (tmp_path / "a.csv").write_bytes("é,ü\n".encode(encoding))
        assert b"".join(read_all(tmp_path / "a.csv", 5, encoding)).decode() == "é,ü\n"


@pytest.mark.parametrize("data", [codecs.BOM_UTF16_LE + b"a\0", b"PAR1....", b"PK\x03\x04", b"BZh9", b"a\0b\n"])
def test_what_is_no_text(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.csv").write_bytes(data)
    with pytest.raises(DataError, match=r"a\.csv: expected"):
        read_all(tmp_path / "a.csv", 100)


CELLS = st.lists(st.sampled_from(["x", "\r\n", "\r", "\n", '"', ",", "é", " "]), min_size=1, max_size=6).map("".join)


@settings(max_examples=150, deadline=None)
@given(rows=st.lists(st.lists(CELLS, min_size=2, max_size=2), max_size=20), block=st.integers(40, 80))
def test_cells_survive_any_place_of_the_cut(rows: list[list[str]], block: int) -> None:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows([["a", "b"], *rows])
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_table, "BLOCK_BYTES", block)
        path = Path(folder) / "a.csv"
        path.write_bytes(text.getvalue().encode())
        batches = list(CsvTable(path, ",", "utf-8").batches(["b", "a"]))
        tables = [pa.table(batch.columns) for batch in batches]
        found = [[cell.decode() for cell in (row["a"], row["b"])] for row in pa.concat_tables(tables).to_pylist()]
        assert found == rows
        assert [n for batch in batches for n in batch.rows.tolist()] == list(range(1, len(rows) + 1))
