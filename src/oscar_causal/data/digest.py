"""A content digest of sequences that does not depend on compression, row groups, shards or library versions."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from oscar_causal.data.validate import one_array


class ContentDigest:
    """Feed tables in order, in any chunking; the same content gives the same digest.

    Every column is split in flat streams (lengths, text bytes, numbers) and each stream has its own hash, so that
    where one table ends and the next begins leaves no trace.
    """

    def __init__(self) -> None:
        self._streams: dict[str, Any] = {}

    def update(self, table: pa.Table) -> None:
        """Add the rows of `table`."""
        for name in table.column_names:
            self._feed(name, one_array(table[name]))

    def hexdigest(self) -> str:
        """The digest of everything fed so far."""
        total = hashlib.sha256()
        for name in sorted(self._streams):
            total.update(name.encode() + b"\0" + self._streams[name].digest())
        return total.hexdigest()

    def _feed(self, name: str, array: Any) -> None:
        kind = array.type
        if pa.types.is_map(kind) or pa.types.is_list(kind):
            self._feed_list(name, array)
        elif pa.types.is_struct(kind):
            for index, field in enumerate(kind):
                self._feed(f"{name}.{field.name}", array.field(index))
        elif pa.types.is_string(kind):
            lengths = pc.fill_null(pc.binary_length(array), -1)
            self._bytes(f"{name}:lengths", lengths.to_numpy(zero_copy_only=False).astype(np.int64).tobytes())
            self._bytes(f"{name}:text", _text_bytes(array))
        else:
            self._bytes(f"{name}:values", _number_bytes(array))

    def _feed_list(self, name: str, array: Any) -> None:
        if pa.types.is_map(array.type):
            array = array.cast(pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())])))
        lengths = pc.fill_null(pc.list_value_length(array), -1).to_numpy(zero_copy_only=False)
        self._bytes(f"{name}:lengths", lengths.astype(np.int64).tobytes())
        self._feed(f"{name}.element", array.flatten())

    def _bytes(self, stream: str, data: Any) -> None:
        self._streams.setdefault(stream, hashlib.sha256()).update(data)


def _text_bytes(array: Any) -> Any:
    if not len(array):
        return b""
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
    return memoryview(data)[bounds[0] : bounds[-1]] if data is not None else b""


def _number_bytes(array: Any) -> bytes:
    if pa.types.is_timestamp(array.type):
        return bytes(pc.fill_null(array.cast(pa.int64()), np.iinfo(np.int64).min).to_numpy().tobytes())
    if pa.types.is_boolean(array.type):
        return bytes(array.to_numpy(zero_copy_only=False).astype(np.uint8).tobytes())
    values = array.to_numpy(zero_copy_only=False)
    if pa.types.is_floating(array.type):
        values = values + 0.0  # -0.0 and 0.0 are the same number
        values[np.isnan(values)] = np.nan  # so are all NaNs, and null
    return bytes(np.ascontiguousarray(values).tobytes())
