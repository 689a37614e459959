"""Losses of Tf_x against torch's own, in value and in gradients."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from oscar_causal.density.next_event import next_event_loss, time_loss


@pytest.mark.parametrize("chunk", [1, 7, 64, 1000])
@pytest.mark.parametrize("scale", [1.0, 0.037])
def test_chunked_cross_entropy_is_cross_entropy(chunk: int, scale: float) -> None:
    torch.manual_seed(chunk)
    hidden = torch.randn(50, 12, dtype=torch.float64).float().requires_grad_()
    weight = torch.randn(33, 12).requires_grad_()
    targets = torch.randint(0, 33, (50,))
    targets[::6] = -1
    found = next_event_loss(hidden, weight, targets, torch.tensor(scale), chunk=chunk)
    (3 * found).backward()  # a factor from above must reach the gradients
    twin_hidden, twin_weight = (x.detach().double().requires_grad_() for x in (hidden, weight))
    expected = scale * F.cross_entropy(twin_hidden @ twin_weight.T, targets, ignore_index=-1, reduction="sum")
    (3 * expected).backward()
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(hidden.grad.double(), twin_hidden.grad, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(weight.grad.double(), twin_weight.grad, rtol=1e-4, atol=1e-5)


def test_a_row_without_targets_costs_nothing() -> None:
    hidden, weight = torch.randn(4, 3, requires_grad=True), torch.randn(5, 3, requires_grad=True)
    loss = next_event_loss(hidden, weight, torch.full((4,), -1), torch.tensor(1.0))
    loss.backward()
    assert loss.item() == 0
    assert not hidden.grad.any()
    assert not weight.grad.any()


def test_time_loss_is_the_normal_density_of_the_logarithm() -> None:
    torch.manual_seed(0)
    parameters = torch.randn(20, 2)
    seconds, weights = torch.rand(20) * 1e5, torch.rand(20)
    law = torch.distributions.Normal(parameters[:, 0], F.softplus(parameters[:, 1]) + 0.05)
    constant = 0.5 * torch.log(torch.tensor(2 * torch.pi))
    expected = ((-law.log_prob(torch.log1p(seconds)) - constant) * weights).sum()
    torch.testing.assert_close(time_loss(parameters, seconds, weights), expected, rtol=1e-5, atol=1e-4)
