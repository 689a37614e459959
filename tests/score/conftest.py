"""A small fleet with rules and reasons, and results folders written for it by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from oscar_causal.data.rules import parse, write_rules
from oscar_causal.data.writer import dataset_writer
from oscar_causal.discovery.boundary import Boundary, EventEvidence
from oscar_causal.discovery.results import ResultsWriter

RECORDS = [
    {"sequence_id": "s1", "subject_id": "car 1", "events": ["A", "B", "D"], "times": [0, 1, 2], "labels": ["x", "y"]},
    {"sequence_id": "s2", "subject_id": "car 1", "events": ["A", "C", "N"], "times": [0, 1, 2], "labels": ["x"]},
    {"sequence_id": "s3", "subject_id": "car 2", "events": ["D", "E"], "times": [0, 1], "labels": ["y"]},
    {"sequence_id": "s4", "subject_id": "car 3", "events": ["E", "F"], "times": [0, 1], "labels": ["y"]},
]
RULES = {"x": "A & (B | C) & !N", "y": "D"}
WHY = [
    ("s1", "x", "A", [0], "cause", True),
    ("s1", "x", "B", [1], "cause", True),
    ("s1", "y", "D", [2], "cause", True),
    ("s2", "x", "A", [0], "cause", True),
    ("s2", "x", "C", [1], "cause", False),
    ("s2", "x", "N", [2], "blocker", False),
    ("s3", "y", "D", [0], "cause", True),
]  # y of s4 has no reason: a false label

Found = Mapping[tuple[str, str], str]
"""Pair -> the letters of the causes found, small letters for inhibitors."""


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    with dataset_writer(tmp_path / "fleet") as writer:
        writer.write(pa.Table.from_pylist(RECORDS))
        columns = ("sequence_id", "label", "event", "positions", "role", "necessary")
        writer.write_why(pa.Table.from_pylist([dict(zip(columns, row, strict=True)) for row in WHY]))
    write_rules(tmp_path / "fleet" / "rules.json", {label: parse(text) for label, text in RULES.items()})
    return tmp_path / "fleet"


@pytest.fixture
def results(tmp_path: Path, fleet: Path) -> Callable[..., Path]:
    """Write a results folder from the letters found for each pair."""

    def write(
        name: str,
        found: Found,
        estimator: str = "intervention",
        q_value: float = 0.01,
        by: dict[str, str] | None = None,
    ) -> Path:
        run = {"estimator": estimator, "dataset": {"path": str(fleet)}, "fingerprint": name}
        writer = ResultsWriter(tmp_path / name, run)
        writer.write_shard(0, [_boundary(pair, letters, q_value, by or {}) for pair, letters in found.items()])
        writer.finish(seconds=1.0)
        return tmp_path / name

    return write


def _boundary(pair: tuple[str, str], letters: str, q_value: float, by: dict[str, str]) -> Boundary:
    evidence = tuple(
        EventEvidence(
            letter.upper(),
            (0,),
            "cause" if letter.isupper() else "inhibitor",
            0.5,
            q_value=q_value,
            accepted_by=by.get(letter),  # type: ignore[arg-type]
        )
        for letter in letters
    )
    return Boundary(*pair, observed=True, probability=0.9, evidence=evidence)
