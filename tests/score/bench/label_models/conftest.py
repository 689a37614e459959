"""Small material whose true probabilities are written here, not taken from a world."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from oscar_causal.data.sequences import Dataset, from_records
from oscar_causal.score.bench.label_models.material import Material

WEIGHTS = {"A": 2.5, "B": 1.5, "C": -2.0, "D": 0.0, "E": 0.0}


def additive(count: int, part: str) -> tuple[Dataset, list[float]]:
    """Label y with log odds -1.5 plus the weights of the events that are there, and the true P of each sequence."""
    rng = np.random.default_rng([len(part), count])
    records, probs = [], []
    for i in range(count):
        events = [name for name in WEIGHTS if rng.random() < 0.4] + ["END"]
        p = 1 / (1 + np.exp(1.5 - sum(WEIGHTS.get(name, 0.0) for name in events)))
        came = ["y"] if rng.random() < p else []
        times = sorted(rng.uniform(0, 3600, size=len(events)).tolist())
        records.append({"sequence_id": f"{part}-{i}", "events": events, "times": times, "labels": came})
        probs.append(float(p))
    return from_records(records), probs


def ordered(count: int, part: str) -> Dataset:
    """Label `ab` where A stands before B; both are always there, so nothing but order tells."""
    rng = np.random.default_rng([len(part), count])
    records = []
    for i in range(count):
        first = rng.random() < 0.5
        events = ["A", "B"] if first else ["B", "A"]
        times = sorted(rng.uniform(0, 3600, size=3).tolist())
        records.append(
            {
                "sequence_id": f"{part}-{i}",
                "events": [*events, "END"],
                "times": times,
                "labels": ["ab"] if first else [],
            }
        )
    return from_records(records)


@pytest.fixture
def order_material(tmp_path: Path) -> Material:
    return Material(ordered(600, "train"), ordered(200, "test"), tmp_path)


@pytest.fixture
def add_up() -> Callable[[int, str], tuple[Dataset, list[float]]]:
    return additive
