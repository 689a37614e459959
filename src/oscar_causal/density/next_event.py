"""Tf_x, the density of the next event and of the time to it (Eq. 7): its losses.

Losses are sums; the caller divides by the global number of tokens, so that shards of a batch add up.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

CHUNK = 8192
"""Tokens whose vocabulary logits exist at the same time."""


class _ChunkedCrossEntropy(torch.autograd.Function):
    """Cross entropy of a large softmax whose logits are never all in memory; gradients are made on the way forward."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, targets: Tensor, scale: Tensor, chunk: int) -> Tensor:
        grad_hidden = torch.empty_like(hidden)
        grad_weight = torch.zeros(weight.shape, dtype=torch.float32, device=weight.device)
        total = torch.zeros((), dtype=torch.float32, device=hidden.device)
        matrix = weight.to(hidden.dtype)
        gradient = _fused_gradient() if hidden.is_cuda else _softmax_gradient
        for begin in range(0, len(hidden), chunk):
            part, target = hidden[begin : begin + chunk], targets[begin : begin + chunk]
            losses, grad = gradient(part @ matrix.T, target)
            total += losses
            grad_hidden[begin : begin + chunk] = grad @ matrix
            grad_weight += grad.T @ part
        ctx.save_for_backward(grad_hidden, grad_weight, scale)
        ctx.weight_dtype = weight.dtype
        return total * scale

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        grad_hidden, grad_weight, scale = ctx.saved_tensors
        factor = grads[0] * scale
        return grad_hidden * factor, (grad_weight * factor).to(ctx.weight_dtype), None, None, None


def _softmax_gradient(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Sum of the losses and the gradient with respect to the logits (chunk, V); targets below 0 count nothing."""
    dtype = logits.dtype
    logp = F.log_softmax(logits.float(), dim=-1)
    real = (targets >= 0).float().unsqueeze(-1)
    index = targets.clamp(min=0).unsqueeze(-1)
    loss = -(logp.gather(-1, index) * real).sum()
    grad = logp.exp_()
    grad.scatter_add_(-1, index, torch.full_like(index, -1.0, dtype=grad.dtype))
    return loss, (grad * real).to(dtype)


@cache
def _fused_gradient() -> Any:
    return torch.compile(_softmax_gradient, dynamic=False)


def next_event_loss(hidden: Tensor, weight: Tensor, targets: Tensor, scale: Tensor, *, chunk: int = CHUNK) -> Tensor:
    """Sum of -log P(next event) in nats, times `scale`; targets of -1 are left out.

    `hidden` (T, D), `weight` (V, D), `targets` (T,). Equal to `F.cross_entropy(hidden @ weight.T, ...)` summed, without
    ever holding (T, V).
    """
    loss: Tensor = _ChunkedCrossEntropy.apply(hidden, weight, targets, scale, chunk)  # type: ignore[no-untyped-call]
    return loss


def time_loss(parameters: Tensor, seconds: Tensor, weights: Tensor) -> Tensor:
    """Weighted sum of the negative log likelihood of log(1 + seconds) under a normal law with predicted mean and scale.

    `parameters` (T, 2), `seconds` (T,), `weights` (T,); up to a constant. Scales are kept above 0.05.
    """
    mean, raw_scale = parameters.float().unbind(-1)
    scale = F.softplus(raw_scale) + 0.05
    error = (torch.log1p(seconds) - mean) / scale
    return ((0.5 * error.square() + scale.log()) * weights).sum()
