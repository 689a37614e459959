"""Inputs nobody sane would write, from valid seeds: bytes changed at random, and sound JSON, Parquet and SQLite whose
schema or values are wrong."""

from __future__ import annotations

import io
import json
import sqlite3
import tempfile
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

Rng = np.random.Generator

TOKENS = [
    b"\0", b"\xff", b"\xef\xbb\xbf", b"\r\n", b"\n", b'"', b'""', b",", b"\t", b"'", b"\\", b"{", b"}", b"[", b"]",
    b":", b"null", b"true", b"NaN", b"-Infinity", b"1e400", b"-1", b"0", b"1e-400", b"9" * 30, b"9" * 5000,
    b"0x7fffffff", b"18446744073709551616", b"../../../etc/passwd", b"\\ud800", b"\\u0000", b"\xed\xa0\x80",
    b"$(id)", b"=1+1",
    b"%s%n", b"then", b"within", b"3600s", b">=", b"&", b"|", b"!", b"(", b")", b"2024-02-30T25:61:61Z", b"0000-00-00",
    b"PAR1",
]  # fmt: skip

VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**63, 10**30, 10**400, 1e308, -1e308, float("inf"), float("nan"), 1e-320, 0.5,
    "", " ", "\0", "\ud800", "é" * 50, "A" * 5000, "../../../etc/passwd", "/dev/zero", "[]", [], [None], {},
    {"": {}}, [[[[[]]]]], "then", "A & (B | C) & !D", "A >= 99999999999999999999", "2024-01-01T00:00:00Z",
    "0001-01-01T00:00:00-23:59", "model",
]  # fmt: skip


def mutate_bytes(data: bytes, rng: Rng, others: Sequence[bytes]) -> bytes:
    """One to four small changes anywhere."""
    for _ in range(int(rng.integers(1, 5))):
        change = _BYTE_CHANGES[int(rng.integers(len(_BYTE_CHANGES)))]
        data = change(data, int(rng.integers(len(data) + 1)), rng, others)
    return data


def _flip(data: bytes, at: int, rng: Rng, _others: Sequence[bytes]) -> bytes:
    return data[:at] + bytes(byte ^ (1 << int(rng.integers(8))) for byte in data[at : at + 1]) + data[at + 1 :]


def _overwrite(data: bytes, at: int, rng: Rng, _others: Sequence[bytes]) -> bytes:
    noise = rng.bytes(int(rng.integers(1, 9)))
    return data[:at] + noise + data[at + len(noise) :]


def _token(data: bytes, at: int, rng: Rng, _others: Sequence[bytes]) -> bytes:
    return data[:at] + TOKENS[int(rng.integers(len(TOKENS)))] + data[at + int(rng.integers(3)) :]


def _drop(data: bytes, at: int, rng: Rng, _others: Sequence[bytes]) -> bytes:
    return data[:at] + data[at + int(rng.integers(1, 33)) :]


def _repeat(data: bytes, at: int, rng: Rng, _others: Sequence[bytes]) -> bytes:
    piece = data[at : at + int(rng.integers(1, 33))]
    return data[:at] + piece * int(rng.integers(2, 40)) + data[at:]


def _cut(data: bytes, at: int, _rng: Rng, _others: Sequence[bytes]) -> bytes:
    return data[:at]


def _splice(data: bytes, at: int, rng: Rng, others: Sequence[bytes]) -> bytes:
    other = others[int(rng.integers(len(others)))]
    return data[:at] + other[int(rng.integers(len(other) + 1)) :]


_BYTE_CHANGES: list[Callable[[bytes, int, Rng, Sequence[bytes]], bytes]] = [
    _flip, _flip, _overwrite, _token, _token, _drop, _repeat, _cut, _splice,
]  # fmt: skip


def mutate_json(data: bytes, rng: Rng) -> bytes:
    """JSON with one to three values replaced, removed, doubled, renamed, given twice or buried in brackets."""
    value = json.loads(data)
    for _ in range(int(rng.integers(1, 4))):
        value = _mutate_value(value, rng)
    deep = int(rng.choice([50, 300, 100_000]))
    text = json.dumps(value).replace(f'"{_DEEP}"', "[" * deep + "]" * deep).replace(f'{_AGAIN}"', '"')
    return text.encode()


def mutate_lines(data: bytes, rng: Rng) -> bytes:
    """JSON lines, one of them changed so."""
    lines = data.splitlines()
    at = int(rng.integers(len(lines)))
    return b"\n".join([*lines[:at], mutate_json(lines[at], rng), *lines[at + 1 :], b""])


_DEEP, _AGAIN = "@deep@", "@again@"
"""Marks in the text for what a value in memory cannot be: very deep, or a key that is there twice."""


def _mutate_value(value: Any, rng: Rng) -> Any:
    if isinstance(value, dict | list) and value and rng.random() < 0.85:
        return _mutate_object(value, rng) if isinstance(value, dict) else _mutate_list(value, rng)
    return _nasty(rng)


def _mutate_object(value: dict[str, Any], rng: Rng) -> dict[str, Any]:
    key, change = list(value)[int(rng.integers(len(value)))], rng.random()
    if change < 0.1:
        return {k: v for k, v in value.items() if k != key}
    if change < 0.15:
        return {(str(_nasty(rng)) if k == key else k): v for k, v in value.items()}
    if change < 0.2:
        return {**value, key + _AGAIN: _nasty(rng)}
    return {k: (_mutate_value(v, rng) if k == key else v) for k, v in value.items()}


def _mutate_list(value: list[Any], rng: Rng) -> list[Any]:
    at, change = int(rng.integers(len(value))), rng.random()
    if change < 0.1:
        return value[:at] + value[at + 1 :]
    if change < 0.2:
        return [*value[:at], value[at], *value[at:]]
    return [*value[:at], _mutate_value(value[at], rng), *value[at + 1 :]]


def _nasty(rng: Rng) -> Any:
    return _DEEP if rng.random() < 0.02 else VALUES[int(rng.integers(len(VALUES)))]


def mutate_table(data: bytes, rng: Rng) -> bytes:
    """A sound Parquet file with one or two columns, types, lengths or rows that do not belong there."""
    whole = pq.read_table(io.BytesIO(data))
    while True:
        table, sink = whole, io.BytesIO()
        for _ in range(int(rng.integers(1, 3))):
            table = _pick(_TABLE_CHANGES, rng)(table, rng)
        try:
            pq.write_table(table, sink, compression="none", row_group_size=int(rng.choice([1, 7, 1 << 20])))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # Parquet has no such type or value
            continue
        return sink.getvalue()


def _pick(choices: Sequence[Any], rng: Rng) -> Any:
    return choices[int(rng.integers(len(choices)))]


def _dropped(table: pa.Table, rng: Rng) -> pa.Table:
    return table.remove_column(int(rng.integers(table.num_columns))) if table.num_columns > 1 else table


def _doubled(table: pa.Table, rng: Rng) -> pa.Table:
    at = int(rng.integers(table.num_columns))
    other = at if rng.random() < 0.5 else int(rng.integers(table.num_columns))
    return table.append_column(table.field(at).name, table.column(other))


def _renamed(table: pa.Table, rng: Rng) -> pa.Table:
    names = list(table.column_names)
    new = _pick(["", "extra", "a\nb", "\x1b[31m", "x" * 5000, *names], rng)
    names[int(rng.integers(len(names)))] = new
    return table.rename_columns(names)


def _exchanged(table: pa.Table, rng: Rng) -> pa.Table:
    names = list(table.column_names)
    return table.rename_columns([names[i] for i in rng.permutation(len(names))])


def _other_rows(table: pa.Table, rng: Rng) -> pa.Table:
    count = _pick([0, 1, len(table), 2 * len(table)], rng)
    return table.take(pa.array(rng.integers(0, max(len(table), 1), count if len(table) else 0)))


def _retyped(table: pa.Table, rng: Rng) -> pa.Table:
    at = int(rng.integers(table.num_columns))
    return table.set_column(at, table.field(at).name, _pick(_TYPES, rng)(_values(table.column(at)), rng))


def _values(column: pa.ChunkedArray) -> list[Any]:
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError):  # moments that no calendar knows
        return [0] * len(column)


def _revalued(table: pa.Table, rng: Rng) -> pa.Table:
    at, change, share = int(rng.integers(table.num_columns)), _pick(_CELL_CHANGES, rng), rng.choice([0.02, 0.3, 1.0])
    column = table.column(at)
    if pa.types.is_map(column.type):  # an entry that is null ends the process inside Arrow, here and not in a reader
        return _retyped(table, rng)
    cells = [change(value) if rng.random() < share else value for value in _values(column)]
    try:
        return table.set_column(at, table.field(at).name, pa.array(cells, column.type))
    except (pa.ArrowException, TypeError, ValueError, OverflowError):  # the column's type has no such value
        return _retyped(table, rng)


_TABLE_CHANGES = [_dropped, _doubled, _renamed, _exchanged, _other_rows, *[_retyped] * 4, *[_revalued] * 4]


def _on_number(new: float) -> Callable[[Any], Any]:
    def change(value: Any) -> Any:
        if isinstance(value, list):
            return [change(item) for item in value[:1]] + value[1:]
        return new if isinstance(value, int | float) else value

    return change


def _on_text(new: str) -> Callable[[Any], Any]:
    def change(value: Any) -> Any:
        if isinstance(value, list):
            return [change(item) for item in value[:1]] + value[1:]
        return new if isinstance(value, str) else value

    return change


def _on_list(change: Callable[[list[Any]], Any]) -> Callable[[Any], Any]:
    return lambda value: change(value) if isinstance(value, list) else value


_CELL_CHANGES: list[Callable[[Any], Any]] = [
    lambda _: None,
    _on_list(lambda value: value[:-1]), _on_list(lambda value: value[:-1]), _on_list(lambda value: value + value[-1:]),
    _on_list(lambda value: [None, *value[1:]]), _on_list(lambda _: []), _on_list(lambda value: value[::-1]),
    *[_on_number(new) for new in (-1, 0, 2**31 - 1, 2**62, 1e300, -1e300, float("nan"), float("inf"))],
    *[_on_text(new) for new in ("", "\0", "cause", "x" * 70_000, "\x1b[31mred", "two\nlines", "=1+1")],
]  # fmt: skip


def _texts(values: list[Any], _rng: Rng) -> pa.Array:
    return pa.array([None if value is None else str(value) for value in values], pa.string())


def _nested(values: list[Any], _rng: Rng) -> pa.Array:
    return pa.array([[str(value)] for value in values], pa.list_(pa.string()))


_TYPES: list[Callable[[list[Any], Rng], pa.Array]] = [
    _texts,
    lambda values, rng: _texts(values, rng).cast(pa.large_string()),
    lambda values, rng: _texts(values, rng).cast(pa.binary()),
    lambda values, rng: _texts(values, rng).dictionary_encode(),
    lambda values, rng: pa.array([Decimal(k) / 8 for k in range(len(values))], pa.decimal128(20, 3)),
    lambda values, rng: pa.nulls(len(values)),
    lambda values, rng: pa.array([{"a": str(value)} for value in values], pa.struct([("a", pa.string())])),
    _nested,
    lambda values, rng: _nested(values, rng).cast(pa.large_list(pa.large_string())),
    lambda values, rng: pa.array([[[str(value)]] for value in values], pa.list_(pa.list_(pa.string()))),
    lambda values, rng: pa.array([[1.5, 2.5]] * len(values), pa.list_(pa.float64(), 2)),
    lambda values, rng: pa.array([[k] * int(k % 3) for k in range(len(values))], pa.large_list(pa.int64())),
    lambda values, rng: pa.array([[Decimal(k)] for k in range(len(values))], pa.list_(pa.decimal128(9, 2))),
    lambda values, rng: pa.array([[str(k % 2)] for k in range(len(values))], pa.list_(pa.string())).cast(
        pa.list_(pa.dictionary(pa.int32(), pa.string()))
    ),
    lambda values, rng: pa.array([[None]] * len(values), pa.list_(pa.null())),
    lambda values, rng: pa.array([[{"key": "k", "value": "v"}]] * len(values)),
    lambda values, rng: pa.array([[("k", "v")] * 2] * len(values), pa.map_(pa.string(), pa.string())),
    lambda values, rng: pa.array([[("k", 1)]] * len(values), pa.map_(pa.string(), pa.int64())),
    *[
        lambda values, rng, unit=unit: pa.array(rng.integers(-(2**62), 2**62, len(values)), pa.timestamp(unit, "UTC"))  # type: ignore[misc]
        for unit in ("s", "ms", "us", "ns")
    ],
    lambda values, rng: pa.array(range(len(values)), pa.timestamp("us")),
    lambda values, rng: pa.array(range(len(values)), pa.date32()),
    lambda values, rng: pa.array(range(len(values)), pa.time64("us")),
    lambda values, rng: pa.array(range(len(values)), pa.duration("s")),
    lambda values, rng: pa.array(rng.integers(0, 2, len(values)).astype(bool)),
    lambda values, rng: pa.array(rng.integers(-99, 99, len(values)), pa.int8()),
    lambda values, rng: pa.array(rng.integers(0, 2**63, len(values)), pa.uint64()),
    lambda values, rng: pa.array(rng.normal(size=len(values)).astype(np.float16)),
    lambda values, rng: pa.array(rng.normal(size=len(values))),
]


def mutate_sqlite(data: bytes, rng: Rng) -> bytes:
    """A sound SQLite file with one or two tables, columns or rows that do not belong there."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.sqlite"
        path.write_bytes(data)
        base = sqlite3.connect(path, isolation_level=None)
        names = [row[0] for row in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for _ in range(int(rng.integers(1, 3))):
            name = _pick(names, rng)
            columns = [row[1] for row in base.execute(f'PRAGMA table_info("{name}")')] or ["ocel_id"]
            words = {"table": name, "column": _pick(columns, rng), "other": _pick(names, rng)}
            for statement in _pick(_SQL, rng).split(";"):
                try:
                    base.execute(statement.format(**words))
                except sqlite3.Error:  # what an earlier change took away
                    break
        base.close()
        return path.read_bytes()


_SQL = (
    'DROP TABLE "{table}"',
    'ALTER TABLE "{table}" RENAME TO "{table}_old"',
    'ALTER TABLE "{table}" RENAME TO "{table}_old"; CREATE VIEW "{table}" AS SELECT * FROM "{table}_old"',
    'ALTER TABLE "{table}" RENAME TO "{table}_old"; CREATE VIEW "{table}" AS WITH RECURSIVE c(x) AS '
    "(SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x ocel_id, 'a' ocel_type FROM c WHERE x < 0",
    'ALTER TABLE "{table}" RENAME TO "{table}_old"; CREATE VIRTUAL TABLE "{table}" USING fts5(ocel_id, ocel_type)',
    'ALTER TABLE "{table}" DROP COLUMN "{column}"',
    'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "x"',
    'ALTER TABLE "{table}" ADD COLUMN extra GENERATED ALWAYS AS (hex(zeroblob(1000000))) VIRTUAL',
    'ALTER TABLE "{table}" ADD COLUMN "a b" DEFAULT 1e999',
    'UPDATE "{table}" SET "{column}" = NULL',
    'UPDATE "{table}" SET "{column}" = 1.5 WHERE rowid % 2',
    'UPDATE "{table}" SET "{column}" = x\'ff00fe\'',
    'UPDATE "{table}" SET "{column}" = zeroblob(100000)',
    'UPDATE "{table}" SET "{column}" = CAST(x\'eda080\' AS TEXT)',
    'UPDATE "{table}" SET "{column}" = \'{other}\'',
    'DELETE FROM "{table}"',
    'INSERT INTO "{table}" SELECT * FROM "{other}"',
    'INSERT INTO "{table}" SELECT * FROM "{table}"',
    "INSERT INTO event_map_type VALUES ('x', '{other}\"'); INSERT INTO object_map_type VALUES (NULL, NULL)",
    'CREATE TRIGGER t AFTER INSERT ON "{table}" BEGIN DELETE FROM "{other}"; END',
)
