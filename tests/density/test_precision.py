"""Products are made coarser inside only, and on a GPU only."""

from __future__ import annotations

import pytest
import torch

from oscar_causal.density.precision import float32_products, quick_products, settle_on


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
