"""A tiny fleet drawn from an exactly solvable process, and models trained on it in seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from oscar_causal.data.sequences import Dataset, from_table, read_dataset
from oscar_causal.data.solvable import SolvableProcess, example
from oscar_causal.data.writer import write_dataset
from oscar_causal.density.fitting import train
from oscar_causal.density.settings import TrainConfig


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> Iterator[None]:
    """Bit-equal results need a fixed number of threads, and workers share the cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def draw_table(process: SolvableProcess, count: int, *, seed: int, first: int = 0) -> pa.Table:
    """Sequences of a process; two per subject; a channel with holes; some unlabelled; label times."""
    rng = np.random.default_rng(seed)
    drawn = process.sample(count, rng)
    records: list[dict[str, Any]] = []
    for i in range(count):
        mileage = [None if rng.random() < 0.2 else float(x) for x in rng.normal(1e4, 2e3, process.length)]
        names = [process.label_names[j] for j in np.flatnonzero(drawn.labels[i])]
        records.append(
            {
                "sequence_id": f"sequence {first + i}",
                "subject_id": f"subject {(first + i) // 2}",
                "events": [process.event_names[t] for t in drawn.event_ids[i]],
                "times": drawn.times[i].tolist(),
                "mileage": mileage,
                "labels": None if i % 25 == 24 else names,
                "label_times": None if i % 25 == 24 else [float(drawn.times[i, -1]) + 60 for _ in names],
            }
        )
    return pa.Table.from_pylist(records)


@pytest.fixture(scope="session")
def table() -> Callable[..., pa.Table]:
    """Draw a table from a process."""
    return draw_table


@pytest.fixture(scope="session")
def draw() -> Callable[..., Dataset]:
    """Draw a dataset from a process."""
    return lambda *words, **options: from_table(draw_table(*words, **options))


@pytest.fixture(scope="session")
def process() -> SolvableProcess:
    return example("graded")


@pytest.fixture(scope="session")
def fleet_folder(process: SolvableProcess, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("data") / "fleet"
    write_dataset(out, [draw_table(process, 240, seed=1)])
    return out


@pytest.fixture(scope="session")
def fleet(fleet_folder: Path) -> Dataset:
    return read_dataset(fleet_folder)


@pytest.fixture(scope="session")
def tiny() -> TrainConfig:
    """Settings that train in a second or two."""
    return TrainConfig(steps=12, batch_tokens=256, min_context=2, max_length=16, evaluations=3, learning_rate=3e-3)


@pytest.fixture(scope="session")
def model_folder(fleet: Dataset, tiny: TrainConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("plain") / "model"
    train(fleet, out, tiny)
    return out


@pytest.fixture(scope="session")
def folds_folder(fleet: Dataset, tiny: TrainConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("folded") / "model"
    train(fleet, out, tiny, folds=3)
    return out


@pytest.fixture(scope="session")
def peak_bytes() -> Callable[[Callable[[], Any]], int]:
    """Measure the most bytes that torch holds for some work at one time."""
    return _peak_bytes


def _peak_bytes(work: Callable[[], Any]) -> int:
    """Most bytes allocated at one time, by adding up the profiler's record of allocations and frees."""
    from torch.profiler import ProfilerActivity, profile

    work()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
        work()
    total = peak = 0
    for event in record.profiler.kineto_results.events():
        if event.name() == "[memory]":
            total += event.nbytes()
            peak = max(peak, total)
    return peak
