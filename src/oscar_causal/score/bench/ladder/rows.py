"""The rows of the ladder, from the simplest on; those with the world's own probabilities are of worlds alone."""

from __future__ import annotations

from oscar_causal.score.bench.ladder import boosted, counting, true_p
from oscar_causal.score.bench.ladder.interface import Method

METHODS: dict[str, Method] = {**counting.METHODS, **boosted.METHODS, **true_p.METHODS}
"""Row -> method."""
OUTSIDE = tuple(name for name in METHODS if name not in true_p.METHODS)
"""Rows that need no world."""
