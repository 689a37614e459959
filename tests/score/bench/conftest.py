"""A very small fleet and a model trained on it for a moment: enough to run every row, not to be good."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from oscar_causal.data.sequences import read_dataset
from oscar_causal.data.synthetic import preset, write_fleet
from oscar_causal.density.fitting import train
from oscar_causal.density.settings import preset_config
from oscar_causal.score.bench.place import Place
from oscar_causal.score.bench.settings import BenchSettings, bench_settings


@dataclass(frozen=True)
class Ready:
    """Folders of a fleet and of its model."""

    fleet: Path
    model: Path
    work: Path


@pytest.fixture(scope="session")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Ready:
    folder = tmp_path_factory.mktemp("bench")
    write_fleet(preset("demo", sequences=240, mean_length=26.0, sd_length=5.0), 0, folder / "fleet", workers=1)
    place = Place(bench_settings(folder, quick=True, dataset=folder / "fleet"))
    training = read_dataset(place.selected(place.training_rows))
    train(training, folder / "model", preset_config("tiny", steps=6, batch_tokens=1024))
    return Ready(folder / "fleet", folder / "model", folder / "work")


@pytest.fixture
def settings(ready: Ready, tmp_path: Path) -> Callable[..., BenchSettings]:
    """Settings of a bench on the small fleet; what earlier tests explained is used again."""

    def make(**given: Any) -> BenchSettings:
        places = {"dataset": ready.fleet, "model": ready.model, "work": ready.work}
        return bench_settings(tmp_path / "out", quick=True, **{**places, "test": 8, "runs": 2, **given})

    return make
