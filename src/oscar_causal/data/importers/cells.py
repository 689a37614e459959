"""Cells of a batch become text, numbers or flags; each function also says which cells are not what they should be."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Mask = npt.NDArray[np.bool_]
_DATE = r"^\d{4}-\d\d-\d\d"


def mask_of(condition: Any) -> Mask:
    """An Arrow boolean array as a numpy mask; null counts as False."""
    return np.asarray(pc.fill_null(condition, False).to_numpy(zero_copy_only=False), bool)


def is_number(kind: pa.DataType) -> bool:
    """Whole, floating or decimal numbers."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def is_text(kind: pa.DataType) -> bool:
    """Text or bytes that may be text."""
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def try_cast(cells: pa.Array, kind: pa.DataType, pattern: str | None = None) -> pa.Array:
    """Cast what can be cast; null where it cannot.

    When the whole array cannot be cast, text that does not match `pattern` is given up at once, then the array is
    halved until the bad cells stand alone.

    >>> try_cast(pa.array(["1", "zebra", "3"]), pa.float64()).to_pylist()
    [1.0, None, 3.0]
    """
    try:
        return cells.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        if len(cells) <= 1:
            return pa.nulls(len(cells), kind)
    if pattern is not None:
        likely = pc.match_substring_regex(cells, pattern)
        return try_cast(_where(likely, cells), kind)
    half = len(cells) // 2
    return pa.concat_arrays([try_cast(cells[:half], kind), try_cast(cells[half:], kind)])


def as_text(cells: pa.Array) -> tuple[pa.Array, Mask]:
    """Cells as text with empty text as null, and which cells are no text: broken UTF-8 or a NUL byte in it."""
    if pa.types.is_string(cells.type):
        cells = cells.cast(pa.binary())  # Parquet does not check its text either
    text = try_cast(cells, pa.string())
    bad = mask_of(pc.and_(cells.is_valid(), pc.is_null(text)))
    bad |= mask_of(pc.match_substring(text, "\0"))
    return _where(pc.not_equal(pc.binary_length(text), 0), text), bad


def as_number(cells: pa.Array, decimal: str = ".") -> tuple[pa.Array, Mask]:
    """Cells as float64, and which cells are no finite number (an empty cell is null, not bad).

    >>> as_number(pa.array(["12,5", "12.5"]), ",")[0].to_pylist()
    [12.5, None]
    """
    if is_number(cells.type):
        numbers = cells.cast(pa.float64(), safe=False)
    else:
        text, _ = as_text(cells)
        text = pc.utf8_trim_whitespace(text)
        if decimal == ",":  # a point is none then
            text = pc.replace_substring(pc.replace_substring(text, ".", "?"), ",", ".")
        numbers = try_cast(text, pa.float64(), r"^[+-]?[0-9.]+([eE][+-]?[0-9]+)?$")
    return numbers, ~_empty(cells) & ~mask_of(pc.is_finite(numbers))


def as_timestamp(cells: pa.Array) -> tuple[pa.Array, Mask]:
    """Cells as timestamp[us, UTC], and which cells are no ISO timestamp. Without a zone a time is taken as UTC.

    >>> as_timestamp(pa.array(["2024-01-01T00:00:00.25+01:00", "soon"]))[1].tolist()
    [False, True]
    """
    utc = pa.timestamp("us", tz="UTC")
    if pa.types.is_timestamp(cells.type) or pa.types.is_date(cells.type):
        plain = cells.cast(pa.timestamp("us", tz=getattr(cells.type, "tz", None)), safe=False)
        return plain.cast(utc) if plain.type.tz else plain.cast(pa.int64()).cast(utc), np.zeros(len(cells), bool)
    text, _ = as_text(cells)
    text = pc.replace_substring_regex(pc.utf8_trim_whitespace(text), r"(\.\d{6})\d+", r"\1")
    zoned = pc.match_substring_regex(text, r":\d\d(\.\d+)?(Z|[+-]\d\d(:?\d\d)?)$")
    local = try_cast(_where(pc.invert(zoned), text), pa.timestamp("us"), _DATE).cast(pa.int64()).cast(utc)
    values = pc.coalesce(local, try_cast(_where(zoned, text), utc, _DATE))
    return values, ~_empty(cells) & ~mask_of(values.is_valid())


def as_flag(cells: pa.Array) -> tuple[Mask, Mask]:
    """Cells as 0/1, and which cells are neither; true and false, 1.0 and 0.0 are understood too, nothing is bad."""
    text, _ = as_text(cells)
    words = pc.utf8_lower(pc.utf8_trim_whitespace(text))
    yes = mask_of(pc.is_in(words, pa.array(["1", "true", "1.0"])))
    return yes, ~yes & ~mask_of(pc.is_in(words, pa.array(["0", "false", "0.0"])))


def _where(condition: pa.Array, cells: pa.Array) -> pa.Array:
    """The cells where the condition holds, null elsewhere.

    Not with a null scalar: before pyarrow 24 `if_else` reads past the beginning of a slice of text then.
    """
    return pc.if_else(condition, cells, pa.nulls(len(cells), cells.type))


def _empty(cells: pa.Array) -> Mask:
    if is_text(cells.type):
        return ~mask_of(pc.greater(pc.binary_length(cells), 0))
    return np.asarray(cells.is_null().to_numpy(zero_copy_only=False), bool)
