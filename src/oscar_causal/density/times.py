"""When: the laws of the time to the next event (Tf_x) and to the outcome (Tf_y), and how they hold on new sequences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from scipy.stats import norm
from torch import Tensor

from oscar_causal.data.batches import Encoded, pad
from oscar_causal.data.sequences import Float64, Int64
from oscar_causal.density.interface import Contexts
from oscar_causal.density.label_pass import context_tokens
from oscar_causal.density.model import OscarModel, length_batches, to_tokens

SMALLEST_SCALE = 0.05
"""Scales of log(1 + seconds) are kept above this."""
MOST_SEQUENCES = 2000
"""Sequences that the laws are judged on."""
TOKENS = 1 << 14
"""Tokens of a pass, where the model has no smaller pieces."""
COVERED = 0.9
"""Share of the times that the judged intervals should hold."""


@dataclass(frozen=True)
class TimeLaw:
    """log(1 + seconds) is normal with these means and scales, one for each place.

    >>> law = TimeLaw(np.array([np.log1p(60.0)]), np.array([0.5]))
    >>> law.quantile(0.5).round(6).tolist()
    [60.0]
    """

    mean: Float64
    scale: Float64

    def quantile(self, level: float) -> Float64:
        """Seconds that a share `level` of the times stays below."""
        return np.asarray(np.expm1(self.mean + self.scale * norm.ppf(level))).clip(min=0.0)

    def log_density(self, seconds: Float64) -> Float64:
        """Log density of log(1 + seconds), in nats."""
        return np.asarray(norm.logpdf(np.log1p(seconds), self.mean, self.scale))


def time_law(parameters: Tensor) -> TimeLaw:
    """The law that a head's output (..., 2) stands for."""
    mean, raw = parameters.float().cpu().double().unbind(-1)
    return TimeLaw(mean.numpy(), (F.softplus(raw) + SMALLEST_SCALE).numpy())


@torch.inference_mode()
def next_times(model: OscarModel, sequence: Contexts) -> TimeLaw:
    """Seconds from each event of a sequence (N = 1) to the next one: (L,)."""
    hidden_x, _ = model.network(context_tokens(sequence, model.device))
    return time_law(model.network.gap_head(hidden_x[0, 1:]))


@torch.inference_mode()
def outcome_times(model: OscarModel, sequence: Contexts) -> TimeLaw:
    """Seconds from each event of a sequence (N = 1) to its first label, if it gets one: (L,)."""
    _, hidden_y = model.network(context_tokens(sequence, model.device))
    return time_law(model.network.outcome_head(hidden_y[0, 1:]))


def judge_times(model: OscarModel, encoded: Encoded, rows: Int64) -> dict[str, Any]:
    """How the laws hold on sequences: `coverage` of their central 90 %, `gain` in nats over one law for all places.

    `count` is the number of times; None stands for no figure where there are too few.
    """
    parts: dict[str, list[tuple[Float64, Float64, Float64]]] = {"next_event": [], "outcome": []}
    room = min(model.pieces.tokens or TOKENS, TOKENS)
    for batch in length_batches(encoded.events.lengths[rows[:MOST_SEQUENCES]], room):
        for name, told in _batch_times(model, encoded, rows[batch]).items():
            parts[name].append(told)
    return {
        name: _judged(*(np.concatenate(column) for column in zip(*told, strict=True))) for name, told in parts.items()
    }


@torch.inference_mode()
def _batch_times(model: OscarModel, encoded: Encoded, rows: Int64) -> dict[str, tuple[Float64, Float64, Float64]]:
    """Means, scales and observed seconds at every place that has one."""
    tokens = to_tokens(pad(encoded, rows), model.device)
    lengths = encoded.events.lengths[rows][:, None]
    places = np.arange(tokens.event_ids.shape[1])
    hidden_x, hidden_y = model.network(tokens)
    gaps, elapsed = tokens.gaps.cpu().double().numpy(), tokens.elapsed.cpu().double().numpy()
    following = np.pad(gaps[:, 1:], ((0, 0), (0, 1)))
    left = encoded.outcome_times[rows][:, None] - elapsed
    has_next = (places >= 1) & (places < lengths)
    has_outcome = (places >= min(model.min_context, places[-1])) & (places <= lengths) & np.isfinite(left) & (left >= 0)
    found = {}
    for name, head, hidden, seconds, there in (
        ("next_event", model.network.gap_head, hidden_x, following, has_next),
        ("outcome", model.network.outcome_head, hidden_y, left, has_outcome),
    ):
        law = time_law(head(hidden))
        found[name] = (law.mean[there], law.scale[there], seconds[there])
    return found


def _judged(mean: Float64, scale: Float64, seconds: Float64) -> dict[str, Any]:
    if len(seconds) < 2:  # noqa: PLR2004 - no spread
        return {"count": len(seconds), "coverage": None, "gain": None, "median_seconds": None}
    law, logs = TimeLaw(mean, scale), np.log1p(seconds)
    tail = (1 - COVERED) / 2
    distance = np.abs(logs - mean) / scale
    one = TimeLaw(np.full(len(logs), logs.mean()), np.full(len(logs), max(float(logs.std()), SMALLEST_SCALE)))
    return {
        "count": len(seconds),
        "coverage": float((distance <= norm.ppf(1 - tail)).mean()),
        "gain": float((law.log_density(seconds) - one.log_density(seconds)).mean()),
        "median_seconds": float(np.median(seconds)),
    }
