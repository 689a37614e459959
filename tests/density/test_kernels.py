"""Kernels of blocks against the formulas they stand for, on Triton's interpreter where there is no GPU."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from oscar_causal.density.hopper import turning_order
from oscar_causal.density.transformer import rotary_table, rotate, turning_pairs

if sys.platform != "linux":
    pytest.skip("Triton is for Linux alone", allow_module_level=True)

from oscar_causal.density import kernels


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(("tokens", "width", "hidden"), [(300, 96, 160), (40, 64, 128), (128, 72, 200), (1, 8, 8)])
def test_a_gated_product_is_two_products_and_a_gate(tokens: int, width: int, hidden: int) -> None:
    x, scale, weight = random(tokens, width), random(tokens, seed=1).exp(), random(2 * hidden, width, seed=2) / 8
    gate, value = ((scale[:, None] * x).double() @ weight.double().T).chunk(2, dim=-1)
    found = kernels.gated_product(x, scale, weight)
    assert found.shape == (tokens, hidden)
    assert torch.allclose(found.double(), F.silu(gate) * value, atol=1e-4)


@pytest.mark.parametrize("eps", [1e-7, 0.5])
def test_norms_are_those_of_torch(eps: float) -> None:
    x, weight = random(7, 96), random(96, seed=1)
    x[3] = 0.0
    assert torch.allclose(kernels.normed(x, weight, eps), F.rms_norm(x, (96,), weight, eps), atol=1e-5)
    scales = kernels.inverse_norms(x, eps)
    assert torch.allclose(scales[:, None] * x, F.rms_norm(x, (96,), None, eps), atol=1e-5)


@pytest.mark.parametrize(("size", "heads"), [(16, 3), (64, 2)])
def test_turning_in_place_is_rotating(size: int, heads: int) -> None:
    rows, length = 2, 9
    table, told = rotary_table(torch.arange(length), size), random(rows, length, heads + 1, size)
    wanted = rotate(told, table)[..., turning_order(size)]
    ordered = told[..., turning_order(size)].clone()
    kernels.turn(ordered.view(rows * length, -1), table[:, 0], heads, turning_pairs(size))
    assert torch.allclose(ordered[:, :, :heads], wanted[:, :, :heads], atol=1e-6)
    assert torch.equal(ordered[:, :, heads], told[:, :, heads][..., turning_order(size)])  # the last one is no key


@pytest.mark.parametrize(("rows", "length", "width"), [(3, 150, 40), (2, 64, 32), (1, 1, 4)])
def test_running_sums_are_those_of_torch(rows: int, length: int, width: int) -> None:
    ids = torch.randint(0, 11, (rows, length), generator=torch.Generator().manual_seed(0))
    table = random(11, width)
    wanted = F.embedding(ids, table).double().cumsum(1)
    assert torch.allclose(kernels.running_sums(ids, table).double(), wanted, atol=1e-4)


@pytest.mark.parametrize(("tokens", "width", "depth"), [(300, 160, 40), (5, 8, 4)])
def test_an_added_product_is_a_product_and_a_sum(tokens: int, width: int, depth: int) -> None:
    state, x, weight = random(tokens, width), random(tokens, depth, seed=1), random(width, depth, seed=2)
    wanted = state.double() + x.double() @ weight.double().T
    assert torch.allclose(kernels.added_product(state, x, weight).double(), wanted, atol=1e-4)


@pytest.fixture
def products_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter multiplies tiles by NumPy's BLAS, which may add up the first and the last rows of a tile in other
    orders (Haswell's, for one), as no matrix unit of a GPU does. Here it adds up every element from first to last.
    """
    from triton.runtime import interpreter

    def create_dot(_builder: Any, a: Any, b: Any, d: Any, *_: Any) -> Any:
        total = np.zeros(d.data.shape, d.data.dtype)
        for k in range(a.data.shape[1]):
            total += a.data[:, k : k + 1] * b.data[k : k + 1]
        return interpreter.TensorHandle(total + d.data, d.dtype.scalar)

    monkeypatch.setattr(interpreter.InterpreterBuilder, "create_dot", create_dot)


@pytest.mark.bits
@pytest.mark.usefixtures("products_in_order")
def test_company_changes_no_bit() -> None:
    x, scale, weight, norm = random(300, 64), random(300, seed=1), random(320, 64, seed=2), random(64, seed=3)
    sums = random(300, 320, seed=4)
    mine = slice(131, 174)
    for kernel in (
        lambda part: kernels.added_product(sums[part].contiguous(), x[part].contiguous(), weight),
        lambda part: kernels.gated_product(x[part].contiguous(), scale[part].contiguous(), weight),
        lambda part: kernels.normed(x[part], norm, 1e-6),
        lambda part: kernels.inverse_norms(x[part], 1e-6),
    ):
        assert torch.equal(kernel(slice(None))[mine], kernel(mine))
