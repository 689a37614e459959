"""Settings of rule recovery."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from oscar_causal.errors import UsageError


@dataclass(frozen=True)
class RuleRecoveryConfig:
    """Budgets and thresholds; all that decides the proposals besides model, dataset and boundaries."""

    backgrounds: int = 24
    """Sampled sequences into which candidates are inserted."""
    least_positives: int = 10
    """Labels with fewer sequences are answered `too few positives`."""
    model_weight: float = 4.0
    """In a line of the truth table the model's word counts as much as this many observed sequences."""
    probes: int = 16
    """Sequences probed per label for blockers (without the label), and for order and count (with it)."""
    change: float = 0.3
    """Removing a needed event (a blocker) lowers (raises) P(label) by at least this much, across one half."""
    blocked_share: float = 0.08
    """Blockers are looked for where at least this share of the sequences in which the rule holds lacks the label."""
    arrangements: int = 16
    """Random arrangements of a pattern in each background."""
    least_support: int = 1
    """Every part of a rule must have decided in this many sequences, on both sides; else it is not identifiable."""
    explained: float = 0.85
    """Precision and recall on the mined sequences below which (with their intervals) a rule is not identifiable."""
    held_out: float = 0.25
    """Share of the subjects kept for fidelity where no held-out dataset is given."""
    judged: int = 16
    """Held-out sequences per label for which the model is asked whether it agrees with the rule."""
    seed: int = 0
    """Decides samples, places and draws."""

    def __post_init__(self) -> None:
        for name, least in (
            ("backgrounds", 4),
            ("least_positives", 1),
            ("probes", 1),
            ("arrangements", 4),
            ("judged", 0),
        ):
            if getattr(self, name) < least:
                raise UsageError(f"{name}: expected at least {least}, got {getattr(self, name)}")
        for name in ("change", "blocked_share", "explained", "held_out"):
            if not 0 < getattr(self, name) < 1:
                raise UsageError(f"{name}: expected between 0 and 1, got {getattr(self, name)}")
        if not self.model_weight > 0:
            raise UsageError(f"model_weight: expected above 0, got {self.model_weight}")

    def to_json(self) -> dict[str, Any]:
        """All settings."""
        return asdict(self)
