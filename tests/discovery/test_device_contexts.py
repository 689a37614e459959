"""Contexts built in torch are, bit by bit, what numpy makes of the same streams."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from oscar_causal.discovery.contexts import Stream
from oscar_causal.discovery.device_contexts import draw_from, draw_on, running_sums, shuffle_ties, stacked_uniforms


@pytest.mark.bits
@settings(deadline=None, max_examples=80)
@given(
    seed=st.integers(-5, 2**63),
    name=st.text(max_size=12),
    rows=st.integers(0, 9),
    columns=st.integers(0, 9),
    first=st.integers(0, 2**40),
)
def test_uniforms_are_those_of_numpy(seed: int, name: str, rows: int, columns: int, first: int) -> None:
    stream = Stream(seed, name, "mask")
    ours = stacked_uniforms([(stream, first, rows)], columns, "cpu").numpy()
    theirs = stream.uniforms(rows, columns, first_row=first)
    assert ours.shape == theirs.shape
    assert ours.tobytes() == theirs.tobytes()


@pytest.mark.bits
@pytest.mark.parametrize("levels", [3, 10**9])  # uniforms with many ties and with none
def test_ties_are_ordered_as_numpy_orders_them(levels: int) -> None:
    rng = np.random.default_rng(levels)
    groups = np.array([0, 0, 0, 1, 2, 2, 3, 3, 3, 3])
    uniforms = rng.integers(0, levels, (50, 10)) / levels
    contexts = rng.integers(0, 100, (50, 10))
    order = np.lexsort((uniforms, np.broadcast_to(groups, uniforms.shape)), axis=-1)
    ours = shuffle_ties(torch.as_tensor(contexts), torch.as_tensor(groups), torch.as_tensor(uniforms)).numpy()
    assert (ours == np.take_along_axis(contexts, order, axis=1)).all()


def test_draws_invert_the_distribution() -> None:
    rng = np.random.default_rng(0)
    law = rng.dirichlet(np.full(7, 0.3), size=5)
    uniforms = rng.random((40, 5))
    drawn = draw_on(torch.as_tensor(law), torch.as_tensor(uniforms)).numpy()
    for n, i in np.ndindex(40, 5):
        below = law[i, : drawn[n, i]].sum()
        assert below <= uniforms[n, i] + 1e-12
        assert uniforms[n, i] < below + law[i, drawn[n, i]] + 1e-12


@pytest.mark.parametrize("events", [1, 127, 128, 129, 1000])
def test_running_sums_are_those_of_a_plain_loop(events: int) -> None:
    law = torch.as_tensor(np.random.default_rng(events).dirichlet(np.full(events, 0.1), size=4))
    found = running_sums(law).numpy()
    np.testing.assert_allclose(found[:, :events], np.cumsum(law.numpy(), axis=1), rtol=1e-13)
    assert (np.diff(found, axis=1) >= -1e-15).all()
    assert (found[:, events:] == found[:, [events - 1]]).all()  # what is added behind is never drawn
    nearly_one = torch.full((2, 4), 1.0 - 2.0**-53, dtype=torch.float64)
    assert int(draw_from(torch.as_tensor(found), nearly_one, events).max()) < events
