"""The rows of the ladder, from the simplest on; those with the world's own probabilities are of worlds alone."""

from __future__ import annotations

from oscar_causal.score.bench.ladder import boosted, counting
from oscar_causal.score.bench.ladder.fleet_rows import fleet_rows
from oscar_causal.score.bench.ladder.interface import Method
from oscar_causal.score.bench.ladder.models import QUICK, ModelSettings
from oscar_causal.score.bench.ladder.trained import DEAR, ESTIMATORS, trained_rows, true_rows, with_agreement

TRUE = true_rows({**ESTIMATORS, **DEAR})
"""Every estimator with a perfect label model."""


def _methods(settings: ModelSettings) -> dict[str, Method]:
    trained = {**trained_rows({**ESTIMATORS, **DEAR}, settings), **fleet_rows(settings)}
    trained |= {AGAIN: with_agreement(trained["intervention"])}
    return {**counting.METHODS, **boosted.METHODS, **trained, **TRUE}


AGAIN = "intervention again"
"""The row that a second training seed is asked too: how many of its causes are found again."""
METHODS: dict[str, Method] = _methods(ModelSettings())
"""Row -> method."""
QUICK_METHODS: dict[str, Method] = _methods(QUICK)
"""The same with hardly trained models."""
FEW_WORLDS = tuple(name for name in METHODS if name.removeprefix("true P: ").startswith(tuple(DEAR)))
"""Rows that take so many passes that they are measured on two worlds only."""
OUTSIDE = tuple(name for name in METHODS if name not in TRUE)
"""Rows that need no world."""
TRAINED = tuple(name for name in OUTSIDE if name not in {**counting.METHODS, **boosted.METHODS})
"""Rows that train a network, or read a fleet."""
