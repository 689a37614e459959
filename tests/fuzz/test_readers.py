"""2,000 fixed damaged inputs for every reader, and rules and JSON of any shape: success, or an error of one line.

The files of a population share them: 300 each.
"""

from __future__ import annotations

import json
import zlib
from typing import Any

import numpy as np
from fuzz_targets import NAMES
from hypothesis import given, settings
from hypothesis import strategies as st

from oscar_causal.data.rules import format_rule, parse
from oscar_causal.errors import DataError

QUICK, SHARED, WHOLE = 2000, 300, 20


def test_every_reader_is_fuzzed(readers: dict[str, Any]) -> None:
    assert tuple(readers) == NAMES
    for reader in readers.values():
        for seed in reader.seeds:
            reader.read(seed)  # an undamaged file is taken


def test_fixed_damage(reader: Any) -> None:
    rng = np.random.default_rng(zlib.crc32(reader.name.encode()))
    for k in range(SHARED if reader.name.startswith("population/") else QUICK):
        data = reader.make(rng)
        assert reader.finding(data, quick=k >= WHOLE) is None, (k, data[:300])


def test_the_net_has_no_holes(readers: dict[str, Any]) -> None:
    """A reader that does crash, or says nothing, is found."""
    from dataclasses import replace

    def crash(_data: bytes) -> None:
        raise KeyError("x")

    def talk(_data: bytes) -> None:
        raise DataError("")

    assert "KeyError" in replace(readers["rule"], read=crash).finding(b"")
    assert "one line" in replace(readers["rule"], read=talk).finding(b"")


WORDS = st.sampled_from(
    [
        "A",
        "B",
        "then",
        "within",
        "3600s",
        "1e9d",
        ">=",
        "0",
        "3",
        "&",
        "|",
        "!",
        "(",
        ")",
        '"x y"',
        '"\\ud800"',
        '"\0"',
        " ",
    ]
)


@settings(max_examples=2000, deadline=None, derandomize=True)
@given(st.one_of(st.lists(WORDS, max_size=30).map(" ".join), st.text(max_size=40)))
def test_rules_of_any_shape(text: str) -> None:
    told, again = "", ""
    try:
        again = format_rule(parse(text))
    except DataError as error:
        told = str(error)
    assert "\n" not in told
    assert told or format_rule(parse(again)) == again


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["A & B", "\ud800"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=500, deadline=None, derandomize=True)
@given(value=JSON)
def test_json_of_any_shape(readers: dict[str, Any], value: Any) -> None:
    data = json.dumps(value).encode()
    for name in NAMES:
        if name.endswith(".json"):
            assert readers[name].finding(data, quick=True) is None, (name, data)
