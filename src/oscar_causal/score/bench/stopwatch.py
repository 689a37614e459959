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


def ceiling_tflops(device: str, *, size: int | None = None, repeats: int = 20) -> float:
    """The best of some matrix products: bfloat16, 8192 cubed on a GPU; float32, 1024 cubed on a CPU."""
    import torch

    gpu = device.startswith("cuda")
    size = size or (8192 if gpu else 1024)
    left, right = (torch.randn(size, size, device=device, dtype=torch.bfloat16 if gpu else None) for _ in range(2))
    seconds = [measure(lambda: left @ right, device).seconds for _ in range(repeats)]
    return 2 * size**3 / min(seconds) / 1e12
