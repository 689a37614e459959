"""Kernels of laws against what torch makes of the same laws, on Triton's interpreter where there is no GPU."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch

from oscar_causal.data.vocabulary import SPECIAL_IDS
from oscar_causal.discovery import contexts, device_contexts
from oscar_causal.discovery.contexts import without_types
from oscar_causal.discovery.device_contexts import draw_from, running_sums

if sys.platform != "linux":
    pytest.skip("Triton is for Linux alone", allow_module_level=True)


def law_of(length: int, events: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(events)
    return torch.randn(length, events + 11, generator=generator).mul(3).softmax(-1)[:, :events]  # rows with a rest


@pytest.mark.bits
@pytest.mark.parametrize("events", [5, 128, 129, 3000])
def test_laws_and_their_sums_are_those_of_torch(events: int, monkeypatch: pytest.MonkeyPatch) -> None:
    law, types = law_of(4, events), np.array([SPECIAL_IDS, events - 1])
    plain = without_types(law, types)
    sums = running_sums(plain)
    for module in (contexts, device_contexts):
        monkeypatch.setattr(module, "has_kernels", lambda _: True)
    found = without_types(law, types)
    assert torch.allclose(found, plain, rtol=1e-6, atol=0)
    assert (found[:, types] == 0).all()
    assert torch.allclose(found.double().sum(-1), torch.ones(4, dtype=torch.float64), atol=1e-6)
    summed = running_sums(plain)
    assert summed.dtype == torch.float64
    assert torch.allclose(summed, sums, rtol=1e-14, atol=0)
    uniforms = torch.rand(50, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    assert torch.equal(draw_from(summed, uniforms, events), draw_from(sums, uniforms, events))


def test_where_a_law_leaves_nothing_every_other_type_is_as_likely(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contexts, "has_kernels", lambda _: True)
    law = torch.zeros(2, 40)
    law[:, SPECIAL_IDS] = 1.0
    found = without_types(law, np.array([SPECIAL_IDS]))
    left = 40 - SPECIAL_IDS - 1
    assert torch.allclose(found[:, SPECIAL_IDS + 1 :], torch.full((2, left), 1 / left))


def test_kernels_are_for_rows_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_contexts, "has_triton", lambda: True)
    assert not device_contexts.has_kernels(law_of(2, 9))
