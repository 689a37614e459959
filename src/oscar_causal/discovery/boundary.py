"""The result of discovery for one label of one sequence: its boundary, with the evidence for every tested event.

Immutable, carries how it came about, neither draws, prints nor saves itself. Every method, one-shot or classical,
speaks in these types.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["cause", "inhibitor", "no effect", "not resolvable"]


@dataclass(frozen=True)
class EventEvidence:
    """What was measured about one event type. None = this estimator does not define it."""

    event: str
    positions: tuple[int, ...]
    """0-based positions of the event in the sequence; those that mattered first where the estimator can tell."""
    verdict: Verdict
    effect: float
    """Mean P(label) with the event kept minus replaced, over the estimator's contexts."""
    se: float | None = None
    n_kept: int = 0
    n_replaced: int = 0
    p_value: float | None = None
    q_value: float | None = None
    score: float | None = None
    """A ranking without a promise; larger is stronger."""
    indicator: float | None = None
    """The causal indicator (Eq. 9)."""
    indicator_sd: float | None = None
    indicator_se: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    cmi_nats: float | None = None
    alone: float | None = None
    """Fall of P(label) when this event alone is replaced and all else stays as observed; 0 for causes that stand in for
    each other."""

    @property
    def accepted(self) -> bool:
        """Is the event in the boundary?"""
        return self.verdict in ("cause", "inhibitor")


@dataclass(frozen=True)
class Boundary:
    """One explained (sequence, label)."""

    sequence_id: str
    label: str
    observed: bool | None
    """Was the label recorded? None = the sequence is unlabelled."""
    probability: float | None
    """The model's P(label) for the sequence as it is."""
    evidence: tuple[EventEvidence, ...]
    trusted: bool | None = None
    seen_in_training: bool | None = None
    contexts: int = 0
    """Forward passes spent on the sequence (shared by its labels)."""
    flags: tuple[str, ...] = ()

    @property
    def causes(self) -> tuple[EventEvidence, ...]:
        """The accepted events, strongest first."""
        accepted = [item for item in self.evidence if item.accepted]
        return tuple(sorted(accepted, key=lambda item: (-abs(item.indicator or item.effect), item.event)))
