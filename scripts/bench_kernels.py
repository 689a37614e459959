"""Our kernels beside what torch makes of the same formulas: microseconds alone, in a recorded graph, and the distance.

    python scripts/bench_kernels.py --out docs/results/kernels.json      # a Hopper GPU, half a minute

`--tokens 64 --width 64 --events 300 --device cpu` tries the script itself, on Triton's interpreter.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from oscar_causal.density import kernels
from oscar_causal.density.hopper import turning_order
from oscar_causal.density.precision import float32_products
from oscar_causal.density.transformer import rotary_table, rotate, turning_pairs
from oscar_causal.discovery import law_kernels
from oscar_causal.discovery.contexts import LEAST
from oscar_causal.discovery.device_contexts import RUN

EPS = 1e-7
HEAD = 64
LENGTH = 152
"""Tokens of a row: one that turns, and a law's length."""


@dataclass(frozen=True)
class Pair:
    """One formula, twice."""

    name: str
    theirs: Callable[[], Tensor]
    ours: Callable[[], Tensor]
    order: Tensor | None = None
    """Where the last axis of theirs stands in ours."""


def block_pairs(args: argparse.Namespace) -> Iterator[Pair]:
    """Of a block of the network; the feed-forward layer is two and a half times as wide as the stream."""
    device, width, hidden = args.device, args.width, args.width * 5 // 2
    half = torch.bfloat16 if device.startswith("cuda") else torch.float32
    rows, heads = max(1, args.tokens // LENGTH), width // HEAD
    x = torch.randn(rows * LENGTH, width, device=device).to(half)
    weight = (torch.randn(2 * hidden, width, device=device) * width**-0.5).to(half)
    ones, norm = torch.ones(width, device=device).to(half), torch.rand(width, device=device).to(half)
    gate = compiled(lambda both: F.silu(both[:, :hidden]) * both[:, hidden:], device)
    normed = compiled(lambda part, by: F.rms_norm(part, (width,), by, EPS), device)
    yield Pair("norm", lambda: normed(x, norm), lambda: kernels.normed(x, norm, EPS))
    yield Pair(
        "norm, product, gate",
        lambda: gate(normed(x, ones) @ weight.T),
        lambda: kernels.gated_product(x, kernels.inverse_norms(x, EPS), weight),
    )
    ids = torch.randint(0, args.events, (rows, LENGTH), device=device)
    features = width // 24 * 4  # a sixth of the stream; rows of 16 bytes
    bag, out = torch.randn(args.events, features, device=device), torch.randn(width, features, device=device)

    def bagged() -> Tensor:
        return x + (F.embedding(ids, bag).cumsum(1).flatten(0, 1) @ out.T).to(half)

    def ours_bagged() -> Tensor:
        return kernels.added_product(x, kernels.running_sums(ids, bag).flatten(0, 1), out)

    yield Pair("bag", bagged, ours_bagged)
    table, order = rotary_table(torch.arange(LENGTH, device=device), HEAD), turning_order(HEAD).to(device)
    told = torch.randn(rows, LENGTH, heads, HEAD, device=device).to(half)
    turned, mine = compiled(lambda part: rotate(part, table), device), told[..., order].contiguous()

    def turn() -> Tensor:
        kernels.turn(mine.view(len(x), -1), table[:, 0], heads, turning_pairs(HEAD))
        return mine

    yield Pair("turn", lambda: turned(told), turn, order)


def law_pairs(args: argparse.Namespace) -> Iterator[Pair]:
    """Of the law of replacements."""
    law = torch.randn(LENGTH, args.events, device=args.device).softmax(-1)
    allowed = (torch.rand(args.events, device=args.device) < 0.9).float()  # noqa: PLR2004 - some are not

    def conditioned() -> Tensor:
        left = torch.addcmul(LEAST * allowed, law, allowed)
        left /= left.sum(-1, keepdim=True, dtype=torch.float64).to(left.dtype)
        return left

    def summed() -> Tensor:
        return law.double().cumsum(1)

    yield Pair("law without types", conditioned, lambda: law_kernels.conditioned(law, allowed, LEAST, RUN))
    yield Pair("running sums", summed, lambda: law_kernels.running_sums(law, RUN)[:, : args.events])


def compiled(function: Callable[..., Tensor], device: str) -> Callable[..., Tensor]:
    """As the network's other parts on a GPU."""
    return torch.compile(function, dynamic=True) if device.startswith("cuda") else function


def microseconds(work: Callable[[], Tensor], device: str, *, repeats: int = 10) -> float:
    """Median time of one run among ten recorded ones; on a CPU of one that is not."""
    if not device.startswith("cuda"):
        begun = time.perf_counter()
        work()
        return 1e6 * (time.perf_counter() - begun)
    for _ in range(3):
        work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(10):
            work()
    graph.replay()
    spent = []
    for _ in range(repeats):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        spent.append(100 * begin.elapsed_time(end))
    return float(np.median(spent))


def measure(args: argparse.Namespace) -> list[dict[str, Any]]:
    """One row for each pair."""
    rows = []
    for pair in (*block_pairs(args), *law_pairs(args)):
        first, second = pair.theirs().double(), pair.ours().double()  # before anything turns again
        first = first if pair.order is None else first[..., pair.order]
        row = {
            "kernel": pair.name,
            "torch_us": microseconds(pair.theirs, args.device),
            "ours_us": microseconds(pair.ours, args.device),
            "distance": float((first - second).norm() / first.norm()),
        }
        rows.append(row)
        print("{kernel:20} torch {torch_us:8.1f} us   ours {ours_us:8.1f} us   distance {distance:.1e}".format(**row))
    return rows


def main() -> None:
    """Measure all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tokens", type=int, default=132 * 128)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--events", type=int, default=29_100)
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    torch.manual_seed(0)
    machine = torch.cuda.get_device_name() if args.device.startswith("cuda") else platform.machine()
    told = {key: value for key, value in vars(args).items() if key != "out"}
    with torch.inference_mode(), float32_products("high"):
        found = {"arguments": told, "machine": machine, "torch": torch.__version__, "rows": measure(args)}
    if args.out is not None:
        args.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
