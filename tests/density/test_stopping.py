"""Training stops when held-out data gains nothing any more, and keeps the best weights."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from oscar_causal.data.sequences import Dataset
from oscar_causal.data.subjects import held_out
from oscar_causal.density.checkpoint import load_model
from oscar_causal.density.fitting import train
from oscar_causal.density.held_out import BELIEVED, held_out_label_losses
from oscar_causal.density.settings import TrainConfig


def test_patience(fleet: Dataset, tiny: TrainConfig, tmp_path: Path) -> None:
    """A rate at which training falls apart: the best look comes soon, `patience` looks later it ends."""
    config = replace(tiny, steps=60, evaluations=30, patience=4, learning_rate=1.0, warmup=0.2)
    train(fleet, tmp_path / "model", config)
    told = json.loads((tmp_path / "model" / "training.json").read_text())
    looks = {look["step"]: look["held_out_label_loss"] for look in told["history"]}
    best = min(looks, key=lambda step: looks[step])
    assert told["steps"] == max(looks) == best + 4 * 2 < 60
    model = load_model(tmp_path / "model")
    outside = fleet.take(np.flatnonzero(held_out(fleet.subject_ids, config.validation, seed=config.seed)))
    at_end, _ = held_out_label_losses(model.network, model.encode(outside), config)
    assert at_end[BELIEVED.index(1.0)] == pytest.approx(looks[best], rel=1e-5)


def test_with_patience_all_steps_are_made(fleet: Dataset, tiny: TrainConfig, tmp_path: Path) -> None:
    config = replace(tiny, steps=24, evaluations=12, patience=12, learning_rate=1.0, warmup=0.2)
    train(fleet, tmp_path / "model", config)
    assert json.loads((tmp_path / "model" / "training.json").read_text())["steps"] == 24
