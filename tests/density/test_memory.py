"""Memory: estimates bound what a pass really takes, caps shrink pieces in halves, running out of it is survived."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from oscar_causal.data.vocabulary import SPECIAL_IDS, Vocabulary
from oscar_causal.density.interface import Contexts
from oscar_causal.density.memory import (
    GIB,
    TOKENS_PER_PASS,
    Pieces,
    Work,
    bytes_per_token,
    free_bytes,
    plan,
    slope_bytes,
)
from oscar_causal.density.model import OscarModel, pieces_of
from oscar_causal.density.transformer import Network, NetworkConfig
from oscar_causal.errors import UsageError

SHAPE = NetworkConfig(events=60, labels=3, width=32, heads=2, layers=2, hidden=48)


def build(shape: NetworkConfig = SHAPE, network: Any = None) -> OscarModel:
    torch.manual_seed(0)
    made = network or Network(shape)
    with torch.no_grad():
        for weights in made.parameters():
            weights.add_(0.2 * torch.randn_like(weights))
    names = Vocabulary(tuple(f"e{k}" for k in range(shape.events - SPECIAL_IDS)), ("x", "y", "z"))
    return OscarModel(made.eval(), names, (), max_length=512, min_context=1)


def contexts(count: int, length: int, seed: int = 0) -> Contexts:
    ids = np.random.default_rng(seed).integers(SPECIAL_IDS, SHAPE.events, (count, length))
    return Contexts(torch.as_tensor(ids), torch.arange(length).double(), torch.zeros(length, 0))


class Small(Network):
    """A device with room for so many rows."""

    room = 1000
    asked: list[int]

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config)
        self.embedding.register_forward_pre_hook(self._enter)  # every pass begins there

    def _enter(self, _: Any, words: tuple[Any, ...]) -> None:
        self.asked.append(len(words[0].event_ids))
        if self.asked[-1] > self.room:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")


def small(room: int) -> OscarModel:
    torch.manual_seed(1)
    network = Small(SHAPE)
    network.room, network.asked = room, []
    return build(network=network)


# --- running out of it ---


@pytest.mark.parametrize("room", [1, 3, 8, 30, 64])
def test_pieces_are_halved_until_they_fit_and_the_answers_are_the_same(room: int) -> None:
    asked, labels, positions = contexts(50, 20), torch.tensor([2, 0]), torch.tensor([5, 20])
    model = small(room)
    found = model.label_probs(asked, labels, positions)
    whole = small(1000).label_probs(asked, labels, positions)
    assert found.shape == (50, 2, 2)
    torch.testing.assert_close(found, whole, rtol=1e-5, atol=1e-6)
    expected = 50
    while expected > room:
        expected //= 2
    assert model.pieces.short == (None if room >= 50 else expected)
    fitting = [rows for rows in model.network.asked if rows <= room]
    assert sum(fitting) == 50
    assert max(fitting) == (50 if room >= 50 else expected)


def test_what_was_learnt_holds_until_it_is_forgotten() -> None:
    model = small(10)
    model.label_probs(contexts(40, 5), torch.tensor([0]), torch.tensor([5]))
    model.network.asked.clear()
    model.label_probs(contexts(40, 5), torch.tensor([0]), torch.tensor([5]))
    assert max(model.network.asked) == 10
    model.pieces.short = None
    model.label_probs(contexts(40, 5), torch.tensor([0]), torch.tensor([5]))
    assert max(model.network.asked) == 40


def test_one_row_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(torch.OutOfMemoryError):
        small(0).label_probs(contexts(4, 5), torch.tensor([0]), torch.tensor([5]))


def test_other_errors_are_not_taken_for_it() -> None:
    with pytest.raises(IndexError):
        small(100).label_probs(contexts(4, 5), torch.tensor([0]), torch.tensor([7]))


# --- pieces and plans ---


def test_rows_of_a_piece() -> None:
    assert Pieces().rows(100, "cpu") == TOKENS_PER_PASS["cpu"] // 100
    assert Pieces(tokens=512).rows(100, "cuda") == 5
    assert Pieces(tokens=512).rows(1000, "cpu") == 1
    assert Pieces(tokens=512, short=2).rows(100, "cpu") == 2
    assert Pieces(tokens=512, short=9).rows(100, "cpu") == 5


def test_a_model_cut_in_pieces_says_the_same() -> None:
    asked, labels, positions = contexts(37, 11), torch.tensor([0, 1, 2]), torch.tensor([11])
    whole = build().label_probs(asked, labels, positions)
    for tokens in (12, 50, 100, 400):
        model = replace(build(), pieces=Pieces(tokens=tokens))
        torch.testing.assert_close(model.label_probs(asked, labels, positions), whole, rtol=1e-5, atol=1e-6)
        assert model.pieces.short is None


def test_the_plan_is_the_devices_own_number_while_it_fits_and_halves_of_it_below() -> None:
    work = Work(SHAPE, weights=1000, length=63, contexts=256)
    roomy = work.estimate(8192)
    assert plan(work, cap=roomy.total, device="cpu") == roomy
    assert plan(work, cap=1e18, device="cuda:1").tokens_per_pass == TOKENS_PER_PASS["cuda"]
    for cap in np.linspace(work.estimate(64).total, roomy.total, 20):
        found = plan(work, cap=cap, device="cpu")
        assert found.total <= cap
        assert 8192 % found.tokens_per_pass == 0
        assert found.tokens_per_pass == 8192 or work.estimate(2 * found.tokens_per_pass).total > cap
    with pytest.raises(UsageError, match=r"--memory: expected at least .* GiB"):
        plan(work, cap=work.estimate(64).total - 1, device="cpu")


def test_an_estimate_counts_every_part() -> None:
    one = Work(SHAPE, weights=5 * GIB, length=100, contexts=10).estimate(8192)
    assert one.weights == 5 * GIB
    assert one.law >= 100 * SHAPE.events * 8
    assert one.activations == 10 * 101 * bytes_per_token(SHAPE)  # no more than there is to do
    assert one.answers == 0
    assert Work(SHAPE, 0, 100, 10, labels_along=3).estimate(8192).answers >= 10 * 100 * 3 * 8
    assert one.to_json()["total_gib"] == pytest.approx(one.total / GIB)


@pytest.mark.parametrize(
    "shape",
    [
        NetworkConfig(events=400, labels=3, width=64, heads=4, layers=2, hidden=160),
        NetworkConfig(events=400, labels=3, width=256, heads=4, layers=2, hidden=300, label_form="cross"),
        NetworkConfig(events=400, labels=3, width=64, heads=4, layers=1, hidden=1024),
    ],
)
def test_a_pass_takes_no_more_than_estimated_and_not_far_less(
    shape: NetworkConfig, peak_bytes: Callable[[Any], int]
) -> None:
    """Against the allocations that torch itself reports."""
    model = build(shape)
    rows, length = 40, 100
    ids = contexts(rows, length)
    peak = peak_bytes(lambda: model.label_probs(ids, torch.arange(3), torch.tensor([length])))
    estimate = rows * (length + 1) * bytes_per_token(shape)
    assert 0.3 * estimate < peak < estimate


@pytest.mark.parametrize("length", [30, 150])
@pytest.mark.parametrize("form", ["shared", "cross"])
def test_a_pass_forward_and_back_takes_no_more_than_estimated(
    form: Any, length: int, peak_bytes: Callable[[Any], int]
) -> None:
    shape = NetworkConfig(events=400, labels=3, width=64, heads=4, layers=2, hidden=160, label_form=form)
    model, asked = build(shape), contexts(1, length)
    law = model.event_probs(asked)
    peak = peak_bytes(lambda: model.label_slopes(asked, torch.arange(3), law, (0.4, 0.1)))
    assert 0.3 * 3 * slope_bytes(shape, length) < peak < 3 * slope_bytes(shape, length)


def test_slopes_in_pieces_are_the_same() -> None:
    model, asked = build(), contexts(1, 12)
    law = model.event_probs(asked)
    whole = model.label_slopes(asked, torch.tensor([2, 0, 1]), law, (0.4, 0.1))
    model.pieces.tokens = 13
    torch.testing.assert_close(model.label_slopes(asked, torch.tensor([2, 0, 1]), law, (0.4, 0.1)), whole)


def test_free_memory_is_between_nothing_and_all() -> None:
    import os

    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < free_bytes("cpu") <= whole


def test_pieces_of_models_and_of_others() -> None:
    from oscar_causal.density.folds import MeanModel

    first, second = build(), build()
    assert pieces_of(first) == [first.pieces]
    assert [id(part) for part in pieces_of(MeanModel((first, second)))] == [id(first.pieces), id(second.pieces)]
    assert pieces_of(object()) == []


def test_event_logp_is_the_law_read_at_the_events() -> None:
    model, asked = build(), contexts(4, 9)
    found = model.event_logp(asked)
    for n in range(4):
        law = model.event_probs(replace(asked, event_ids=asked.event_ids[n : n + 1]))
        wanted = law.gather(1, asked.event_ids[n][:, None])[:, 0].log()
        torch.testing.assert_close(found[n], wanted, rtol=1e-4, atol=1e-5)
