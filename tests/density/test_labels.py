"""Losses of Tf_y against their formulas; calibration against scipy's optimiser and a known truth."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from scipy.optimize import minimize

from oscar_causal.density.labels import fit_calibration, label_loss


def sample(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(40, 6, generator=generator)
    return logits, (torch.rand(40, 6, generator=generator) < 0.3).float(), torch.rand(40, generator=generator)


def test_plain_loss_is_binary_cross_entropy() -> None:
    logits, targets, weights = sample()
    expected = (F.binary_cross_entropy_with_logits(logits, targets, reduction="none") * weights[:, None]).sum()
    torch.testing.assert_close(label_loss(logits, targets, weights), expected)


def test_emphasis_weighs_positives_and_leaves_the_best_answer_where_it_is() -> None:
    logits, targets, weights = sample(2)
    emphasis = torch.tensor([0.0, 0.5, 1.0, 2.0, 3.0, 4.0])
    adjusted = torch.sigmoid(logits + emphasis).double()
    likelihood = targets * emphasis.exp() * adjusted.log() + (1 - targets) * (1 - adjusted).log()
    loss = label_loss(logits, targets, weights, emphasis=emphasis)
    torch.testing.assert_close(loss.double(), -(likelihood * weights.double()[:, None]).sum(), rtol=1e-5, atol=1e-4)
    rates = torch.tensor([0.5, 0.3, 0.1, 0.05, 0.02, 0.01])
    logits = torch.log(rates / (1 - rates)).requires_grad_()
    shown = torch.stack([torch.ones(6), torch.zeros(6)])
    total = torch.zeros(())
    for k in range(6):
        one = slice(k, k + 1)
        for part, share in zip(shown, (rates[k], 1 - rates[k]), strict=True):
            total = total + label_loss(logits[None, one], part[None, one], share[None], emphasis=emphasis[one])
    total.backward()
    assert logits.grad is not None
    assert logits.grad.abs().max() < 1e-6  # the log odds of the rates are the minimum, whatever the weight


@pytest.mark.parametrize("lost", [0.01, 0.3, 0.9])
def test_lost_labels_follow_their_likelihood(lost: float) -> None:
    logits, targets, weights = sample(1)
    logits.requires_grad_()
    loss = label_loss(logits, targets, weights, lost=lost)
    loss.backward()
    twin = logits.detach().double().requires_grad_()
    seen = (1 - lost) * torch.sigmoid(twin)  # P(a label is there and was written down)
    likelihood = torch.where(targets.bool(), seen, 1 - seen)
    expected = -(likelihood.log() * weights.double()[:, None]).sum()
    expected.backward()
    torch.testing.assert_close(loss.double(), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(logits.grad.double(), twin.grad, rtol=1e-3, atol=1e-5)


def test_lost_labels_recover_the_rate_behind_them() -> None:
    """One constant probability fitted to data of which 40 % of the positives were lost."""
    rng = np.random.default_rng(0)
    there = rng.random(20_000) < 0.5
    written = there & (rng.random(20_000) >= 0.4)
    targets = torch.tensor(written, dtype=torch.float32)[:, None]
    logit = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.LBFGS([logit], max_iter=50)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = label_loss(logit.expand(len(targets), 1), targets, torch.full((len(targets),), 1e-4), lost=0.4)
        loss.backward()
        return loss

    optimizer.step(closure)
    assert torch.sigmoid(logit).item() == pytest.approx(0.5, abs=0.02)


def test_calibration_is_the_penalised_maximum() -> None:
    rng = np.random.default_rng(3)
    logits = rng.normal(-1, 2, (600, 4))
    targets = rng.random((600, 4)) < 1 / (1 + np.exp(-(logits * [0.4, 1.0, 1.7, 0.9] + [1.0, 0.0, -0.5, 2.0])))
    found = fit_calibration(torch.tensor(logits), torch.tensor(targets), prior=20.0)
    for j in range(4):
        x, y = logits[:, j], targets[:, j]

        def cost(ab: np.ndarray, x: np.ndarray = x, y: np.ndarray = y) -> float:
            z = ab[0] * x + ab[1]
            return float(np.logaddexp(0, z).sum() - (y * z).sum() + 10 * ((ab[0] - 1) ** 2 + ab[1] ** 2))

        best = minimize(cost, [1.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-9}).x
        assert (found.slope[j], found.shift[j]) == pytest.approx(best, abs=1e-3)


def test_calibration_recovers_a_known_distortion() -> None:
    rng = np.random.default_rng(4)
    logits = rng.normal(0, 2, (50_000, 2))
    truth = rng.random((50_000, 2)) < 1 / (1 + np.exp(-(logits * [0.5, 2.0] + [-1.0, 0.7])))
    found = fit_calibration(torch.tensor(logits), torch.tensor(truth))
    assert found.slope == pytest.approx((0.5, 2.0), rel=0.05)
    assert found.shift == pytest.approx((-1.0, 0.7), abs=0.05)


def test_a_label_never_seen_keeps_a_finite_calibration() -> None:
    found = fit_calibration(torch.full((30, 1), -8.0), torch.zeros(30, 1))
    assert found.slope[0] == pytest.approx(1, abs=0.05)
    assert found.shift[0] == pytest.approx(0, abs=0.05)
    nothing = fit_calibration(torch.zeros(0, 2), torch.zeros(0, 2))
    assert (nothing.slope, nothing.shift) == ((1.0, 1.0), (0.0, 0.0))
