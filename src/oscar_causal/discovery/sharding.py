"""Which sequences share a shard: on a GPU those of similar length, because they share launches.

A launch holds rows of one length. 256 cars as they come have thirty lengths among them and leave most launches half
empty; 256 of one length fill them. So that a shard is still read from few row groups, only neighbours change places.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.int64]
TOGETHER = 16
"""Shards whose sequences are dealt out by length: 4,096 sequences, less than half a row group."""


def alike(chosen: Indices, lengths: Indices, size: int) -> Indices:
    """The chosen rows, reordered inside every `TOGETHER` shards of `size` rows: by length, down and up in turns.

    `lengths` are those of the chosen rows. In turns, so that processes which take every n-th shard have the same work.

    >>> alike(np.arange(6), np.array([3, 9, 5, 5, 9, 1]), size=1).tolist()
    [1, 4, 2, 3, 0, 5]
    """
    window, parts = TOGETHER * size, []
    for number, begin in enumerate(range(0, len(chosen), window)):
        here = lengths[begin : begin + window]
        order = np.argsort(-here if number % 2 == 0 else here, kind="stable")
        parts.append(chosen[begin : begin + window][order])
    return np.concatenate([chosen[:0], *parts])
