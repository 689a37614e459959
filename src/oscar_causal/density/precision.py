"""How exactly single precision numbers are multiplied, and on which GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def float32_products(precision: str) -> Iterator[None]:
    """Products of single precision numbers inside: `highest` or `high` (tf32 on a GPU)."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@contextmanager
def quick_products(device: torch.device) -> Iterator[None]:
    """As `discover` multiplies by default: tf32 on a GPU, several times as fast; on other devices nothing changes."""
    if device.type != "cuda":
        yield
        return
    with float32_products("high"):
        yield


def settle_on(device: str) -> None:
    """Of a GPU (`cuda`, `cuda:1`): from now on this process launches its kernels there and multiplies in tf32."""
    if device.startswith("cuda"):
        index = torch.device(device).index
        if index is not None:
            torch.cuda.set_device(index)
        torch.set_float32_matmul_precision("high")
