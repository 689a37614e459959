"""Shards of similar lengths: nothing lost, neighbours only, the same work for everyone."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from oscar_causal.discovery.sharding import TOGETHER, alike


@settings(deadline=None, max_examples=60)
@given(lengths=st.lists(st.integers(1, 30), max_size=150), size=st.integers(1, 4))
def test_every_row_stays_and_only_neighbours_change_places(lengths: list[int], size: int) -> None:
    chosen = 7 + 3 * np.arange(len(lengths))
    found = alike(chosen, np.array(lengths, np.int64), size)
    assert sorted(found.tolist()) == chosen.tolist()
    window = TOGETHER * size
    for begin in range(0, len(lengths), window):
        mine = found[begin : begin + window]
        assert set(mine.tolist()) == set(chosen[begin : begin + window].tolist())
        steps = np.diff(np.array(lengths)[(mine - 7) // 3])
        assert (steps <= 0).all() if begin // window % 2 == 0 else (steps >= 0).all()


def test_processes_that_take_every_nth_shard_have_the_same_work() -> None:
    lengths = np.random.default_rng(0).normal(150, 90, 32 * 256).clip(24, 255).astype(np.int64)
    rows = alike(np.arange(len(lengths)), lengths, 256)
    work = lengths[rows].reshape(-1, 256).sum(1)  # of each shard
    shares = np.array([work[rank::8].sum() for rank in range(8)])
    assert shares.max() < 1.05 * shares.min()  # as they come: 1.041
    spread = np.array([np.ptp(part) for part in lengths[rows].reshape(-1, 256)])
    assert np.median(spread) < 20  # as they come: 231
