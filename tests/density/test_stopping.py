"""Training stops when held-out data gains nothing any more, and keeps the best weights."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from oscar_causal.data.sequences import Dataset
from oscar_causal.data.subjects import held_out
from oscar_causal.density.checkpoint import load_model
from oscar_causal.density.fitting import train
from oscar_causal.density.settings import TrainConfig
from oscar_causal.density.training import BELIEVED, held_out_label_losses


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


def test_held_out_losses_by_hand(fleet: Dataset, tiny: TrainConfig, tmp_path: Path) -> None:
    config = replace(tiny, steps=6, min_context=2, prefix_weight=0.5)
    train(fleet, tmp_path / "model", config)
    model = load_model(tmp_path / "model")
    encoded = model.encode(fleet.take(np.arange(12)))
    at_end, weighted = held_out_label_losses(model.network, encoded, config)
    plain, rest, count = 0.0, 0.0, 0
    for k in np.flatnonzero(encoded.labelled).tolist():
        length, count = int(encoded.events.lengths[k]), count + 1
        places = [length, *(min(2 + int((step + 0.5) / 4 * max(length - 2, 0)), length) for step in range(4))]
        logits = model.label_logits_at(encoded, np.array([k]), np.array([places]))[0].double()
        target = torch.zeros(logits.shape[1]).double()
        target[encoded.labels[k].tolist()] = 1.0
        losses = F.binary_cross_entropy_with_logits(logits, target.expand_as(logits), reduction="none").sum(-1)
        plain += float(losses[0])
        rest += float(losses[1:].mean()) * (0.5 if length > 2 else 0.0)
    assert at_end[0] == pytest.approx(plain / count, rel=1e-5)
    assert weighted[0] == pytest.approx((plain + rest) / count, rel=1e-5)
    model.network.label_head.weight.data.mul_(0.3)
    scaled, _ = held_out_label_losses(model.network, encoded, config)
    assert scaled[0] == pytest.approx(at_end[BELIEVED.index(0.3)], rel=1e-5)
