"""The result of discovery for one label of one sequence: its boundary, with the evidence for every tested event.

Immutable, carries how it came about, neither draws, prints nor saves itself. Every method, one-shot or classical,
speaks in these types.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from oscar_causal.data.notebook import html_table

Verdict = Literal["cause", "inhibitor", "no effect", "not resolvable"]
Source = Literal["evidence", "background knowledge", "both"]
"""What put an event into a boundary: its measured evidence, the user's word, or both."""
AcceptedBy = Literal["test", "score"]
"""Why `intervention` accepts an event: its q-value is at most alpha, or slopes and measured effect speak for it where
the test cannot tell."""
RankedBy = Literal["slopes", "screen"]
"""How the events to test were chosen: by slopes of the model, or by a screen of random contexts."""


@dataclass(frozen=True)
class EventEvidence:
    """What was measured about one event type. None = this estimator does not define it.

    >>> EventEvidence("disk slow", positions=(1,), verdict="cause", effect=0.7).accepted
    True
    """

    event: str
    positions: tuple[int, ...]
    """0-based positions of the event in the sequence; those that mattered first where the estimator can tell."""
    verdict: Verdict
    effect: float
    """Mean P(label) with the event kept minus replaced, over the estimator's contexts; NaN = not measured."""
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
    mattered: tuple[int, ...] | None = None
    """Of a repeated event: the positions of which one alone keeps most of the effect (empty: it takes several); None =
    not asked."""
    partner: str | None = None
    """Another event of the sequence that stands in for this one."""
    jointly: float | None = None
    """Fall of P(label) when this event and its partner are both replaced."""
    borderline: bool = False
    """Is the verdict so near a threshold that other rounding or another seed may turn it?"""
    source: Source = "evidence"
    agreement: float | None = None
    """Share of the models, this one included, that accept the event with the same sign; None = one model judged."""
    share: float | None = None
    """Pull on the log odds of the label by slopes of the model, as a share of the strongest event's (below 0: away from
    the label): a score without a promise."""
    accepted_by: AcceptedBy | None = None
    """What an acceptance by `intervention` rests on."""

    posterior: float | None = None
    """`fused`: P(this event is a cause here)."""
    prior: float | None = None
    """`fused`: the chance that the event is a cause here before its own evidence, from the rest of the fleet."""
    log_ratio: float | None = None
    """`fused`: log likelihood ratio of this sequence's own evidence, nats."""
    response: float | None = None
    """`fused`: largest fall of P(label) the event makes, alone or with another one out, as a share of P(label)."""
    fleet_sequences: int | None = None
    """`fused`: sequences of the fleet with label and event that have a row of evidence."""
    classical: bool | None = None
    """`fused`: is the event in the classical boundary? None = there is none."""
    rule: bool | None = None
    """`fused`: does the recovered rule name the event as a cause in this sequence? None = there is no rule."""

    @property
    def accepted(self) -> bool:
        """Is the event in the boundary?"""
        return self.verdict in ("cause", "inhibitor")


@dataclass(frozen=True)
class Boundary:
    """One explained (sequence, label).

    >>> measured = (EventEvidence("mail", (3,), "no effect", 0.0), EventEvidence("disk slow", (1,), "cause", 0.7))
    >>> [cause.event for cause in Boundary("night 1", "outage", True, 0.9, measured).causes]
    ['disk slow']
    """

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
    observed_logp: float | None = None
    """Mean log probability of an event under Tf_x, in nats, in the sequence as observed."""
    contexts_logp: float | None = None
    """The same in a few contexts: far below `observed_logp`, the label model is asked about sequences unlike any."""
    ranked_by: RankedBy | None = None
    """What chose the events to test; None = nothing was chosen, or an estimator that chooses none."""

    def _repr_html_(self) -> str:
        """What a notebook shows: the accepted events, strongest first."""
        columns = ["event", "verdict", "accepted by", "effect", "from", "to", "q", "positions"]
        rows = [
            [c.event, c.verdict, c.accepted_by, c.indicator if c.indicator is not None else c.effect, c.ci_low,
             c.ci_high, c.q_value, ", ".join(map(str, c.positions))]
            for c in self.causes
        ]  # fmt: skip
        chance = "" if self.probability is None else f", P = {self.probability:.3g}"
        note = "" if rows else f"none of {len(self.evidence):,} tested events was accepted"
        if self.by_score:
            note = f"{len(self.by_score):,} accepted by score: no test has shown it"
        told = "; ".join(filter(None, (note, *self.flags)))
        return html_table(f"{self.sequence_id}: {self.label}{chance}", columns, rows, told)

    @property
    def causes(self) -> tuple[EventEvidence, ...]:
        """The accepted events, strongest first, those without a measured effect last."""
        accepted = [item for item in self.evidence if item.accepted]
        return tuple(sorted(accepted, key=lambda item: (-_strength(item), item.event)))

    @property
    def by_score(self) -> tuple[EventEvidence, ...]:
        """Those of the causes that no test has shown."""
        return tuple(item for item in self.causes if item.accepted_by == "score")


def _strength(item: EventEvidence) -> float:
    strength = abs(item.indicator or item.effect)
    return -1.0 if math.isnan(strength) else strength
