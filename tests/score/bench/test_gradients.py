"""Gradients against slopes along the same path, finite differences, and a model whose causes were set by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from oscar_causal.data.batches import pad
from oscar_causal.data.sequences import read_dataset
from oscar_causal.density.folds import load_models
from oscar_causal.density.model import to_tokens
from oscar_causal.score.bench.gradients import InputTimesGradient, IntegratedGradients, _log_odds, event_vectors
from oscar_causal.score.bench.perturbations import ShapleySampling
from oscar_causal.score.bench.ratings import Case, case_of


@pytest.fixture(scope="module")
def case(toy: Any) -> Case:
    """A sequence with labels x and y that holds E0, the hand-set cause of x."""
    data, models = read_dataset(toy.fleet), load_models(toy.model)
    row = next(r for r in range(len(data)) if {"x", "y"} <= set(data.labels_of(r)) and "E0" in data.events_of(r))
    return case_of(models, data, row, seed=0)


def named(case: Case, event: str) -> int:
    return [case.model.vocabulary.name(int(t)) for t in case.subject.types].index(event)


def test_integrated_gradients_are_the_slopes_along_the_way(case: Case) -> None:
    nodes, weights = np.polynomial.legendre.leggauss(8)
    shares = 1 - (nodes + 1) / 2  # from the replacements to the event
    labels = torch.as_tensor(case.labels)
    slopes = case.networks[0].label_slopes(case.subject.sequence, labels, case.subject.law, shares.tolist())
    wanted = case.by_type(np.einsum("s,sly->ly", weights / 2, slopes.double().numpy()))
    found = IntegratedGradients(steps=8).rate(case)
    np.testing.assert_allclose(found.scores, wanted, atol=1e-4)
    assert found.passes == 3 * 8 * 2


def test_integrated_gradients_add_up_to_the_difference(case: Case) -> None:
    model = case.networks[0]
    tokens = to_tokens(pad(case.encoded, np.array([0])), model.device)
    ask = _log_odds(model, tokens, torch.as_tensor(case.labels))
    with torch.no_grad():
        standing, means = event_vectors(model, tokens, case.subject.law)
        difference = (ask(*standing) - ask(*means))[0].numpy()
    found = IntegratedGradients(steps=64).rate(case).scores.sum(0)
    np.testing.assert_allclose(found, difference, rtol=0.02, atol=0.02)


def test_vectors_as_they_stand_give_the_models_own_answer(case: Case) -> None:
    model = case.networks[0]
    tokens = to_tokens(pad(case.encoded, np.array([0])), model.device)
    with torch.no_grad():
        standing, _ = event_vectors(model, tokens, case.subject.law)
        got = _log_odds(model, tokens, torch.as_tensor(case.labels))(*standing)
        wanted = model.last_label_logits(case.encoded, np.array([0]))[:, case.labels]
    torch.testing.assert_close(got, wanted, atol=1e-5, rtol=1e-5)


def test_input_times_gradient_is_the_slope_of_scaling_a_type(toy: Any) -> None:
    data, models = read_dataset(toy.fleet), load_models(toy.model)
    loud = {"E0", "E1"}  # they saturate the log odds: no slope is left
    row = next(r for r in range(len(data)) if not loud & set(data.events_of(r)))
    case, model = replace(case_of(models, data, row, seed=0), labels=np.array([1])), models.models[0]
    found = InputTimesGradient().rate(case)
    t = int(np.abs(found.scores[:, 0]).argmax())
    tokens = to_tokens(pad(case.encoded, np.array([0])), model.device)
    ask = _log_odds(model, tokens, torch.as_tensor(case.labels))
    where = torch.as_tensor(np.concatenate([[False], case.subject.owner == t]))
    with torch.no_grad():
        standing, _ = event_vectors(model, tokens, case.subject.law)

        def scaled(by: float) -> float:
            return float(ask(*(torch.where(where[:, None], part * by, part) for part in standing))[0, 0])

        slope = (scaled(1.05) - scaled(0.95)) / 0.1
    assert abs(slope) > 0.01
    assert found.scores[t, 0] == pytest.approx(slope, rel=0.03)
    assert found.passes == 3


@pytest.mark.parametrize("method", [IntegratedGradients(steps=4), ShapleySampling(permutations=4)])
def test_the_hand_set_cause_is_rated_highest(case: Case, method: Any) -> None:
    x = [case.model.vocabulary.labels[int(label)] for label in case.labels].index("x")
    assert method.rate(case).scores[:, x].argmax() == named(case, "E0")


def test_a_saturated_cause_has_no_gradient(case: Case) -> None:
    x = [case.model.vocabulary.labels[int(label)] for label in case.labels].index("x")
    without = IntegratedGradients(steps=4).rate(case).scores[named(case, "E0"), x]
    assert abs(InputTimesGradient().rate(case).scores[named(case, "E0"), x]) < 1e-3 * without


def test_the_mean_over_folds_is_the_mean_of_their_ratings(toy: Any) -> None:
    data, models = read_dataset(toy.fleet), load_models(toy.folds)
    case = case_of(models, data, 0, seed=0)
    alone = [Case(model, case.subject, case.labels, case.encoded) for model in models.models]
    wanted = np.mean([InputTimesGradient().rate(part).scores for part in alone], axis=0)
    np.testing.assert_allclose(InputTimesGradient().rate(case).scores, wanted, atol=1e-6)


@pytest.mark.parametrize("steps", [None, 5])
def test_captum_says_the_same(case: Case, steps: int | None) -> None:
    """An independent implementation of both methods, on the same log odds and vectors."""
    from captum.attr import InputXGradient
    from captum.attr import IntegratedGradients as Peer

    model = case.networks[0]
    tokens = to_tokens(pad(case.encoded, np.array([0])), model.device)
    ask = _log_odds(model, tokens, torch.as_tensor(case.labels))
    standing, means = event_vectors(model, tokens, case.subject.law)
    method = InputTimesGradient() if steps is None else IntegratedGradients(steps)
    found = method.rate(case).scores
    for j in range(len(case.labels)):
        if steps is None:
            parts = InputXGradient(ask).attribute(standing, target=j)
        else:
            parts = Peer(ask).attribute(standing, baselines=means, target=j, n_steps=steps)
        wanted = sum(part.sum(-1)[0, 1:] for part in parts).detach().double().numpy()
        np.testing.assert_allclose(found[:, j], case.by_type(wanted[:, None])[:, 0], atol=1e-5, rtol=1e-4)
