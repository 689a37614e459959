"""Tf_y, the density of every label given a prefix (Eq. 8): its loss, and the calibration fitted on held-out data."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor


def label_loss(
    logits: Tensor, targets: Tensor, weights: Tensor, *, lost: float = 0.0, emphasis: Tensor | None = None
) -> Tensor:
    """Weighted sum over rows of the binary cross entropy summed over labels.

    `logits` and `targets` (T, Y), `weights` (T,). `lost` is the share of positive labels that the data fails to show:
    an observed label then has likelihood (1 - lost) * P(Y), so the network learns the P(Y) behind it.
    With `emphasis` (Y,) a positive counts exp(emphasis) times, and emphasis is added to the logits before they are
    compared: what minimises the loss is still the log odds of P(Y).
    """
    logits = logits.float()
    if emphasis is not None:
        entropy = F.binary_cross_entropy_with_logits(
            logits + emphasis, targets, pos_weight=emphasis.exp(), reduction="none"
        )
        return (entropy.sum(-1) * weights).sum()
    if not lost:
        entropy = F.binary_cross_entropy_with_logits(logits, targets, reduction="none")  # (T, Y)
        return (entropy.sum(-1) * weights).sum()
    seen = F.logsigmoid(logits) + torch.log1p(logits.new_tensor(-lost))
    unseen = torch.log1p(-(1 - lost) * logits.sigmoid().clamp(max=1 - 1e-6))
    return (-(targets * seen + (1 - targets) * unseen).sum(-1) * weights).sum()


@dataclass(frozen=True)
class Calibration:
    """Per label: calibrated logit = slope * logit + shift."""

    slope: tuple[float, ...]
    shift: tuple[float, ...]


def fit_calibration(logits: Tensor, targets: Tensor, *, prior: float = 20.0, steps: int = 30) -> Calibration:
    """Fit slope and shift of each label by penalised maximum likelihood (Newton), all labels at once.

    `logits` and `targets` (B, Y) of held-out sequences. A Gaussian prior worth `prior` observations pulls slope to 1
    and shift to 0, so that rare labels are left nearly as they are.
    """
    x, y = logits.double(), targets.double()  # (B, Y)
    slope, shift = torch.ones(x.shape[1], dtype=x.dtype), torch.zeros(x.shape[1], dtype=x.dtype)
    for _ in range(steps):
        p = torch.sigmoid(slope * x + shift)
        weight = p * (1 - p)
        gradient_a = ((p - y) * x).sum(0) + prior * (slope - 1)
        gradient_b = (p - y).sum(0) + prior * shift
        aa = (weight * x * x).sum(0) + prior
        ab = (weight * x).sum(0)
        bb = weight.sum(0) + prior
        determinant = aa * bb - ab * ab
        step_a = (bb * gradient_a - ab * gradient_b) / determinant
        step_b = (aa * gradient_b - ab * gradient_a) / determinant
        slope = (slope - step_a.clamp(-0.5, 0.5)).clamp(0.05, 20)
        shift = (shift - step_b.clamp(-1, 1)).clamp(-10, 10)
    return Calibration(tuple(slope.tolist()), tuple(shift.tolist()))
