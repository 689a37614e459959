"""A content digest of sequences that does not depend on compression, row groups, shards or library versions."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from oscar_causal.data.checksums import NAME as CHECKSUMS
from oscar_causal.data.stream import read_info, stream_tables
from oscar_causal.data.validate import list_offsets, one_array
from oscar_causal.errors import FolderError


class ContentDigest:
    """Feed tables in order, in any chunking; the same content gives the same digest.

    Every column is split in flat streams (lengths, text bytes, numbers) and each stream has its own hash, so that
    where one table ends and the next begins leaves no trace. What says nothing leaves none either: the order of static
    keys, a missing against an empty static map, label times that are all unknown.
    """

    def __init__(self) -> None:
        self._streams: dict[tuple[str, str], Any] = {}
        self._telling: set[str] = set()

    def update(self, table: pa.Table) -> None:
        """Add the rows of `table`."""
        for name in table.column_names:
            column = one_array(table[name])
            if name == "static":
                self._feed_static(column)
            elif name == "label_times":
                self._feed_label_times(column, one_array(table["labels"]))
            else:
                self._telling.add(name)
                self._feed(name, "", column)

    def hexdigest(self) -> str:
        """The digest of everything fed so far."""
        total = hashlib.sha256()
        for column, stream in sorted(self._streams):
            if column in self._telling:
                total.update(f"{column}\0{stream}\0".encode() + self._streams[column, stream].digest())
        return total.hexdigest()

    def _feed(self, column: str, stream: str, array: Any) -> None:
        if pa.types.is_list(array.type):
            lengths = pc.fill_null(pc.list_value_length(array), -1).to_numpy(zero_copy_only=False)
            self._bytes(column, stream + "lengths", lengths.astype(np.int64).tobytes())
            self._feed(column, stream + "element.", array.flatten())
        elif pa.types.is_string(array.type):
            lengths = pc.fill_null(pc.binary_length(array), -1).to_numpy(zero_copy_only=False)
            self._bytes(column, stream + "lengths", lengths.astype(np.int64).tobytes())
            self._bytes(column, stream + "text", _text_bytes(array))
        else:
            self._bytes(column, stream + "values", _number_bytes(array))

    def _feed_static(self, maps: Any) -> None:
        pairs = maps.cast(pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())])))
        lengths, flat = np.diff(list_offsets(pairs)), pairs.flatten()
        self._bytes("static", "lengths", lengths.tobytes())
        if len(flat):
            self._telling.add("static")
            encoded = flat.field("key").dictionary_encode()
            rank = np.argsort(np.argsort(np.array(encoded.dictionary.to_pylist(), dtype=object)))
            keys = rank[encoded.indices.to_numpy(zero_copy_only=False)]
            order = pa.array(np.lexsort((keys, np.repeat(np.arange(len(lengths)), lengths))))
            for part in ("key", "value"):
                self._feed("static", f"{part}.", flat.field(part).take(order))

    def _feed_label_times(self, times: Any, labels: Any) -> None:
        lengths = np.diff(list_offsets(labels))
        values = np.full(int(lengths.sum()), np.nan)
        known = ~times.is_null().to_numpy(zero_copy_only=False)
        values[np.repeat(known, lengths)] = times.flatten().to_numpy(zero_copy_only=False)
        if not np.isnan(values).all():
            self._telling.add("label_times")
        self._feed("label_times", "", pa.array(values))

    def _bytes(self, column: str, stream: str, data: Any) -> None:
        self._streams.setdefault((column, stream), hashlib.sha256()).update(data)


def check_digest(path: Path | str) -> None:
    """Compare a dataset that carries no checksums with the digest in its `dataset.json`: one pass over all of it."""
    wanted = read_info(path).get("digest")
    if wanted is None or (Path(path) / CHECKSUMS).exists():
        return  # with checksums every file is compared when it is opened
    digest = ContentDigest()
    for table in stream_tables(path):
        digest.update(table)
    if digest.hexdigest() != wanted:
        raise FolderError(
            f"{path}: damaged or changed since it was written: expected sequences with the digest "
            f"{str(wanted)[:12]}… (dataset.json), got {digest.hexdigest()[:12]}…; restore it or make it again"
        )


def _text_bytes(array: Any) -> Any:
    array = array.drop_null()  # what lies under a null is not content
    if not len(array):
        return b""
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
    return memoryview(data)[bounds[0] : bounds[-1]] if data is not None else b""


def _number_bytes(array: Any) -> bytes:
    if pa.types.is_timestamp(array.type):
        return bytes(pc.fill_null(array.cast(pa.int64()), np.iinfo(np.int64).min).to_numpy().tobytes())
    values = array.to_numpy(zero_copy_only=False)
    if pa.types.is_floating(array.type):
        values = values + 0.0  # -0.0 and 0.0 are the same number
        values[np.isnan(values)] = np.nan  # so are all NaNs, and null
    return bytes(np.ascontiguousarray(values).tobytes())
