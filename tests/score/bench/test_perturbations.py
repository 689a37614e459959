"""Perturbation methods against subsets counted out, scikit-learn, and the estimator they borrow from."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, permutations
from math import factorial
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge

from oscar_causal.data.sequences import read_dataset
from oscar_causal.data.vocabulary import SPECIAL_IDS, Vocabulary
from oscar_causal.density.folds import load_models
from oscar_causal.density.interface import Contexts
from oscar_causal.discovery.prefix import PrefixConfig, prefix_curves, prefix_evidence, sample_pasts
from oscar_causal.discovery.subject import prepare
from oscar_causal.score.bench import perturbations
from oscar_causal.score.bench.perturbations import (
    LeaveOneOut,
    Lime,
    PrefixMoves,
    Rise,
    ShapleySampling,
    lime_scores,
    rise_scores,
)
from oscar_causal.score.bench.ratings import Case, case_of

TYPES = 5
VALUES = np.random.default_rng(3).random(2**TYPES)
"""P(label) for every set of the types that are present; the other types change nothing."""


class SetModel:
    """P(label) is a table over subsets of the first five types; replacements are uniform."""

    vocabulary = Vocabulary(tuple(f"E{k}" for k in range(30)), ("y",))
    max_length, min_context = 100, 0

    def event_probs(self, sequence: Contexts) -> torch.Tensor:
        law = torch.ones(sequence.event_ids.shape[1], self.vocabulary.size)
        law[:, :SPECIAL_IDS] = 0
        return law / law.sum(-1, keepdim=True)

    def label_probs(self, contexts: Contexts, labels: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        ids = contexts.event_ids.numpy() - SPECIAL_IDS
        bits = [(ids == t).any(1).astype(int) << t for t in range(TYPES)]
        return torch.as_tensor(VALUES[np.sum(bits, axis=0)])[:, None, None]


@pytest.fixture
def case() -> Case:
    ids = torch.as_tensor([[0, 1, 2, 1, 3, 4, 0]]) + SPECIAL_IDS
    sequence = Contexts(ids, torch.arange(7, dtype=torch.float64), torch.zeros(7, 0))
    model: Any = SetModel()
    subject = prepare(model, sequence, sequence_id="s", seed=0, shuffle=True)
    return Case(model, subject, np.array([0]), encoded=None)  # type: ignore[arg-type]


def worth(kept: tuple[int, ...]) -> float:
    return float(VALUES[sum(1 << t for t in kept)])


def shapley(t: int) -> float:
    """The definition: what t adds to every set of the others, weighted by the share of orders that meet that set."""
    others = [s for s in range(TYPES) if s != t]
    total = 0.0
    for size in range(TYPES):
        weight = factorial(size) * factorial(TYPES - size - 1) / factorial(TYPES)
        total += sum(weight * (worth((*s, t)) - worth(s)) for s in combinations(others, size))
    return total


def test_leave_one_out_is_the_worth_of_all_minus_that_without_one(case: Case) -> None:
    found = LeaveOneOut(draws=3).rate(case)
    everything = tuple(range(TYPES))
    wanted = [worth(everything) - worth(tuple(s for s in everything if s != t)) for t in everything]
    np.testing.assert_allclose(found.scores[:, 0], wanted, atol=1e-6)
    assert found.passes == 1 + 3 * TYPES


def test_shapley_over_all_orders_is_the_definition(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    every = [list(order) for order in permutations(range(TYPES))]
    monkeypatch.setattr(perturbations, "_orders", lambda case, types, orders: np.array(every))
    found = ShapleySampling(permutations=len(every)).rate(case)
    np.testing.assert_allclose(found.scores[:, 0], [shapley(t) for t in range(TYPES)], atol=1e-5)
    assert found.passes == 1 + len(every) * TYPES


@pytest.mark.bits
def test_sampled_shapley_values_add_up_and_come_again(case: Case) -> None:
    found = ShapleySampling(permutations=3).rate(case)
    assert found.scores.sum() == pytest.approx(VALUES[-1] - VALUES[0], abs=1e-5)
    np.testing.assert_array_equal(found.scores, ShapleySampling(permutations=3).rate(case).scores)
    other = replace(case, subject=replace(case.subject, seed=1))
    assert not np.array_equal(found.scores, ShapleySampling(permutations=3).rate(other).scores)


def test_rise_is_the_mean_of_what_kept_a_type() -> None:
    rng = np.random.default_rng(0)
    masks, outcomes = rng.random((40, 4)) < 0.3, rng.random((40, 2))
    found = rise_scores(masks, outcomes, 0.3)
    for t in range(4):
        for j in range(2):
            kept = sum(outcomes[n, j] for n in range(40) if not masks[n, t]) / (40 * 0.7)
            assert found[t, j] == pytest.approx(kept - outcomes[:, j].mean())


def test_many_rise_contexts_come_near_the_mean_over_all_subsets(case: Case) -> None:
    rate, everything = 0.25, range(TYPES)
    chance = {
        s: 0.75 ** len(s) * 0.25 ** (TYPES - len(s)) for n in range(TYPES + 1) for s in combinations(everything, n)
    }
    mean = sum(p * worth(s) for s, p in chance.items())
    wanted = [sum(p * worth(s) for s, p in chance.items() if t in s) / 0.75 - mean for t in everything]
    found = Rise(20_000, rate).rate(case)
    np.testing.assert_allclose(found.scores[:, 0], wanted, atol=0.02)
    assert found.passes == 20_000


def test_lime_is_a_weighted_ridge_regression() -> None:
    rng = np.random.default_rng(1)
    masks, outcomes = rng.random((60, 6)) < 0.4, rng.random((60, 2))
    kept = (~masks).astype(float)
    cosine = kept.sum(1) / (np.sqrt(kept.sum(1)) * np.sqrt(6))
    weights = np.sqrt(np.exp(-((100 * (1 - cosine)) ** 2) / 25**2))
    fitted = Ridge(alpha=1.0).fit(kept, outcomes, sample_weight=weights)
    np.testing.assert_allclose(lime_scores(masks, outcomes), fitted.coef_.T, atol=1e-9)


def test_lime_ranks_a_lone_cause_first(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.VALUES", np.array([(k >> 2) & 1 for k in range(2**TYPES)], float))
    found = Lime(200).rate(case)
    assert found.scores[:, 0].argmax() == 2
    assert found.scores[2, 0] > 5 * np.abs(np.delete(found.scores[:, 0], 2)).max()
    assert found.passes == 200


@pytest.mark.parametrize("k", [0.5, 1.0, 2.0])
def test_prefix_moves_cut_at_k_are_what_prefix_accepts_at_k(toy: Any, k: float) -> None:
    data, models = read_dataset(toy.fleet), load_models(toy.model)
    config = PrefixConfig(context=5, contexts=6, threshold=k)
    compared = 0
    for row in (1, 5, 6, 10):
        case = case_of(models, data, row, seed=4)
        subject, model = case.subject, models.models[0]
        ratings = PrefixMoves(config).rate(case)
        pasts = sample_pasts(model, subject.sequence, config, seed=4, sequence_id=subject.sequence_id)
        curves = prefix_curves(model, subject.sequence, pasts, case.labels, 5)
        names = [model.vocabulary.name(int(event)) for event in subject.event_ids]
        once = [t for t in range(len(subject.types)) if (subject.owner == t).sum() == 1]
        for column in range(len(case.labels)):
            evidence = prefix_evidence(curves, column, names, subject.sequence.times.numpy(), config)
            wanted = {item.event for item in evidence if item.verdict == "cause"}
            for t in once:
                accepted = ratings.scores[t, column] > k
                assert accepted == (model.vocabulary.name(int(subject.types[t])) in wanted)
                compared += accepted
    assert compared


def test_a_sequence_without_positions_after_c_gets_no_ratings(toy: Any) -> None:
    case = case_of(load_models(toy.model), read_dataset(toy.fleet), 0, seed=0)  # 4 events
    found = PrefixMoves(PrefixConfig(context=5)).rate(case)
    assert not found.scores.any()
    assert found.passes == 0
