"""What decides the last bits of a figure: precision, order of addition, number of threads, versions of libraries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from oscar_causal import __version__
from oscar_causal.errors import UsageError


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


@contextmanager
def repeatable(threads: int, device: torch.device) -> Iterator[None]:
    """Inside, the CPU adds in an order that `threads` alone decides, so that a second run gives the same bits.

    By default two threads add to one element of a gradient in whichever order they arrive; torch documents that
    `use_deterministic_algorithms` ends that (`index_put_` with `accumulate`). On a GPU the order of addition is that of
    its fastest kernels: nothing changes there but the number of threads.
    """
    fills: Any = torch.utils.deterministic
    threads_before, filled = torch.get_num_threads(), fills.fill_uninitialized_memory
    mode = torch.get_deterministic_debug_mode()
    torch.set_num_threads(threads)
    if device.type == "cpu":
        torch.use_deterministic_algorithms(True)
        fills.fill_uninitialized_memory = False  # it shows reads of unset memory, and takes time
    try:
        yield
    finally:
        torch.set_num_threads(threads_before)
        torch.set_deterministic_debug_mode(mode)
        fills.fill_uninitialized_memory = filled


def versions() -> dict[str, str]:
    """Of the program and of the libraries that make its figures: others move the last bits."""
    return {"oscar": __version__, "torch": torch.__version__, "numpy": np.__version__}


def refuse_other_versions(began: Mapping[str, Any]) -> None:
    """A resumed run began with the versions `began`: half of it must not be from one library, half from another."""
    for name, now in versions().items():
        if began.get(name) != now:
            then = began.get(name, "an unrecorded version")
            raise UsageError(f"--resume: that run began with {name} {then} and this is {now}; expected the same")


def settle_on(device: str) -> None:
    """Of a GPU (`cuda`, `cuda:1`): from now on this process launches its kernels there and multiplies in tf32."""
    if device.startswith("cuda"):
        index = torch.device(device).index
        if index is not None:
            torch.cuda.set_device(index)
        torch.set_float32_matmul_precision("high")
