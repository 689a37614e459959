"""Held-out losses against a loop over sequences and places."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from oscar_causal.data.sequences import Dataset
from oscar_causal.density import held_out
from oscar_causal.density.checkpoint import load_model
from oscar_causal.density.fitting import train
from oscar_causal.density.held_out import BELIEVED, held_out_event_loss, held_out_label_losses
from oscar_causal.density.model import sequence_contexts
from oscar_causal.density.settings import TrainConfig


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


@pytest.mark.parametrize("most", [1 << 16, 50])
def test_the_event_loss_by_hand(
    most: int, fleet: Dataset, tiny: TrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(fleet, tmp_path / "model", replace(tiny, steps=6))
    model = load_model(tmp_path / "model")
    encoded = model.encode(fleet.take(np.arange(12)))
    monkeypatch.setattr(held_out, "EVENTS", most)
    every = -(-len(encoded.events.ids) // most)
    assert (every > 1) == (most == 50)
    chances = []
    for k in range(0, 12, every):
        law = model.event_probs(sequence_contexts(encoded, k)).numpy()
        chances += [law[place, event] for place, event in enumerate(encoded.events[k].tolist())]
    assert held_out_event_loss(model.network, encoded) == pytest.approx(-np.log(chances).mean(), rel=1e-5)
