"""Kernels for the blocks of a network on a Hopper GPU, in half precision and without a way back.

What a compiler makes of a block goes through memory more often than it must: a gated feed-forward layer writes both of
its halves only to read them again, a norm writes what the next product reads, and where a quarter of the features turns
with the position all are read and written. Every row is added up in an order of its own: which rows stand beside it
changes no bit on a GPU. (On Triton's interpreter NumPy multiplies, whose order depends on a row's place in its tile.)

T tokens end to end, B rows of L tokens, D width, H heads, F hidden features of the feed-forward layer, K features of
the bag of V event types.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

ROWS, COLUMNS, DEPTH = 128, 128, 64
"""Of the tiles of a gated product: two sums of 128 x 128 fill the registers of a multiprocessor."""
GROUP = 8
"""Tiles below each other that are made in a row: they share what they read of the weights."""
NORMED, SCALED, TURNED = 2, 4, 1
"""Tokens that one program of a smaller kernel goes through."""
SUMMED = 64, 32
"""Tokens and columns of a running sum that are read together."""
ADDED = 128, 128, 32
"""Rows, columns and depth of the tiles of an added product."""


@triton.jit
def _gated_product(  # noqa: PLR0913 - a kernel
    x, scale, weight, out, rows, hidden, width, steps,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, GROUP: tl.constexpr, UNITS: tl.constexpr,
):  # fmt: skip
    """Each unit makes every `UNITS`-th tile; tiles behind the last one are neither read nor written (TMA)."""
    down, across = tl.cdiv(rows, ROWS), tl.cdiv(hidden, COLUMNS)
    for step in range(steps):
        tile = tl.program_id(0) + step * UNITS
        first = tile // (GROUP * across) * GROUP
        height = tl.maximum(tl.minimum(down - first, GROUP), 1)
        row = (first + tile % (GROUP * across) % height) * ROWS
        column = tile % (GROUP * across) // height * COLUMNS
        gate = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
        value = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
        for depth in range(0, width, DEPTH):
            part = x.load([row, depth])
            gate = tl.dot(part, weight.load([column, depth]).T, gate)
            value = tl.dot(part, weight.load([hidden + column, depth]).T, value)
        at = row + tl.arange(0, ROWS)
        scales = tl.load(scale + at, mask=at < rows, other=0.0)[:, None]
        gate, value = gate * scales, value * scales
        out.store([row, column], (gate / (1 + tl.exp(-gate)) * value).to(out.dtype))


def gated_product(x: Tensor, scale: Tensor, weight: Tensor) -> Tensor:
    """silu(y @ gate.T) * (y @ value.T) of y = x * scale, the weights of both below each other.

    x (T, D), scale (T,), weight (2 F, D) -> (T, F). Products are added up in single precision and rounded once.
    """
    (rows, width), hidden = x.shape, len(weight) // 2
    out = x.new_empty(rows, hidden)
    units = torch.cuda.get_device_properties(x.device).multi_processor_count if x.is_cuda else 4
    tiles = triton.cdiv(rows, ROWS) * triton.cdiv(hidden, COLUMNS)
    units = min(units, tiles)
    shapes = ((x, [ROWS, DEPTH]), (weight, [COLUMNS, DEPTH]), (out, [ROWS, COLUMNS]))
    described = [TensorDescriptor.from_tensor(tensor, shape) for tensor, shape in shapes]
    sizes = (rows, hidden, width, triton.cdiv(tiles, units), ROWS, COLUMNS, DEPTH, GROUP, units)
    with torch.cuda.device_of(x):  # not always the current one
        _gated_product[(units,)](described[0], scale, *described[1:], *sizes, num_warps=8, num_stages=3)
    return out


@triton.jit
def _normed(  # noqa: PLR0913 - a kernel
    x, weight, out, rows, width, eps, TOKENS: tl.constexpr, SIZE: tl.constexpr, SCALES: tl.constexpr
):  # fmt: skip
    """Root mean squares of some rows: the rows divided by them and weighted, or their inverses alone (SCALES)."""
    row = tl.program_id(0) * TOKENS + tl.arange(0, TOKENS)
    feature = tl.arange(0, SIZE)
    inside = (row < rows)[:, None] & (feature < width)[None, :]
    at = row.to(tl.int64)[:, None] * width + feature[None, :]
    values = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(values * values, 1) / width + eps)
    if SCALES:
        tl.store(out + row, scale, mask=row < rows)
    else:
        weights = tl.load(weight + feature, mask=feature < width, other=0.0).to(tl.float32)
        tl.store(out + at, (values * scale[:, None] * weights[None, :]).to(out.dtype.element_ty), mask=inside)


def normed(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """`F.rms_norm` of rows: x (T, D), weight (D,) -> (T, D)."""
    out = torch.empty_like(x)
    _run_normed(x, weight, out, eps, scales=False)
    return out


def inverse_norms(x: Tensor, eps: float) -> Tensor:
    """What `F.rms_norm` multiplies rows with: x (T, D) -> (T,), in single precision."""
    out = x.new_empty(len(x), dtype=torch.float32)
    _run_normed(x, x, out, eps, scales=True)
    return out


def _run_normed(x: Tensor, weight: Tensor, out: Tensor, eps: float, *, scales: bool) -> None:
    rows, width = x.shape
    size = triton.next_power_of_2(width)
    tokens = SCALED if scales else NORMED
    with torch.cuda.device_of(x):
        _normed[(triton.cdiv(rows, tokens),)](x, weight, out, rows, width, eps, tokens, size, scales, num_warps=4)


@triton.jit
def _turn(  # noqa: PLR0913 - a kernel
    x, table, rows, length, stride, heads, size,
    TOKENS: tl.constexpr, HEADS: tl.constexpr, PAIRS: tl.constexpr,
):  # fmt: skip
    """The first 2 PAIRS features of every head, partners PAIRS apart; `size` features a head."""
    row = tl.program_id(0) * TOKENS + tl.arange(0, TOKENS)[:, None, None]
    head, pair = tl.arange(0, HEADS)[None, :, None], tl.arange(0, PAIRS)[None, None, :]
    inside = (row < rows) & (head < heads)
    angles = table + row % length * 2 * size + pair
    cos, sin = tl.load(angles), tl.load(angles + size + size // 2)  # of the second half: with its sign
    here = x + row.to(tl.int64) * stride + head * size + pair
    first = tl.load(here, mask=inside, other=0.0).to(tl.float32)
    second = tl.load(here + PAIRS, mask=inside, other=0.0).to(tl.float32)
    tl.store(here, (first * cos - second * sin).to(x.dtype.element_ty), mask=inside)
    tl.store(here + PAIRS, (second * cos + first * sin).to(x.dtype.element_ty), mask=inside)


def turn(x: Tensor, table: Tensor, heads: int, pairs: int) -> None:
    """Turns, in place, the first heads of every token by its position in its row: x (T, at least heads * size).

    `table` (L, 2, size): cosines and signed sines of `transformer.rotary_table`, of which only `pairs` pairs turn. The
    features of a head stand in `turning_order`.
    """
    rows, (length, _, size) = len(x), table.shape
    sizes = (rows, length, x.stride(0), heads, size, TURNED, triton.next_power_of_2(heads), pairs)
    with torch.cuda.device_of(x):
        _turn[(triton.cdiv(rows, TURNED),)](x, table, *sizes, num_warps=4)


@triton.jit
def _running_sums(  # noqa: PLR0913 - a kernel
    ids, table, out, length, width, TOKENS: tl.constexpr, COLUMNS: tl.constexpr
):  # fmt: skip
    """One row of tokens and some columns of the table: some tokens at a time, from where the last ones ended."""
    row = tl.program_id(0).to(tl.int64) * length
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    before = tl.zeros((1, COLUMNS), dtype=tl.float32)
    for begin in range(0, length, TOKENS):
        token = begin + tl.arange(0, TOKENS)
        inside = (token < length)[:, None] & (column < width)
        which = tl.load(ids + row + token, mask=token < length, other=0)[:, None]
        vectors = tl.load(table + which * width + column, mask=inside, other=0.0)
        tl.store(out + (row + token)[:, None] * width + column, tl.cumsum(vectors, 0) + before, mask=inside)
        before += tl.sum(vectors, 0)[None, :]


def running_sums(ids: Tensor, table: Tensor) -> Tensor:
    """Sums of the vectors of each row's tokens so far: ids (B, L), table (V, K) -> (B, L, K)."""
    (rows, length), width = ids.shape, table.shape[1]
    out = table.new_empty(rows, length, width)
    grid = (rows, triton.cdiv(width, SUMMED[1]))
    with torch.cuda.device_of(ids):
        _running_sums[grid](ids.contiguous(), table, out, length, width, *SUMMED, num_warps=4)
    return out


@triton.jit
def _added_product(
    state, x, weight, out, width, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr
):  # fmt: skip
    row, column = tl.program_id(1) * ROWS, tl.program_id(0) * COLUMNS
    sums = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for depth in range(0, width, DEPTH):
        sums = tl.dot(x.load([row, depth]), weight.load([column, depth]).T, sums, input_precision="tf32")
    out.store([row, column], (sums + state.load([row, column]).to(tl.float32)).to(out.dtype))


def added_product(state: Tensor, x: Tensor, weight: Tensor) -> Tensor:
    """state + x @ weight.T, factors in single precision (tf32 on a GPU), the state in half: rounded once.

    state (T, D), x (T, K), weight (D, K) -> (T, D)
    """
    rows, columns, depth = ADDED
    out = torch.empty_like(state)
    shapes = ((state, [rows, columns]), (x, [rows, depth]), (weight, [columns, depth]), (out, [rows, columns]))
    described = [TensorDescriptor.from_tensor(tensor, shape) for tensor, shape in shapes]
    grid = (triton.cdiv(state.shape[1], columns), triton.cdiv(len(state), rows))
    with torch.cuda.device_of(state):
        _added_product[grid](*described, x.shape[1], *ADDED, num_warps=8, num_stages=3)
    return out
