"""Data frames hold what the dataset, the boundaries and the folder hold."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest

from oscar_causal.data.sequences import from_records, read_dataset
from oscar_causal.density.checkpoint import load_model
from oscar_causal.discovery.local import discover_folder
from oscar_causal.discovery.oneshot import DiscoveryConfig, discover
from oscar_causal.errors import MissingExtra, UsageError
from oscar_causal.report.frames import to_pandas

RECORDS = [
    {
        "sequence_id": "a",
        "subject_id": "s",
        "events": ["A", "B"],
        "times": [0, 5],
        "km": [1, None],
        "labels": ["y", "z"],
    },
    {"sequence_id": "b", "subject_id": "s", "events": ["A"], "times": [2], "km": [3], "labels": []},
]


def test_a_dataset() -> None:
    data = from_records(RECORDS)
    expected = pd.DataFrame(
        {
            "sequence_id": ["a", "a", "b"],
            "subject_id": ["s"] * 3,
            "time": [0.0, 5.0, 2.0],
            "event": ["A", "B", "A"],
            "km": np.array([1, np.nan, 3], np.float32),
        }
    )
    found = to_pandas(data)
    pd.testing.assert_frame_equal(found.assign(event=found["event"].astype("str")), expected, check_dtype=False)
    labels = to_pandas(data, "labels")
    assert labels.astype(str).to_dict("list") == {"sequence_id": ["a", "a"], "label": ["y", "z"]}
    with pytest.raises(UsageError, match="'causes'"):
        to_pandas(data, "causes")


def test_boundaries_and_folders_give_the_same(toy: Any, tmp_path: Any) -> None:
    config = DiscoveryConfig()
    discover_folder(toy.model, toy.fleet, tmp_path / "out", config)
    found = list(discover(load_model(toy.model), read_dataset(toy.fleet), config))
    for name in ("causes", "evidence"):
        pd.testing.assert_frame_equal(to_pandas(found, name), to_pandas(tmp_path / "out", name))
    one = next(part[0] for part in found if part)
    assert to_pandas(one, "evidence")["event"].tolist() == [item.event for item in one.evidence]
    assert list(to_pandas(one)["event"]) == [item.event for item in one.causes]
    with pytest.raises(UsageError, match="'events'"):
        to_pandas(found, "events")


def test_without_pandas_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match=r"oscar-causal\[pandas\]"):
        to_pandas(from_records(RECORDS))
