"""The one-shot estimators that every table shows beside the paper's own."""

from __future__ import annotations

from oscar_causal.discovery.intervention import InterventionConfig
from oscar_causal.discovery.oneshot import DiscoveryConfig
from oscar_causal.discovery.prefix import PrefixConfig

PAPER_PREFIX = PrefixConfig(context=15, contexts=68, sampler="top-k", top_k=35, top_p=0.8, threshold=2.75)
"""The settings the paper chooses."""


def prefix_settings(settings: PrefixConfig = PAPER_PREFIX) -> DiscoveryConfig:
    """The paper's estimator."""
    return DiscoveryConfig(estimator="prefix", prefix=settings)


def intervention_settings(settings: InterventionConfig | None = None) -> DiscoveryConfig:
    """Ours."""
    return DiscoveryConfig(intervention=settings or InterventionConfig())
