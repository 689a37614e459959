"""Queues of a GPU: launches of two lanes overlap, so one fills the gaps that kernels of the other leave.

A lane has memory of its own, because two recorded graphs that share it must not run at the same time. On a CPU lanes
are the same launches one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

import torch
from torch import Tensor

LANES = 2
"""More have no gaps left to fill, and cost memory."""


class Lane:
    """A stream and a pool of memory for what is recorded to run on it."""

    def __init__(self, device: torch.device) -> None:
        cuda = device.type == "cuda"
        self.device = device
        self.stream = torch.cuda.Stream(device) if cuda else None  # type: ignore[no-untyped-call]
        self.pool = torch.cuda.graph_pool_handle() if cuda else None

    def __call__(self) -> AbstractContextManager[None]:
        """What is given to the device inside goes to this lane."""
        return torch.cuda.stream(self.stream)

    def recorded(self, compute: Callable[[], Tensor]) -> Callable[[], Tensor]:
        """On CUDA a replay of what `compute` launches, else `compute` itself.

        It reads its input where it always lies; what a replay returns is valid until the next one on this lane.
        """
        if self.stream is None:
            return compute
        self.stream.wait_stream(torch.cuda.current_stream(self.device))
        with self():  # twice: kernels are chosen and compiled there
            compute()
            compute()
        torch.cuda.current_stream(self.device).wait_stream(self.stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool, stream=self.stream):
            output = compute()

        def replay() -> Tensor:
            graph.replay()
            return output

        return replay


@contextmanager
def side_by_side(lanes: Sequence[Lane]) -> Iterator[None]:
    """Lanes go on from what the device was given so far, and what it is given afterwards waits for them.

    So memory needs no further care: what a lane gives back is used again by that lane alone, after the next beginning.
    """
    streams = [lane.stream for lane in lanes if lane.stream is not None]
    here = [torch.cuda.current_stream(stream.device) for stream in streams]
    for stream, before in zip(streams, here, strict=True):
        stream.wait_stream(before)
    try:
        yield
    finally:
        for stream, after in zip(streams, here, strict=True):
            after.wait_stream(stream)
