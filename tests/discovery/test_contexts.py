"""Contexts: uniforms keyed by nothing but their coordinates, draws that follow their law, ties shuffled fairly."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from oscar_causal.data.solvable import truncate
from oscar_causal.data.vocabulary import SPECIAL_IDS, UNKNOWN_ID
from oscar_causal.discovery.contexts import (
    Stream,
    draw,
    present_types,
    replace_types,
    tie_groups,
    truncate_law,
    without_types,
)
from oscar_causal.discovery.device_contexts import shuffle_ties


def law_of(rng: np.random.Generator, rows: int, types: int) -> torch.Tensor:
    """Random laws with uneven masses; the special ids have some, as a network gives them."""
    return torch.as_tensor(rng.dirichlet(np.full(types + SPECIAL_IDS, 0.3), size=rows))


# --- uniforms ---


@settings(deadline=None, max_examples=50)
@given(
    seed=st.integers(0, 2**40),
    name=st.text(max_size=8),
    purpose=st.text(max_size=8),
    row=st.integers(0, 5),
    column=st.integers(0, 7),
    first=st.integers(0, 10**6),
)
def test_a_uniform_depends_on_its_coordinates_alone(
    seed: int, name: str, purpose: str, row: int, column: int, first: int
) -> None:
    stream = Stream(seed, name, purpose)
    alone = stream.uniforms(1, column + 1, first_row=first + row)[0, column]
    assert stream.uniforms(row + 3, column + 4, first_row=first)[row, column] == alone
    assert 0 <= alone < 1


def test_every_coordinate_matters() -> None:
    base = Stream(0, "car", "mask").uniforms(50, 20)
    others = [Stream(1, "car", "mask"), Stream(0, "cab", "mask"), Stream(0, "car", "draw"), Stream(-1, "car", "mask")]
    for other in others:
        assert not (other.uniforms(50, 20) == base).any()
    assert len(np.unique(base)) == base.size  # no two rows or columns share an entry


def test_seed_purpose_and_id_cannot_run_into_each_other() -> None:
    assert Stream(1, "1", "a").uniforms(1, 1) != Stream(11, "", "a").uniforms(1, 1)
    assert Stream(0, "bc", "a").uniforms(1, 1) != Stream(0, "c", "ab").uniforms(1, 1)


def test_uniforms_are_uniform_and_uncorrelated_along_rows_columns_and_streams() -> None:
    grid = Stream(7, "car", "mask").uniforms(400, 400)
    assert scipy.stats.kstest(grid.ravel(), "uniform").pvalue > 1e-3
    other = Stream(8, "car", "mask").uniforms(400, 400)
    pairs = [(grid[1:], grid[:-1]), (grid[:, 1:], grid[:, :-1]), (grid, grid.T), (grid, other)]
    for a, b in pairs:
        keep = a != b
        assert abs(np.corrcoef(a[keep], b[keep])[0, 1]) < 4.5 / np.sqrt(keep.sum())
    joint = np.histogram2d(grid[:, :-1].ravel(), grid[:, 1:].ravel(), bins=8)[0]
    assert scipy.stats.chisquare(joint.ravel()).pvalue > 1e-3


def test_small_thresholds_mask_independently_in_pairs_of_columns() -> None:
    masks = Stream(0, "x", "mask").uniforms(20_000, 4) < 0.1
    for a, b in itertools.combinations(range(4), 2):
        table = np.histogram2d(masks[:, a], masks[:, b], bins=2)[0]
        assert scipy.stats.chi2_contingency(table, correction=False).pvalue > 1e-3


# --- draws ---


def test_draws_follow_the_law() -> None:
    law = law_of(np.random.default_rng(0), 5, 12)
    drawn = draw(law, Stream(0, "s", "draw").uniforms(20_000, 5))
    for position in range(5):
        counts = np.bincount(drawn[:, position], minlength=law.shape[1])
        expected = law[position].numpy() * 20_000
        likely = expected >= 5
        rest = [counts[~likely].sum()], [expected[~likely].sum()]
        observed, wanted = np.append(counts[likely], rest[0]), np.append(expected[likely], rest[1])
        some = wanted > 0
        assert scipy.stats.chisquare(observed[some], wanted[some]).pvalue > 1e-3


@pytest.mark.parametrize("uniform", [0.0, 0.5, np.nextafter(1.0, 0.0)])
def test_a_draw_never_has_probability_zero(uniform: float) -> None:
    law = torch.tensor([[0.0, 0.0, 0.0, 0.5, 0.0, 0.5, 0.0]]).double()
    drawn = draw(law, np.array([[uniform]]))
    assert law[0, int(drawn[0, 0])] > 0


def test_draws_agree_with_a_loop() -> None:
    rng = np.random.default_rng(1)
    law, uniforms = law_of(rng, 4, 6), rng.random((50, 4))
    for n, i in np.ndindex(50, 4):
        total, chosen = 0.0, -1
        while total <= uniforms[n, i] * float(law[i].sum()):
            chosen += 1
            total += float(law[i, chosen])
        assert draw(law, uniforms)[n, i] == chosen


# --- replacement ---


def test_a_masked_type_is_absent_from_its_context_and_draws_ignore_masks() -> None:
    rng = np.random.default_rng(2)
    event_ids = rng.integers(SPECIAL_IDS, SPECIAL_IDS + 9, size=30)
    types, owner = present_types(event_ids)
    assert (types[owner] == event_ids).all()
    law = without_types(law_of(rng, 30, 20), types)
    draws = draw(law, Stream(0, "s", "draw").uniforms(200, 30))
    masks = rng.random((200, len(types))) < 0.3
    contexts = replace_types(event_ids, owner, masks, draws)
    for n in range(200):
        for k, event in enumerate(types):
            at = event_ids == event
            assert (event in contexts[n]) == (not masks[n, k])
            assert (contexts[n][at] == (draws[n][at] if masks[n, k] else event)).all()
    assert contexts[masks[:, owner]].min() >= SPECIAL_IDS  # no padding, unknown or start token is drawn
    other = replace_types(event_ids, owner, ~masks, draws)
    both = np.where(masks[:, owner], contexts, other)
    assert (both == draws).all()  # whichever mask asked, the same draw answered


def test_without_types_is_the_conditional_law() -> None:
    law = law_of(np.random.default_rng(3), 6, 10)
    types = np.array([SPECIAL_IDS, SPECIAL_IDS + 4])
    got = without_types(law, types).numpy()
    for i, v in np.ndindex(6, law.shape[1]):
        allowed = [u for u in range(SPECIAL_IDS, law.shape[1]) if u not in types]
        wanted = float(law[i, v]) / sum(float(law[i, u]) for u in allowed) if v in allowed else 0.0
        assert got[i, v] == pytest.approx(wanted, abs=1e-12)


def test_where_the_law_leaves_nothing_all_other_types_are_equally_likely() -> None:
    law = torch.zeros(2, SPECIAL_IDS + 4)
    law[:, SPECIAL_IDS] = 1.0
    got = without_types(law, np.array([SPECIAL_IDS]))
    assert got[:, SPECIAL_IDS + 1 :].numpy() == pytest.approx(np.full((2, 3), 1 / 3))
    assert float(got[:, : SPECIAL_IDS + 1].sum()) == 0.0


def test_where_every_type_is_present_unknown_stands_in() -> None:
    """A replaced type must be absent whatever else is replaced; no event of the vocabulary could promise that."""
    law = law_of(np.random.default_rng(4), 3, 5)
    got = without_types(law, np.arange(SPECIAL_IDS, SPECIAL_IDS + 5))
    assert got[:, UNKNOWN_ID].tolist() == [1.0, 1.0, 1.0]
    assert float(got.sum()) == 3.0


# --- ties ---


def test_tied_events_are_shuffled_uniformly_and_the_others_stay() -> None:
    times = np.array([0.0, 1.0, 1.0, 1.0, 2.0, 3.0, 3.0])
    groups = tie_groups(times)
    assert groups.tolist() == [0, 1, 1, 1, 2, 3, 3]
    contexts = torch.arange(7).expand(12_000, -1)
    uniforms = torch.as_tensor(Stream(0, "s", "tie").uniforms(12_000, 7))
    shuffled = shuffle_ties(contexts, torch.as_tensor(groups), uniforms).numpy()
    assert (shuffled[:, [0, 4]] == [0, 4]).all()
    seen = Counter(map(tuple, shuffled[:, [1, 2, 3, 5, 6]].tolist()))
    orders = [(*a, *b) for a in itertools.permutations([1, 2, 3]) for b in itertools.permutations([5, 6])]
    assert set(seen) == set(orders)
    assert scipy.stats.chisquare([seen[order] for order in orders]).pvalue > 1e-3


def test_one_event_has_one_tie_group() -> None:
    assert tie_groups(np.array([4.0])).tolist() == [0]


# --- truncation ---


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    top_k=st.none() | st.integers(1, 14),
    top_p=st.none() | st.sampled_from([0.01, 0.3, 0.5, 0.8, 0.95, 1.0]),
)
def test_truncation_agrees_with_the_solvable_process(seed: int, top_k: int | None, top_p: float | None) -> None:
    events = np.random.default_rng(seed).dirichlet(np.full(12, 0.4), size=4)
    law = torch.as_tensor(np.pad(events, ((0, 0), (SPECIAL_IDS, 0))))
    got = truncate_law(law, top_k=top_k, top_p=top_p, temperature=1.0).numpy()
    assert got[:, :SPECIAL_IDS].sum() == 0
    assert got[:, SPECIAL_IDS:] == pytest.approx(truncate(events, top_k, top_p), abs=1e-9)


def test_temperature_is_a_power_of_the_law() -> None:
    law = law_of(np.random.default_rng(5), 3, 8)
    got = truncate_law(law, top_k=None, top_p=None, temperature=2.0).numpy()
    wanted = np.sqrt(law.numpy())
    wanted[:, :SPECIAL_IDS] = 0
    assert got == pytest.approx(wanted / wanted.sum(1, keepdims=True), abs=1e-9)


def test_even_a_law_without_real_events_yields_one() -> None:
    law = torch.zeros(1, SPECIAL_IDS + 3)
    law[0, 1] = 1.0  # certain of `unknown`
    for temperature in (1.0, 0.1):
        got = truncate_law(law, top_k=35, top_p=0.8, temperature=temperature)
        assert float(got[0, SPECIAL_IDS:].sum()) == pytest.approx(1.0)


def test_special_ids_take_no_part_in_the_nucleus() -> None:
    law = torch.tensor([[0.0, 0.5, 0.0, 0.3, 0.15, 0.05]]).double()  # of the real events: 0.6, 0.3, 0.1
    got = truncate_law(law, top_k=None, top_p=0.7, temperature=1.0)
    assert got[0].tolist() == pytest.approx([0, 0, 0, 1.0, 0, 0])
