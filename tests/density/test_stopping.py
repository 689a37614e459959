"""Training stops when held-out data gains nothing any more, and keeps the best weights."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from oscar_causal.data.sequences import Dataset
from oscar_causal.data.subjects import held_out
from oscar_causal.density import settings, training
from oscar_causal.density.checkpoint import load_model
from oscar_causal.density.fitting import train
from oscar_causal.density.held_out import BELIEVED, held_out_event_loss, held_out_label_losses
from oscar_causal.density.settings import TrainConfig
from oscar_causal.density.transformer import Network


def test_patience(fleet: Dataset, tiny: TrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rate at which training falls apart: the best look comes soon, `patience` looks later it ends."""
    monkeypatch.setitem(settings.SIZES, "tiny", settings.SIZES["tiny"] | {"shortlist": 0})
    config = replace(tiny, steps=60, evaluations=30, patience=4, learning_rate=1.0, warmup=0.2)
    train(fleet, tmp_path / "model", config)
    told = json.loads((tmp_path / "model" / "training.json").read_text())
    looks = {look["step"]: look for look in told["history"]}
    best = min(looks, key=lambda step: looks[step]["held_out_loss"])
    assert told["steps"] == max(looks) == best + 4 * 2 < 60
    model = load_model(tmp_path / "model")
    outside = fleet.take(np.flatnonzero(held_out(fleet.subject_ids, config.validation, seed=config.seed)))
    at_end, weighted = held_out_label_losses(model.network, model.encode(outside), config)
    event, all_of_it = held_out_event_loss(model.network, model.encode(outside)), BELIEVED.index(1.0)
    assert at_end[all_of_it] == pytest.approx(looks[best]["held_out_label_loss"], rel=1e-5)
    assert event == pytest.approx(looks[best]["held_out_event_loss"], rel=1e-5)
    assert event + 4.0 * weighted[all_of_it] == pytest.approx(looks[best]["held_out_loss"], rel=1e-5)


@pytest.mark.bits
@pytest.mark.parametrize(
    ("events", "alone", "whole", "believed"),
    [
        ((1.0, 3.0, 9.0), (6.0, 4.0, 3.0), (5.0, 5.0, 5.0), 0.0),  # 21, 19 and 21; apart 1 + 4 * 3
        ((1.0, 0.9, 9.0), (6.0, 4.0, 3.5), (5.0, 3.0, 3.0), 0.6),  # 21, 12.9 and 21; apart 0.9 + 4 * 3.5
    ],
)
def test_shortlists_may_be_of_a_later_look(
    events: tuple[float, ...],
    alone: tuple[float, ...],
    whole: tuple[float, ...],
    believed: float,
    fleet: Dataset,
    tiny: TrainConfig,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where Tf_x learns by heart before the shortlists are done, it is of its best look and they are of theirs."""
    states: list[dict[str, torch.Tensor]] = []

    def label_losses(*_: object, **__: object) -> tuple[list[float], list[float]]:
        losses = [9.0] * len(BELIEVED)
        losses[BELIEVED.index(0.6)], losses[-1] = whole[len(states)], alone[len(states)]
        return losses, losses

    def event_loss(network: Network, *_: object, **__: object) -> float:
        states.append({name: tensor.clone() for name, tensor in network.state_dict().items()})
        return events[len(states) - 1]

    monkeypatch.setattr(training, "held_out_label_losses", label_losses)
    monkeypatch.setattr(training, "held_out_event_loss", event_loss)
    train(fleet, tmp_path / "model", replace(tiny, steps=3, evaluations=3, patience=3))
    assert json.loads((tmp_path / "model" / "training.json").read_text())["believed"] == believed
    apart = believed == 0.0
    for name, tensor in load_model(tmp_path / "model").network.state_dict().items():
        listed = name.startswith("shortlist.") or name == "label_head.bias"
        wanted = states[2 * listed if apart else 1][name]
        assert torch.equal(tensor, believed * wanted if name == "label_head.weight" else wanted), name


def test_with_patience_all_steps_are_made(fleet: Dataset, tiny: TrainConfig, tmp_path: Path) -> None:
    config = replace(tiny, steps=24, evaluations=12, patience=12, learning_rate=1.0, warmup=0.2)
    train(fleet, tmp_path / "model", config)
    assert json.loads((tmp_path / "model" / "training.json").read_text())["steps"] == 24
