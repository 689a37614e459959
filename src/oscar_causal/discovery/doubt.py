"""How far a verdict is to be doubted: near a threshold, other models disagree, contexts unlike any real sequence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch

from oscar_causal.density.interface import Contexts, EventDensity
from oscar_causal.density.transfer import send
from oscar_causal.discovery.boundary import Boundary, EventEvidence
from oscar_causal.discovery.contexts import Stream
from oscar_causal.discovery.finalists import WORTH
from oscar_causal.discovery.fused import EVEN
from oscar_causal.discovery.subject import Subject, Variants, build_contexts

NEAR_Q = 2.0
"""A q-value within this factor of alpha is near it."""
NEAR_THRESHOLD = 0.2
"""An estimate that misses its threshold (delta, theta) by at most this share of it is near."""
CONTEXTS = 4
"""Contexts whose plausibility is looked at."""
LEAST_LOGP = -30.0
"""Log probabilities below this count as this: an impossible event must not hide all others."""


def near_decision(item: EventEvidence, *, alpha: float, delta: float) -> bool:
    """Is the verdict of a test near one of its thresholds? Events far from significance hang on neither.

    >>> near_decision(EventEvidence("A", (0,), "cause", 0.5, q_value=0.04), alpha=0.05, delta=0.05)
    True
    >>> near_decision(EventEvidence("A", (0,), "cause", 0.5, q_value=0.001), alpha=0.05, delta=0.05)
    False
    """
    if item.accepted_by == "score":
        return near(item.share or 0.0, WORTH)
    if item.posterior is not None and item.q_value is not None and item.verdict != "inhibitor":
        probable = item.posterior >= EVEN and alpha / NEAR_Q <= item.q_value <= NEAR_Q * alpha
        return probable or near(item.posterior, EVEN)
    if item.q_value is None or item.q_value > NEAR_Q * alpha:
        return False
    return item.q_value >= alpha / NEAR_Q or near(max(abs(item.effect), abs(item.alone or 0.0)), delta)


def near(estimate: float, threshold: float) -> bool:
    """Does an estimate miss a threshold by little?"""
    return abs(estimate - threshold) <= NEAR_THRESHOLD * threshold


def borderline_flags(evidence: Sequence[EventEvidence]) -> list[str]:
    """One flag that names the borderline events, if there are any."""
    names = [item.event for item in evidence if item.borderline]
    return [f"borderline: {', '.join(names)}"] if names else []


def with_agreement(boundary: Boundary, others: Sequence[Boundary]) -> Boundary:
    """The boundary with each event's agreement: the share of models that accept it (with this sign, if accepted here).

    `others` are other models' boundaries of the same pair. What only others accept is no cause, but the flag names it.
    """
    if not others:
        return boundary
    elsewhere = [{item.event: item.verdict for item in other.evidence if item.accepted} for other in others]
    total, evidence, disputed = 1 + len(others), [], []
    for item in boundary.evidence:
        found = [verdicts.get(item.event) for verdicts in elsewhere]
        accepting = 1 + found.count(item.verdict) if item.accepted else total - 1 - found.count(None)
        if 0 < accepting < total:
            disputed.append(f"{item.event} ({accepting} of {total})")
        evidence.append(replace(item, agreement=accepting / total))
    flags = [f"models disagree; accepted by: {', '.join(disputed)}"] if disputed else []
    return replace(boundary, evidence=tuple(evidence), flags=(*boundary.flags, *flags))


def screen_contexts(subject: Subject, rate: float) -> torch.Tensor:
    """A few contexts (n, L) of the kind that screening uses: every type that may be replaced is, with this rate."""
    uniforms = Stream(subject.seed, subject.sequence_id, "mask plausibility").uniforms(CONTEXTS, len(subject.types))
    masks = uniforms < np.where(subject.testable, rate, 0.0)
    return build_contexts([Variants(subject, masks[:, subject.owner], "plausibility", shuffled=False)])[0].event_ids


def plausibility(model: EventDensity, sequence: Contexts, contexts: torch.Tensor) -> tuple[float, float]:
    """Mean log probability of an event (nats) under Tf_x: of the observed sequence, and in the first few contexts."""
    drawn = contexts[:CONTEXTS]
    ids = torch.cat([send(sequence.event_ids, drawn.device), drawn])
    means = _event_logp(model, sequence.variants(ids)).cpu().double().clamp(min=LEAST_LOGP).mean(dim=1)
    return float(means[0]), float(means[1:].mean())


def _event_logp(model: Any, contexts: Contexts) -> torch.Tensor:
    """log P of every event of every context (N, L): in one pass where the model can, else one context at a time."""
    if hasattr(model, "event_logp"):
        return cast(torch.Tensor, model.event_logp(contexts))
    rows = []
    for n, ids in enumerate(contexts.event_ids):
        law = model.event_probs(contexts.rows(slice(n, n + 1)))  # (L, V)
        rows.append(law.gather(-1, ids.to(law.device)[:, None])[:, 0].log())
    return torch.stack(rows)
