"""The one-shot estimators that every table shows beside the paper's own."""

from __future__ import annotations

from oscar_causal.discovery.intervention import InterventionConfig
from oscar_causal.discovery.oneshot import DiscoveryConfig
from oscar_causal.discovery.prefix import PrefixConfig

PAPER_PREFIX = PrefixConfig(context=15, contexts=68, sampler="top-k", top_k=35, top_p=0.8, threshold=2.75)
"""The settings the paper chooses."""
THRESHOLDS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 2.75, 3.0, 3.5, 4.0, 5.0)
"""Values of k at which every pass of `prefix` is cut: rows that differ in k alone share the pass."""
SMALLEST_CONTEXT = 4
"""Every model learns labels from prefixes of so many events on, the smallest c of the paper: rows share one model."""


def prefix_settings(settings: PrefixConfig = PAPER_PREFIX) -> DiscoveryConfig:
    """The paper's estimator."""
    return DiscoveryConfig(estimator="prefix", prefix=settings)


def intervention_settings(settings: InterventionConfig | None = None) -> DiscoveryConfig:
    """Ours."""
    return DiscoveryConfig(intervention=settings or InterventionConfig())
