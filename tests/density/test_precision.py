"""Products are made coarser inside only, and on a GPU only; sums of two threads have one order."""

from __future__ import annotations

import pytest
import torch

from oscar_causal.density.precision import float32_products, quick_products, repeatable, settle_on


def test_precision_is_put_back_even_after_an_error() -> None:
    before = torch.get_float32_matmul_precision()

    def fail() -> None:
        with float32_products("high"):
            assert torch.get_float32_matmul_precision() == "high"
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    assert torch.get_float32_matmul_precision() == before


@pytest.mark.parametrize(("device", "inside"), [("cuda", "high"), ("cpu", None)])
def test_quick_products_are_for_gpus(device: str, inside: str | None) -> None:
    before = torch.get_float32_matmul_precision()
    with quick_products(torch.device(device)):
        assert torch.get_float32_matmul_precision() == (inside or before)
    assert torch.get_float32_matmul_precision() == before


def test_a_process_settles_on_one_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[int] = []
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    with float32_products("highest"):
        settle_on("cpu")
        assert torch.get_float32_matmul_precision() == "highest"
        settle_on("cuda")
        assert chosen == []
        settle_on("cuda:1")
        assert torch.get_float32_matmul_precision() == "high"
    assert chosen == [1]


@pytest.mark.bits
def test_two_threads_add_to_a_gradient_in_one_order() -> None:
    """A few rows picked many times each: left alone, threads add to a row's gradient in the order of their arrival."""
    table = torch.randn(4, 64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    rows = torch.arange(20_000) % 4
    weights = torch.randn(20_000, 64, generator=torch.Generator().manual_seed(1))

    def gradient() -> torch.Tensor:
        return torch.autograd.grad((table[rows] * weights).sum(), table)[0]

    with repeatable(2, torch.device("cpu")):
        found = [gradient() for _ in range(5)]
    in_order = torch.zeros(4, 64)
    for row, weight in zip(rows.tolist(), weights, strict=True):
        in_order[row] += weight
    assert all(torch.equal(one, in_order) for one in found)


def test_what_makes_runs_repeatable_is_put_back() -> None:
    def modes() -> tuple[int, bool, bool]:
        enabled = torch.are_deterministic_algorithms_enabled()
        return torch.get_num_threads(), enabled, torch.is_deterministic_algorithms_warn_only_enabled()

    before = modes()
    with repeatable(3, torch.device("cuda")):
        assert modes() == (3, *before[1:])  # a GPU keeps its fastest kernels
    torch.use_deterministic_algorithms(True, warn_only=True)
    with repeatable(3, torch.device("cpu")):
        assert modes() == (3, True, False)
    assert modes() == (before[0], True, True)
    torch.use_deterministic_algorithms(False)
    assert modes() == before
