"""Tf_y alone says what the whole network says, at the tokens that are asked."""

from __future__ import annotations

import pytest
import torch

from oscar_causal.density.label_pass import label_states
from oscar_causal.density.transformer import Network, NetworkConfig, Tokens


@pytest.mark.parametrize(("form", "layers"), [("shared", 0), ("shared", 1), ("shared", 2), ("cross", 1), ("cross", 2)])
def test_states_are_those_of_the_whole_network(form: str, layers: int) -> None:
    torch.manual_seed(0)
    config = NetworkConfig(50, 5, channels=1, width=32, heads=2, layers=2, label_layers=layers, label_form=form)  # type: ignore[arg-type]
    network = Network(config).eval()
    torch.nn.init.normal_(network.bag.events.weight)
    torch.nn.init.normal_(network.embedding.times.weight)
    times = torch.rand(1, 21).cumsum(1)
    channels = torch.randn(1, 21, 1).masked_fill(torch.rand(1, 21, 1) < 0.3, torch.nan)
    tokens = Tokens(torch.randint(0, 50, (6, 21)), times, times, channels, torch.arange(21))
    at = torch.randint(0, 21, (6, 3))
    with torch.inference_mode():
        whole = network(tokens)[1]
        assert torch.allclose(label_states(network, tokens), whole, atol=1e-6)
        chosen = whole[torch.arange(6)[:, None], at]
        assert torch.allclose(label_states(network, tokens, at), chosen, atol=1e-5)
    assert whole.std() > 0.1  # the comparison is about something
