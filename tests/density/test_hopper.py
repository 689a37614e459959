"""A block made of kernels answers like the block it was made of; and it is made only where there are kernels for it."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
import torch

from oscar_causal.density import compiled, hopper
from oscar_causal.density.compiled import CompiledNetwork, Question
from oscar_causal.density.hopper import HopperBag, HopperBlock, suits
from oscar_causal.density.interface import Contexts
from oscar_causal.density.many_slopes import SlopeQuestion, slopes_together
from oscar_causal.density.transformer import Network, NetworkConfig, Tokens, rotary_table

CONFIG = NetworkConfig(60, 6, channels=1, width=64, heads=2, layers=2, hidden=40, shortlist=7)
needs_triton = pytest.mark.skipif(sys.platform != "linux", reason="Triton is for Linux alone")


def network_of(config: NetworkConfig) -> Network:
    network, generator = Network(config), torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(1 + 0.3 * noise if "norm" in name else 0.2 * noise)
    return network.eval().requires_grad_(False)


@needs_triton
def test_a_block_of_kernels_is_the_block() -> None:
    block, rotation = network_of(CONFIG).blocks[0], rotary_table(torch.arange(9), 32)
    state, tokens = torch.randn(3, 9, 64, generator=torch.Generator().manual_seed(1)), Tokens(*5 * [torch.zeros(1)])
    with torch.inference_mode():
        found = HopperBlock(block)(state.clone(), rotation, tokens)  # type: ignore[arg-type]
    assert torch.allclose(found, block(state, rotation, tokens), atol=1e-4)


@pytest.mark.bits
@needs_triton
@pytest.mark.parametrize("form", ["shared", "cross"])
def test_launches_of_kernels_answer_as_those_without(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    network = network_of(replace(CONFIG, label_form=form))  # type: ignore[arg-type]
    questions = []
    for length in (5, 20, 21):
        ids = torch.randint(3, 60, (4, length), generator=torch.Generator().manual_seed(length))
        contexts = Contexts(ids, torch.arange(length).double(), torch.zeros(length, 1))
        questions.append(Question(contexts, torch.tensor([0, 3]), torch.tensor([length])))
        questions.append(Question(contexts, torch.tensor([1]), torch.arange(2, length + 1)))
    from oscar_causal.density import kernels

    monkeypatch.setattr(compiled, "LAUNCH_TOKENS", {"end": 96, "along": 384, "events": 48})  # an interpreter is slow
    for name in ("NORMED", "SCALED", "TURNED"):
        monkeypatch.setattr(kernels, name, 64)
    plain = CompiledNetwork(network, torch.float32)
    monkeypatch.setattr(compiled, "suits", lambda *_: True)
    fast = CompiledNetwork(network, torch.float32)
    assert all(isinstance(block, HopperBlock) for block in fast.body.blocks)
    assert isinstance(fast.body.bag, HopperBag)
    for first, second in zip(plain.label_logits(questions), fast.label_logits(questions), strict=True):
        assert torch.allclose(first, second, atol=1e-3 * float(first.abs().max()))
    sequences = [question.contexts.rows(slice(0, 1)) for question in questions]
    for states, others in zip(plain.event_states(sequences), fast.event_states(sequences), strict=True):
        assert torch.allclose(states, others, atol=1e-3)
    law = torch.full((20, 60), 1 / 60)
    asked = [SlopeQuestion(sequences[2], torch.tensor([0, 3]), law, (0.4,))]
    for slopes, others in zip(slopes_together(plain, asked), slopes_together(fast, asked), strict=True):
        assert torch.equal(slopes, others)  # a way back is asked for: blocks as they are


def test_kernels_are_for_what_they_were_made_for(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = torch.device("cuda")
    monkeypatch.setattr(hopper, "has_triton", lambda: True)
    monkeypatch.setattr(hopper, "_capability", lambda _: (9, 0))
    assert suits(CONFIG, torch.bfloat16, gpu)
    assert not suits(CONFIG, torch.float32, gpu)
    assert not suits(CONFIG, torch.bfloat16, torch.device("cpu"))
    assert not suits(replace(CONFIG, hidden=44), torch.bfloat16, gpu)
    assert not suits(replace(CONFIG, bag_width=18), torch.bfloat16, gpu)
    assert not suits(replace(CONFIG, width=48), torch.bfloat16, gpu)  # heads of 24
    monkeypatch.setattr(hopper, "_capability", lambda _: (8, 0))
    assert not suits(CONFIG, torch.bfloat16, gpu)
    monkeypatch.setattr(hopper, "_capability", lambda _: (9, 0))
    monkeypatch.setattr(hopper, "has_triton", lambda: False)
    assert not suits(CONFIG, torch.bfloat16, gpu)
