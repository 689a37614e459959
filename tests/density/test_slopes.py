"""Slopes of label log odds: against finite differences of the blended network, and exact where the model is linear."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from oscar_causal.data.vocabulary import SPECIAL_IDS, Vocabulary
from oscar_causal.density.folds import MeanModel
from oscar_causal.density.interface import Contexts
from oscar_causal.density.model import OscarModel
from oscar_causal.density.shortlist import Past
from oscar_causal.density.slopes import has_slopes
from oscar_causal.density.transformer import Blend, Network, NetworkConfig

TYPES, LENGTH = 17, 9


def model_of(form: str = "shared", seed: int = 0, channels: tuple[str, ...] = ()) -> OscarModel:
    torch.manual_seed(seed)
    config = NetworkConfig(
        events=TYPES + SPECIAL_IDS,
        labels=4,
        channels=len(channels),
        width=32,
        heads=4,
        layers=2,
        label_form=form,  # type: ignore[arg-type]
        hidden=48,
        shortlist=6,
    )
    network = Network(config)
    assert network.shortlist is not None
    for table in (network.label_head.weight, network.bag.events.weight, network.shortlist.singles):  # quiet at birth
        torch.nn.init.normal_(table)
    if network.embedding.values is not None:
        torch.nn.init.normal_(network.embedding.values.weight)
    vocabulary = Vocabulary(tuple(f"e{k}" for k in range(TYPES)), ("a", "b", "c", "d"))
    return OscarModel(network.eval().requires_grad_(False), vocabulary, channels, 64, 1)


def sequence_and_law() -> tuple[Contexts, torch.Tensor]:
    rng = np.random.default_rng(1)
    ids = torch.as_tensor(rng.integers(SPECIAL_IDS, SPECIAL_IDS + TYPES, LENGTH))[None]
    law = torch.as_tensor(rng.dirichlet(np.ones(TYPES + SPECIAL_IDS), LENGTH)).float()
    return Contexts(ids, torch.arange(LENGTH).double(), torch.zeros(LENGTH, 0)), law


@pytest.mark.parametrize("form", ["shared", "cross"])
@pytest.mark.parametrize("share", [0.02, 0.35])
def test_slopes_are_finite_differences_of_the_faded_network(form: str, share: float) -> None:
    model, (sequence, law) = model_of(form), sequence_and_law()
    labels = torch.tensor([2, 0])
    slopes = model.label_slopes(sequence, labels, law, [share])[0]  # (L, 2)
    network = model.network
    means = [
        torch.cat([torch.zeros(1, table.weight.shape[1]), law @ table.weight[: law.shape[1]]])
        for table in (network.embedding.events, network.bag.events)
    ]

    def log_odds(faded: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            tokens = model._tokens(sequence)
            _, hidden = network(tokens, Blend(faded, *means))
            return network.label_logits(
                hidden[:, -1], Past(tokens.event_ids, tokens.gaps, tokens.elapsed, 1 - faded), labels
            )[0]

    start = torch.full((1, LENGTH + 1), share)
    start[:, 0] = 0.0
    for at in range(LENGTH):
        step = torch.zeros_like(start)
        step[0, at + 1] = 1e-2
        wanted = -(log_odds(start + step) - log_odds(start - step)) / 2e-2
        assert slopes[at].tolist() == pytest.approx(wanted.tolist(), rel=0.02, abs=0.02 * float(slopes.abs().max()))


def test_a_blend_of_share_one_is_the_replacement_itself() -> None:
    """With a law that is certain of one event, fading to the end is replacing; channel values are missing then."""
    model, (sequence, _) = model_of(channels=("load",)), sequence_and_law()
    sequence = replace(sequence, channels=torch.arange(LENGTH).float()[:, None])
    network = model.network
    others = (sequence.event_ids + 1 - SPECIAL_IDS) % TYPES + SPECIAL_IDS
    means = [
        torch.cat([torch.zeros(1, table.weight.shape[1]), table.weight[others[0]]])
        for table in (network.embedding.events, network.bag.events)
    ]
    share = torch.ones(1, LENGTH + 1)
    share[:, 0] = 0.0
    replaced = Contexts(others, sequence.times, torch.full_like(sequence.channels, torch.nan))
    for blended, plain in zip(
        network(model._tokens(sequence), Blend(share, *means)), network(model._tokens(replaced)), strict=True
    ):
        assert torch.allclose(blended, plain, atol=1e-5)


def test_labels_do_not_disturb_each_other_and_folds_average() -> None:
    sequence, law = sequence_and_law()
    first, second = model_of(seed=0), model_of(seed=1)
    both = first.label_slopes(sequence, torch.tensor([1, 3]), law, [0.1, 0.4])
    for column, label in enumerate((1, 3)):
        alone = first.label_slopes(sequence, torch.tensor([label]), law, [0.1, 0.4])
        assert torch.allclose(both[:, :, column], alone[:, :, 0], atol=1e-5)
    mean = MeanModel((first, second))
    assert has_slopes(mean)
    wanted = (both + second.label_slopes(sequence, torch.tensor([1, 3]), law, [0.1, 0.4])) / 2
    assert torch.allclose(mean.label_slopes(sequence, torch.tensor([1, 3]), law, [0.1, 0.4]), wanted)
