"""Kernels for laws of replacement (L, V) on a GPU: they are large, so each goes through one as seldom as possible.

What they compute is `contexts.without_types` and `device_contexts.running_sums`; every sum has a fixed order.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

RUNS = 16
"""Runs of types that one program goes through."""


@triton.jit
def _masses(  # noqa: PLR0913 - a kernel
    law, allowed, masses, stride, events, runs, LEAST: tl.constexpr, RUNS: tl.constexpr, RUN: tl.constexpr
):  # fmt: skip
    """Mass (L, runs) of the allowed types of every run, in double precision."""
    row = tl.program_id(0).to(tl.int64)
    run = tl.program_id(1) * RUNS + tl.arange(0, RUNS)
    at = run[:, None] * RUN + tl.arange(0, RUN)[None, :]
    probs = tl.load(law + row * stride + at, mask=at < events, other=0.0)
    keep = tl.load(allowed + at, mask=at < events, other=0.0)
    left = LEAST * keep + probs * keep
    tl.store(masses + row * runs + run, tl.sum(left.to(tl.float64), 1), mask=run < runs)


@triton.jit
def _divided(law, allowed, totals, out, stride, events, LEAST: tl.constexpr, SIZE: tl.constexpr):
    """The allowed types divided by the total of their row."""
    row, at = tl.program_id(0).to(tl.int64), tl.program_id(1) * SIZE + tl.arange(0, SIZE)
    probs = tl.load(law + row * stride + at, mask=at < events, other=0.0)
    keep = tl.load(allowed + at, mask=at < events, other=0.0)
    total = tl.load(totals + row).to(out.dtype.element_ty)
    tl.store(out + row * events + at, (LEAST * keep + probs * keep) / total, mask=at < events)


@triton.jit
def _summed(law, before, out, stride, events, runs, RUNS: tl.constexpr, RUN: tl.constexpr):
    """Running sums inside every run, and what comes before it."""
    row = tl.program_id(0).to(tl.int64)
    run = tl.program_id(1) * RUNS + tl.arange(0, RUNS)
    at = run[:, None] * RUN + tl.arange(0, RUN)[None, :]
    probs = tl.load(law + row * stride + at, mask=at < events, other=0.0).to(tl.float64)
    offset = tl.load(before + row * runs + run, mask=run < runs, other=0.0)
    sums = tl.cumsum(probs, 1) + offset[:, None]
    tl.store(out + row * runs * RUN + at, sums, mask=(run < runs)[:, None])


def masses(law: Tensor, allowed: Tensor, least: float, run: int) -> Tensor:
    """Mass of the allowed types of every run of types: (L, runs), in float64."""
    (length, events), runs = law.shape, -(-law.shape[1] // run)
    found = torch.empty(length, runs, dtype=torch.float64, device=law.device)
    with torch.cuda.device_of(law):  # not always the current one
        _masses[(length, triton.cdiv(runs, RUNS))](law, allowed, found, law.stride(0), events, runs, least, RUNS, run)
    return found


def conditioned(law: Tensor, allowed: Tensor, least: float, run: int) -> Tensor:
    """The law (L, V) of the allowed types alone, rows summing to one."""
    length, events = law.shape
    totals, out = masses(law, allowed, least, run).sum(-1), law.new_empty(length, events)
    size = RUNS * run
    with torch.cuda.device_of(law):
        _divided[(length, triton.cdiv(events, size))](law, allowed, totals, out, law.stride(0), events, least, size)
    return out


def running_sums(law: Tensor, run: int) -> Tensor:
    """Running sums (L, V and some more, which add nothing) of a law, in float64."""
    (length, events), runs = law.shape, -(-law.shape[1] // run)
    ends = masses(law, law.new_ones(events), 0.0, run).cumsum(1)
    before = torch.cat([ends.new_zeros(length, 1), ends[:, :-1]], dim=1)
    out = torch.empty(length, runs * run, dtype=torch.float64, device=law.device)
    with torch.cuda.device_of(law):
        _summed[(length, triton.cdiv(runs, RUNS))](law, before, out, law.stride(0), events, runs, RUNS, run)
    return out
