"""How long a piece of work takes on a device, how much memory, and how fast the device multiplies at best."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

GIB = 1 << 30


@dataclass(frozen=True)
class Timed:
    """One measurement."""

    seconds: float
    peak_gib: float | None
    """Most memory that torch held on the GPU, recorded graphs included, beyond `beside`; None on a CPU."""


def measure(work: Callable[[], Any], device: str, *, beside: int = 0) -> Timed:
    """Run the work once; what is to be compiled must have been. `beside`: bytes of weights that do not count."""
    import torch

    gc.collect()
    if device.startswith("cuda"):
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    begun = time.perf_counter()
    work()
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    seconds = time.perf_counter() - begun
    peak = (torch.cuda.max_memory_reserved() - beside) / GIB if device.startswith("cuda") else None
    return Timed(seconds, peak)


@contextmanager
def one_thread() -> Iterator[None]:
    """torch on one thread."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def ceiling_tflops(device: str, *, size: int | None = None, rounds: int = 5, products: int = 10) -> float:
    """The best of some rounds of matrix products: bfloat16, 8192 cubed on a GPU; float32, 1024 cubed on a CPU.

    Products of a round follow each other and write where there is room already. One at a time, with its launch and what
    it asks of memory, gave 613 TFLOP/s on an H200 where fifty in a row gave 712.
    """
    import torch

    gpu = device.startswith("cuda")
    size = size or (8192 if gpu else 1024)
    dtype = torch.bfloat16 if gpu else torch.float32
    left, right = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    out = torch.empty_like(left)

    def work() -> None:
        for _ in range(products):
            torch.mm(left, right, out=out)

    work()
    seconds = min(measure(work, device).seconds for _ in range(rounds))
    return 2 * size**3 * products / seconds / 1e12
