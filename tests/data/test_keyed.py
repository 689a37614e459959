"""Keyed uniforms: a function of their keys alone, and uniform."""

from __future__ import annotations

import numpy as np
import scipy.stats

from oscar_causal.data.keyed import keyed_uniforms


def test_an_entry_depends_on_its_keys_alone() -> None:
    table = keyed_uniforms((3, 4), np.arange(50)[:, None], np.arange(30)[None, :])
    order = np.random.default_rng(0).permutation(50)
    assert (keyed_uniforms((3, 4), order[:, None], np.arange(30)[None, :]) == table[order]).all()
    assert (keyed_uniforms((3, 4), 7, [2, 9]) == table[7, [2, 9]]).all()
    for other in ((3, 5), (2, 4), (4, 3)):
        assert (keyed_uniforms(other, np.arange(50)[:, None], np.arange(30)[None, :]) != table).mean() > 0.99


def test_they_are_uniform_and_neighbours_are_unrelated() -> None:
    table = keyed_uniforms((0, 0), np.arange(300)[:, None], np.arange(300)[None, :])
    assert scipy.stats.kstest(table.ravel(), "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(table[:, :-1].ravel(), table[:, 1:].ravel())[0, 1]) < 4 / 300
    assert abs(np.corrcoef(table[:-1].ravel(), table[1:].ravel())[0, 1]) < 4 / 300


def test_negative_keys_are_keys_like_others() -> None:
    """-1 stands for "the sequence as a whole" beside event ids."""
    assert len(set(keyed_uniforms((1, 1), 5, [-1, 0, 1]).tolist())) == 3
