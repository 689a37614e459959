"""Inputs nobody sane would write: bytes, JSON values and Parquet tables changed at random, from valid seeds."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
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
    """One to three values of a JSON text replaced, removed, doubled or buried in brackets."""
    value = json.loads(data)
    for _ in range(int(rng.integers(1, 4))):
        value = _mutate_value(value, rng)
    return json.dumps(value).encode()


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
    return {k: (_mutate_value(v, rng) if k == key else v) for k, v in value.items()}


def _mutate_list(value: list[Any], rng: Rng) -> list[Any]:
    at, change = int(rng.integers(len(value))), rng.random()
    if change < 0.1:
        return value[:at] + value[at + 1 :]
    if change < 0.2:
        return [*value[:at], value[at], *value[at:]]
    return [*value[:at], _mutate_value(value[at], rng), *value[at + 1 :]]


def _nasty(rng: Rng) -> Any:
    if rng.random() < 0.02:
        deep: Any = []
        for _ in range(300):
            deep = [deep]
        return deep
    return VALUES[int(rng.integers(len(VALUES)))]


_CELLS: list[Callable[[Rng, int], pa.Array]] = [
    lambda rng, n: pa.array([str(x) for x in rng.integers(0, 9, n)]),
    lambda rng, n: pa.array(rng.integers(-5, 99, n)),
    lambda rng, n: pa.array(rng.normal(size=n)),
    lambda rng, n: pa.array([None, float("nan"), float("inf"), -1e300] * n)[:n],
    lambda rng, n: pa.array([rng.bytes(3) for _ in range(n)], pa.binary()),
    lambda rng, n: pa.array(rng.integers(-(2**62), 2**62, n)).cast(pa.timestamp("us", tz="UTC")),
    lambda rng, n: pa.array([[str(x)] * int(x) for x in rng.integers(0, 4, n)], pa.list_(pa.string())),
    lambda rng, n: pa.array([[float(y) for y in range(x)] for x in rng.integers(0, 4, n)], pa.list_(pa.float64())),
    lambda rng, n: pa.array([[x] for x in rng.integers(0, 4, n)], pa.large_list(pa.int64())),
    lambda rng, n: pa.array([[("k", "v")]] * n, pa.map_(pa.string(), pa.string())),
    lambda rng, n: pa.array([{"a": 1}] * n),
    lambda rng, n: pa.array(["x", None] * n)[:n].dictionary_encode(),
    lambda rng, n: pa.nulls(n),
    lambda rng, n: pa.array([True, None] * n)[:n],
]


def mutate_table(data: bytes, rng: Rng) -> bytes:
    """A Parquet file with one or two columns replaced, removed or added, of types that do not belong there."""
    table = pq.read_table(io.BytesIO(data))
    for _ in range(int(rng.integers(1, 3))):
        name = (*table.column_names, "extra", "labels", "static")[int(rng.integers(len(table.column_names) + 3))]
        cells = _CELLS[int(rng.integers(len(_CELLS)))](rng, len(table))
        present = name in table.column_names
        if present and rng.random() < 0.15 and table.num_columns > 1:
            table = table.drop_columns([name])
        elif present:
            table = table.set_column(table.column_names.index(name), name, cells)
        else:
            table = table.append_column(name, cells)
    sink = io.BytesIO()
    pq.write_table(table.slice(0, int(rng.integers(0, len(table) + 1))), sink, compression="none")
    return sink.getvalue()
