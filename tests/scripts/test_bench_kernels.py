"""Every kernel of the benchmark makes the same numbers as the formula it is timed against."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable
from types import ModuleType

import pytest
import torch


@pytest.mark.skipif(sys.platform != "linux", reason="Triton is for Linux alone")
def test_both_of_a_pair_make_the_same_numbers(script: Callable[[str], ModuleType]) -> None:
    torch.manual_seed(0)
    with torch.inference_mode():
        rows = script("bench_kernels").measure(Namespace(device="cpu", tokens=64, width=128, events=300))
    assert {row["kernel"] for row in rows} >= {"norm", "norm, product, gate", "turn", "running sums"}
    for row in rows:
        assert row["distance"] < 1e-5
        assert min(row["torch_us"], row["ours_us"]) > 0
