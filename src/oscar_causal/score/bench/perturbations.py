"""Attribution by perturbing: leave-one-out, RISE, LIME, Shapley values, and the paper's moves as a rating.

All replace event types by the same draws of Tf_x as `intervention` does, and read P(label) after the last event.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from oscar_causal.density.interface import LabelDensity
from oscar_causal.discovery.contexts import Bool, Float64, Int64, Stream
from oscar_causal.discovery.prefix import PrefixConfig, prefix_curves, sample_pasts
from oscar_causal.discovery.subject import Subject, respond
from oscar_causal.score.bench.ratings import Case, Ratings

LIME_WIDTH = 0.25
"""Width of LIME's kernel in cosine distance: what its authors use for text."""
LIME_RIDGE = 1.0


@dataclass(frozen=True)
class LeaveOneOut:
    """P(label) as observed minus P(label) with one type replaced, over a few draws."""

    draws: int = 2

    def rate(self, case: Case) -> Ratings:
        """See `Method`."""
        count = len(case.subject.types)
        masks = np.tile(np.eye(count, dtype=bool), (self.draws, 1))
        outcomes = _respond(case, np.concatenate([np.zeros((1, count), bool), masks]), "leave-one-out")
        without = outcomes[1:].reshape(self.draws, count, -1).mean(0)
        return Ratings(outcomes[0] - without, len(outcomes))


@dataclass(frozen=True)
class Rise:
    """Randomised masks (Petsiuk et al. 2018): mean P(label) of the contexts that keep a type, minus that of all."""

    contexts: int
    rate_of_replacing: float = 0.5

    def rate(self, case: Case) -> Ratings:
        """See `Method`."""
        uniforms = _uniforms(case.subject, self.contexts, f"rise {self.rate_of_replacing}")
        masks = uniforms < self.rate_of_replacing
        outcomes = _respond(case, masks, "rise")
        return Ratings(rise_scores(masks, outcomes, self.rate_of_replacing), self.contexts)


def rise_scores(masks: Bool, outcomes: Float64, rate: float) -> Float64:
    """Sum of the outcomes that kept a type over N times the chance of keeping it, minus the mean: (K, Y')."""
    kept: Float64 = (~masks).T @ outcomes / (len(masks) * (1 - rate))
    difference: Float64 = kept - outcomes.mean(0)
    return difference


@dataclass(frozen=True)
class Lime:
    """A weighted ridge regression of P(label) on which types were kept (Ribeiro et al. 2016), as for text."""

    contexts: int

    def rate(self, case: Case) -> Ratings:
        """See `Method`. How many types are replaced is uniform from 1 to all; the first context is as observed."""
        count = len(case.subject.types)
        uniforms = _uniforms(case.subject, self.contexts, "lime")
        sizes = 1 + (
            Stream(case.subject.seed, case.subject.sequence_id, "lime sizes").uniforms(self.contexts, 1) * count
        ).astype(np.int64)  # (N, 1)
        masks = uniforms.argsort(1).argsort(1) < sizes
        masks[0] = False
        return Ratings(lime_scores(masks, _respond(case, masks, "lime")), self.contexts)


def lime_scores(masks: Bool, outcomes: Float64) -> Float64:
    """Coefficients of "kept" in a ridge regression weighted by nearness to the observed sequence: (K, Y')."""
    kept = (~masks).astype(np.float64)  # (N, K)
    distance = 1 - np.sqrt(kept.mean(1))
    weights = np.sqrt(np.exp(-((distance / LIME_WIDTH) ** 2)))[:, None]  # (N, 1)
    kept = kept - (weights * kept).sum(0) / weights.sum()
    centred = outcomes - (weights * outcomes).sum(0) / weights.sum()
    gram = kept.T @ (weights * kept) + LIME_RIDGE * np.eye(kept.shape[1])
    scores: Float64 = np.linalg.solve(gram, kept.T @ (weights * centred))
    return scores


@dataclass(frozen=True)
class ShapleySampling:
    """Shapley values of "type kept" for P(label), by adding types in random orders (Castro et al. 2009)."""

    permutations: int = 8

    def rate(self, case: Case) -> Ratings:
        """See `Method`. All labels share the passes."""
        values = shapley_values(case.model, case.subject, case.labels, self.permutations)
        return Ratings(values, 1 + self.permutations * len(case.subject.types))


def shapley_values(model: LabelDensity, subject: Subject, labels: Int64, permutations: int) -> Float64:
    """Mean change of P(label) as a type is added to those before it in random orders: (K, Y')."""
    count = len(subject.types)
    observed = respond(model, subject, np.zeros((1, count), bool), labels, "shapley")  # (1, Y')
    total = np.zeros((count, len(labels)))
    for n, order in enumerate(_orders(subject, count, permutations)):
        added = np.argsort(order)  # when each type is added
        masks = added[None, :] >= np.arange(count)[:, None]  # (K, K): row k keeps the first k types
        outcomes = respond(model, subject, masks, labels, f"shapley {n}")
        total[order] += np.diff(np.concatenate([outcomes, observed]), axis=0)
    return total / permutations


def _orders(subject: Subject, types: int, orders: int) -> Int64:
    uniforms = Stream(subject.seed, subject.sequence_id, "shapley orders").uniforms(orders, types)
    return uniforms.argsort(1)


@dataclass(frozen=True)
class PrefixMoves:
    """Eq. 4 of each position in standard deviations above the mean: cut at k, it is the paper's threshold (Eq. 6)."""

    config: PrefixConfig

    def rate(self, case: Case) -> Ratings:
        """See `Method`. The largest of a type's positions that raise P(label); types that never do get 0."""
        if len(case.subject.event_ids) <= self.config.context + 1:
            return Ratings(np.zeros((len(case.subject.types), len(case.labels))), 0)
        scores, contexts = prefix_moves(case.model, case.subject, case.labels, self.config)
        return Ratings(scores, contexts)


def prefix_moves(model: Any, subject: Subject, labels: Int64, config: PrefixConfig) -> tuple[Float64, int]:
    """See `PrefixMoves`: (K, Y'), and the contexts spent; for sequences of at least c + 2 events."""
    c, scores = config.context, np.zeros((len(subject.types), len(labels)))
    pasts = sample_pasts(model, subject.sequence, config, seed=subject.seed, sequence_id=subject.sequence_id)
    curves = prefix_curves(model, subject.sequence, pasts, labels, c)
    sd = curves.cmi_nats.std(0, ddof=1)
    above = (curves.cmi_nats - curves.cmi_nats.mean(0)) / np.where(sd > 0, sd, np.inf)  # (L - c, Y')
    np.maximum.at(scores, subject.owner[c:], np.where(curves.indicator >= 0, above, 0.0))
    return scores, curves.contexts


def _uniforms(subject: Subject, contexts: int, purpose: str) -> Float64:
    return Stream(subject.seed, subject.sequence_id, purpose).uniforms(contexts, len(subject.types))


def _respond(case: Case, masks: Bool, purpose: str) -> Float64:
    return respond(case.model, case.subject, masks, case.labels, purpose)
