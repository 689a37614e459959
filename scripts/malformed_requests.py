"""Requests that no honest client sends: shared by the tests of the service and its benchmark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

SOUND: dict[str, dict[str, Any]] = {
    "/explain": {"sequence": {"events": ["A", "B"], "times": [0, 1]}, "settings": {"contexts": 16}},
    "/predict": {"sequence": {"events": ["A", "B"]}, "after": "end"},
    "/what-if": {"sequence": {"events": ["A", "B"]}, "edits": [{"op": "remove", "positions": [0]}]},
    "/explain/batch": {"sequences": [{"events": ["A", "B"]}]},
}
"""Requests that would be answered, before something in them is broken."""

NONSENSE: tuple[Any, ...] = (
    None, True, -1, 2**70, 1e308, float("nan"), float("inf"), "", "x" * 300, "\ud800", [], {}, [[]], [None], [1, "a"],
    {"op": "fly"}, [{"op": "remove", "positions": [10**9]}], "\x00", ["A"] * 10_001, [-5.0], [2.0, 1.0], {"a": [1]},
)  # fmt: skip
"""Values that belong nowhere. None and {} are sound in some places: `is_sound` knows."""

RAW: tuple[bytes, ...] = (
    b"", b"{", b"[]", b"null", b"\xff\xfe\x00", b'{"sequence": }', b'"text"', b"[" * 100_000, b'{"a":' * 5_000,
    b'{"sequence": {"events": ["\\ud800"]}}', b"\x00" * 100, b'{"\\ud800": 1}', b"9" * 10_000,
    b'{"sequence": {"events": ["A"], "times": [1e999]}}',
    b'{"sequence": {"events": ["A"], "times": [' + b"9" * 5_000 + b"]}}",
)  # fmt: skip

PATHS: tuple[tuple[str, str], ...] = (
    ("GET", "/explain"), ("DELETE", "/predict"), ("PUT", "/what-if"), ("GET", "/jobs/nobody"),
    ("GET", "/jobs/%00/events"),
    ("DELETE", "/jobs/../../etc/passwd"), ("GET", "/../../../etc/passwd"), ("GET", "/sequences?limit=0"),
    ("GET", "/sequences?limit=banana"), ("GET", "/sequences?offset=-1"), ("GET", "/sequences/one"),
    ("GET", "/sequences/one?id=nobody"), ("GET", "/events?limit=101"), ("GET", "/events?search=" + "x" * 300),
    ("PATCH", "/"), ("GET", "/%2e%2e/%2e%2e/etc/passwd"), ("POST", "/healthz"),
    ("GET", "/jobs/" + "x" * 65), ("GET", "/docs"), ("TRACE", "/model"),
)  # fmt: skip


@dataclass(frozen=True)
class Malformed:
    """One request and how it is sent."""

    method: str
    path: str
    body: bytes = b""
    content_type: str = "application/json"


def malformed_requests(count: int, seed: int) -> Iterator[Malformed]:
    """So many requests, each broken in one place or another; the same ones for the same seed."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        kind = number % 5
        if kind == 0:
            method, path = PATHS[int(rng.integers(len(PATHS)))]
            yield Malformed(method, path)
        elif kind == 1:
            yield Malformed("POST", _path(rng), RAW[int(rng.integers(len(RAW)))])
        elif kind == 2:
            yield _cut(rng)
        else:
            yield _broken(rng)


def _path(rng: np.random.Generator) -> str:
    return list(SOUND)[int(rng.integers(len(SOUND)))]


def _cut(rng: np.random.Generator) -> Malformed:
    """A sound body that ends too early, or comes under another name."""
    path = _path(rng)
    body = json.dumps(SOUND[path]).encode()
    if rng.random() < 0.5:
        return Malformed("POST", path, body[: int(rng.integers(1, len(body)))])
    names = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/xml", "\x7f")
    return Malformed("POST", path, body, names[int(rng.integers(4))])


def _broken(rng: np.random.Generator) -> Malformed:
    """One value replaced by nonsense, or an unknown field added."""
    path = _path(rng)
    body = json.loads(json.dumps(SOUND[path]))
    places = list(_places(body))
    holder, key = places[int(rng.integers(len(places)))]
    value = NONSENSE[int(rng.integers(len(NONSENSE)))]
    if isinstance(holder, dict) and rng.random() < 0.2:
        key, value = "unheard of", 1
    if _is_sound(key, value):
        value = -1
    holder[key] = value
    return Malformed("POST", path, json.dumps(body).encode())


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) of a JSON value."""
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in list(keys):
        yield value, key
        yield from _places(value[key])


def _is_sound(key: Any, value: Any) -> bool:
    """Would this value be allowed at this key?"""
    if isinstance(key, int):
        return (
            isinstance(value, str) and value in ("\x00", "") or isinstance(value, (bool, int, float)) or value is None
        )
    allowed = {"times": (None,), "settings": ({},), "contexts": (), "events": ([None],)}
    return any(value is item or value == item for item in allowed.get(key, ()))
