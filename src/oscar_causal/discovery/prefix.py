"""The paper's estimator: how much does each event move the forecast of a label, averaged over sampled pasts?

Eq. 4: for N contexts z whose first c events are drawn from Tf_x, the information gain of event i is
KL(P(Y | x_<=i) || P(Y | x_<i)); its mean over contexts is compared with theta = mean + k * sd over the positions.
An event that merely announces a cause moves the forecast too and is listed: that is what the method does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from oscar_causal.density.interface import Contexts, EventDensity, LabelDensity
from oscar_causal.density.transfer import send
from oscar_causal.discovery.boundary import EventEvidence
from oscar_causal.discovery.cmi import bernoulli_kl
from oscar_causal.discovery.contexts import Float64, Int64, Stream, truncate_law
from oscar_causal.discovery.device_contexts import draw_on
from oscar_causal.errors import UsageError

SAMPLERS = ("top-k", "permutation", "none")


@dataclass(frozen=True)
class PrefixConfig:
    """Settings of the `prefix` estimator; the defaults are the paper's.

    >>> PrefixConfig(contexts=8).threshold
    2.75
    """

    context: int = 15
    """c: the first c events are resampled; events among them can never be found."""
    contexts: int = 68
    """N: number of sampled contexts."""
    sampler: str = "top-k"
    """top-k (draws from Tf_x, truncated), permutation (of the first c events) or none (one context, as observed)."""
    top_k: int | None = 35
    top_p: float | None = 0.8
    temperature: float = 1.0
    threshold: float = 2.75
    """k of theta = mean + k * sd."""
    max_lag: float | None = None
    """Events longer than this (seconds) before the last one are not tested (bounded lagged effects, A2)."""

    def __post_init__(self) -> None:
        if self.context < 1 or self.contexts < 1:
            raise UsageError(
                f"prefix: expected context and contexts of at least 1, got {self.context}, {self.contexts}"
            )
        if self.sampler not in SAMPLERS:
            raise UsageError(f"sampler: expected one of {', '.join(SAMPLERS)}, got {self.sampler!r}")
        if not 0 < self.temperature < math.inf:
            raise UsageError(f"temperature: expected above 0, got {self.temperature}")
        if self.top_k is not None and self.top_k < 1:
            raise UsageError(f"top_k: expected at least 1, got {self.top_k}")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise UsageError(f"top_p: expected above 0 and at most 1, got {self.top_p}")
        if not math.isfinite(self.threshold):
            raise UsageError(f"threshold: expected a finite number, got {self.threshold}")
        if self.max_lag is not None and not self.max_lag >= 0:
            raise UsageError(f"max_lag: expected 0 seconds or more, got {self.max_lag}")


@dataclass(frozen=True)
class PrefixCurves:
    """Per position i >= c and label: Eq. 4 and the causal indicator over contexts. Shapes (L - c, Y')."""

    cmi_nats: Float64
    indicator: Float64
    indicator_sd: Float64
    contexts: int


def sample_pasts(
    model: EventDensity, sequence: Contexts, config: PrefixConfig, *, seed: int, sequence_id: str
) -> Tensor:
    """N variants (N, L) of the sequence whose first c events are resampled, on the device of the law."""
    observed, c = sequence.event_ids, config.context
    if config.sampler == "none":
        return observed
    uniforms = Stream(seed, sequence_id, "prefix").uniforms(config.contexts, c)
    if config.sampler == "permutation":
        first = observed[0, :c][torch.as_tensor(np.argsort(uniforms, axis=1, kind="stable"))]
    else:
        law = truncate_law(
            model.event_probs(sequence)[:c], top_k=config.top_k, top_p=config.top_p, temperature=config.temperature
        )
        first = draw_on(law, send(uniforms, law.device))
    rest = send(observed[:, c:], first.device).expand(config.contexts, -1)
    return torch.cat([first, rest], dim=1)


def prefix_curves(label_model: LabelDensity, sequence: Contexts, pasts: Tensor, labels: Int64, c: int) -> PrefixCurves:
    """Eq. 4 and the indicator along the sequence; sums over contexts piece by piece, never (N, L, Y) at once."""
    length = sequence.event_ids.shape[1]
    steps = torch.arange(c, length + 1)
    wanted = torch.as_tensor(labels)
    total = squares = information = np.zeros((length - c, len(labels)))
    for piece in torch.tensor_split(pasts, max(1, -(-len(pasts) * length * len(labels) // (1 << 22)))):
        contexts = sequence.variants(piece)
        probs = label_model.label_probs(contexts, wanted, steps).double().cpu().numpy()  # (n, L - c + 1, Y')
        before, after = probs[:, :-1], probs[:, 1:]
        information = information + bernoulli_kl(after, before).sum(0)
        total = total + (after - before).sum(0)
        squares = squares + ((after - before) ** 2).sum(0)
    number = len(pasts)
    mean = total / number
    variance = np.maximum(squares / number - mean**2, 0.0) * number / max(1, number - 1)
    return PrefixCurves(information / number, mean, np.sqrt(variance), number)


def threshold(cmi_nats: Float64, k: float) -> Float64:
    """theta_j = mean_j + k * sd_j over the real positions (Eq. 6), for each label."""
    if len(cmi_nats) < 2:
        return np.full(cmi_nats.shape[1], np.inf)
    theta: Float64 = cmi_nats.mean(0) + k * cmi_nats.std(0, ddof=1)
    return theta


def least_positions(k: float) -> int:
    """Fewest positions of which one can exceed theta: among n numbers the largest lies at most (n - 1) / sqrt(n)
    standard deviations above their mean (Samuelson's inequality).

    >>> least_positions(2.75), least_positions(1.0)
    (10, 3)
    """
    root = (k + math.sqrt(k * k + 4)) / 2  # sqrt(n) where the bound is k itself
    return max(2, math.floor(root * root) + 1)


def prefix_evidence(
    curves: PrefixCurves, column: int, event_names: list[str], times: Float64, config: PrefixConfig
) -> tuple[EventEvidence, ...]:
    """Fold positions into event types: a type is accepted when one of its positions exceeds theta (Eq. 6, strictly, so
    that a forecast which never moves lists nothing).
    """
    c = config.context
    passed = curves.cmi_nats[:, column] > threshold(curves.cmi_nats, config.threshold)[column]
    tested = np.ones(len(passed), bool)
    if config.max_lag is not None:
        tested = times[-1] - times[c:] <= config.max_lag
    by_event: dict[str, list[int]] = {}
    for index in np.flatnonzero(tested).tolist():
        by_event.setdefault(event_names[c + index], []).append(index)
    figures = [part[:, column].tolist() for part in (curves.cmi_nats, curves.indicator, curves.indicator_sd)]
    hits = set(np.flatnonzero(passed).tolist())
    return tuple(_fold(event, indices, figures, hits, config, curves.contexts) for event, indices in by_event.items())


def _fold(
    event: str, indices: list[int], figures: list[list[float]], hits: set[int], config: PrefixConfig, contexts: int
) -> EventEvidence:
    cmi_nats, indicators, deviations = figures
    best = max(indices, key=cmi_nats.__getitem__)
    passed = [index for index in indices if index in hits]
    indicator, sd, se = indicators[best], deviations[best], deviations[best] / contexts**0.5
    verdict = ("cause" if indicator >= 0 else "inhibitor") if passed else "no effect"
    return EventEvidence(
        event=event,
        positions=tuple(index + config.context for index in (passed or indices)),
        verdict=verdict,  # type: ignore[arg-type]
        effect=indicator,
        se=se,
        n_kept=contexts,
        score=cmi_nats[best],
        indicator=indicator,
        indicator_sd=sd,
        indicator_se=se,
        cmi_nats=cmi_nats[best],
    )
