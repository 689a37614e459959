"""Direct effects of event types on P(label), with everything else in the sequence, past and future, as context.

1. *Rank* (`finalists`): which types deserve a close look; by slopes where the model has them, else by a screen.
2. *Focus* (`looks`): the finalists of each label alone are replaced, with a probability fitted to the size of the
   boundary, in fresh contexts, up to the preset look at which the sequence is settled. Tests (`significance`) use these
   contexts only, so choosing finalists costs no validity.
3. *Removal* (`removal`): the sequence without a finalist, without a pair of them, with one of its occurrences only.
4. *Judge*: accepted by test, or by score where no test can tell and slopes and measured fall agree.

All replacement draws come from Tf_x given the observed past, conditioned on "none of the types present", so a replaced
type is absent, and the draw at a position does not depend on any mask.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from oscar_causal.density.interface import LabelDensity
from oscar_causal.discovery.boundary import AcceptedBy, EventEvidence, RankedBy, Verdict
from oscar_causal.discovery.contexts import Bool, Float64, Int64
from oscar_causal.discovery.differences import Differences, differences, odds_fall
from oscar_causal.discovery.finalists import choose_finalists, focus_rates, rank
from oscar_causal.discovery.looks import Focus, focus_stage, plan_looks
from oscar_causal.discovery.removal import Removed, remove_finalists
from oscar_causal.discovery.subject import Stage, Subject, respond
from oscar_causal.errors import UsageError

TIE_FLAG = "order inside a timestamp matters"
FALL = 0.35
"""A finalist by slopes is accepted by its score if the odds of the label fall by this share without it: less a network
does over nothing."""
SMALLEST_ALPHA = 0.0005
"""Smaller ones ask for so many redraws that a sequence takes seconds."""


@dataclass(frozen=True)
class InterventionConfig:
    """Settings of the `intervention` estimator.

    >>> InterventionConfig(contexts=256).finalist_count
    20
    """

    contexts: int = 64
    """N: most forward passes for one sequence (a pass forward and back counts as three)."""
    alpha: float = 0.05
    """False discovery rate within one (sequence, label)."""
    delta: float = 0.05
    """Tests ask whether an effect on P(label) is larger than this; smaller ones do not make an event a cause."""
    screen_rate: float = 0.15
    """Probability of replacing a type while screening (models without slopes)."""
    finalists: int | None = None
    """Types per label that are looked at closely; by default a sixteenth of the contexts and four more."""
    redraws: int = 2000
    """Redraws of a mask column per test; where few of them reach what was seen, as many more as alpha asks for."""
    tested_only: bool = False
    """Accept only what a test has shown, nothing by its score."""
    shuffle_ties: bool = True
    """Shuffle events with one timestamp, so that their stored order cannot decide."""

    def __post_init__(self) -> None:
        if self.contexts < 16:
            raise UsageError(f"contexts: the intervention estimator needs at least 16, got {self.contexts}")
        if not SMALLEST_ALPHA <= self.alpha < 1:
            raise UsageError(
                f"alpha: expected {SMALLEST_ALPHA} up to 1 (smaller ones cannot be told), got {self.alpha}"
            )
        if not 0 <= self.delta < 1:
            raise UsageError(f"delta: expected 0 up to 1, got {self.delta}")
        if not 0 < self.screen_rate < 1:
            raise UsageError(f"screen_rate: expected between 0 and 1, got {self.screen_rate}")
        if self.finalists is not None and self.finalists < 1:
            raise UsageError(f"finalists: expected at least 1, got {self.finalists}")
        if self.redraws < 99:
            raise UsageError(f"redraws: expected at least 99, got {self.redraws}")

    @property
    def finalist_count(self) -> int:
        """Finalists per label: more contexts can tell more of them apart."""
        return self.finalists or self.contexts // 16 + 4

    @property
    def ranking_budget(self) -> int:
        """Most passes for slopes: half of a small budget, with which tests can show little anyway."""
        return max(2 * self.contexts // 5, min(self.contexts // 2, 24))

    @property
    def screen_contexts(self) -> int:
        """Contexts of the screen that ranks where there are no slopes; one pass more goes to the forecast's moves."""
        return max(4, self.contexts // 5 - 1)

    def removal_budget(self, finalists: int) -> int:
        """Contexts for taking finalists out: each of them once, if that leaves enough to the tests."""
        return max(4, self.contexts // 6, min(3 * finalists // 2, self.contexts // 4))


@dataclass(frozen=True)
class LabelEvidence:
    """What all stages found for one label."""

    observed: float
    evidence: tuple[EventEvidence, ...]
    flags: tuple[str, ...]
    ranked_by: RankedBy


def explain(
    model: LabelDensity,
    subject: Subject,
    labels: Int64,
    names: list[str],
    config: InterventionConfig,
    *,
    forbidden: Bool | None = None,
) -> tuple[list[LabelEvidence], int]:
    """Evidence for each label, and the number of contexts spent. `names` are the event names of `subject.types`.

    `forbidden` (Y', K) marks types that are not tested for a label.
    """
    count = len(subject.types)
    observed = respond(model, subject, np.zeros((1, count), bool), labels, "observed", shuffled=False)[0]  # (Y',)
    unchanged, tie_contexts = shuffled_reference(model, subject, labels, observed)  # (1 or 2, Y')
    reference = unchanged.mean(0)
    ranking = rank(
        model,
        subject,
        labels,
        reference,
        budget=config.ranking_budget,
        screen_contexts=config.screen_contexts,
        screen_rate=config.screen_rate,
    )
    allowed = np.tile(subject.testable, (len(labels), 1))  # (Y', K)
    if forbidden is not None:
        allowed &= ~forbidden
    finalists = choose_finalists(ranking, allowed, config.finalist_count)
    spent = 1 + tie_contexts + ranking.spent
    removals = config.removal_budget(len(set(np.concatenate(finalists).tolist())))
    looks = plan_looks(config.contexts - spent - removals)
    focus, tested = focus_stage(
        model,
        subject,
        labels,
        finalists,
        focus_rates(ranking, finalists, count),
        looks,
        alpha=config.alpha,
        delta=config.delta,
        redraws=config.redraws,
    )
    removed, taken = remove_finalists(model, subject, labels, tested, reference, delta=config.delta, budget=removals)
    hangs = np.abs(unchanged - observed).max(0) > config.delta
    shares = ranking.shares(allowed)
    results = []
    for j in range(len(labels)):
        share = None if shares is None else shares[:, j]
        judge = _Judge(subject, names, config, ranking.screen, focus, j, float(reference[j]), share)
        evidence = judge.all_evidence(allowed[j], tested[j], removed[j])
        flags = ((TIE_FLAG,) if hangs[j] else ()) + tuple(filter(None, map(_turning, evidence)))
        results.append(LabelEvidence(float(observed[j]), evidence, flags, ranking.ranked_by))
    return results, spent + len(focus.outcomes) + taken


def shuffled_reference(model: LabelDensity, subject: Subject, labels: Int64, observed: Float64) -> tuple[Float64, int]:
    """P(label) with nothing replaced, in two random orders inside the timestamps, and the contexts spent on it.

    Without ties it is the observed one. Effects are measured against it, so the stored order of tied events is not
    what they are about.
    """
    if subject.ties is None:
        return observed[None, :], 0
    return respond(model, subject, np.zeros((2, len(subject.types)), bool), labels, "ties"), 2


@dataclass(frozen=True)
class _Judge:
    """Turns the stages' figures into evidence for one label."""

    subject: Subject
    names: list[str]
    config: InterventionConfig
    screen: Stage | None
    focus: Stage
    label: int
    reference: float
    share: Float64 | None
    """(K,) see `EventEvidence.share`; None = a screen ranked the types."""

    def all_evidence(self, allowed: Bool, tested: Focus, removed: Removed) -> tuple[EventEvidence, ...]:
        """Evidence for every finalist, and for every other allowed type that was replaced in some context."""
        place = {int(t): k for k, t in enumerate(tested.finalists)}
        close = self._differences(self.focus, tested.finalists)
        others = np.setdiff1d(np.flatnonzero(allowed), tested.finalists)
        far = None if self.screen is None else self._differences(self.screen, others)
        found = {t: self._finalist(t, tested, k, close, removed) for t, k in place.items() if allowed[t]}
        if far is not None:
            found |= {t: self._screened(t, k, far) for k, t in enumerate(others.tolist())}
        return tuple(found[t] for t in sorted(found))

    def _differences(self, stage: Stage, types: Int64) -> Differences:
        return differences(stage.outcomes[:, self.label], stage.masks[:, types], 1 - self.config.alpha)

    def _finalist(self, t: int, tested: Focus, k: int, close: Differences, removed: Removed) -> EventEvidence:
        effect, se, low, high = float(close.effects[k]), close.error(k), float(close.low[k]), float(close.high[k])
        q, drop = float(tested.q_values[k]), removed.drop(t, self.reference)
        partner = removed.partner.get(t)
        jointly = None if partner is None else self.reference - removed.without_both[t]
        share = None if self.share is None else float(self.share[t])
        conditional = float(tested.tests.effects[k])
        verdict = self._verdict(q, self._strength(conditional, drop), (low, high))
        by: AcceptedBy | None = "test" if verdict in ("cause", "inhibitor") else None
        against = q <= self.config.alpha and conditional < 0  # then a test does tell, and not for a cause
        fall = measured_fall(self.reference, effect, drop, jointly)
        if by is None and not against and self._speaks_for(share, fall):
            verdict, by = "cause", "score"
        return EventEvidence(
            event=self.names[t],
            positions=self.subject.places[t],
            verdict=verdict,
            effect=effect,
            se=se,
            n_kept=int(close.kept[k]),
            n_replaced=int(close.replaced[k]),
            p_value=float(tested.tests.p_values[k]),
            q_value=q,
            score=float(tested.tests.scores[k]),
            share=share,
            accepted_by=by,
            indicator=effect,
            indicator_sd=self.spread,
            indicator_se=se,
            ci_low=low,
            ci_high=high,
            cmi_nats=removed.cmi(t, self.reference),
            alone=drop,
            mattered=removed.mattered.get(t),
            partner=None if partner is None else self.names[partner],
            jointly=jointly,
        )

    @cached_property
    def spread(self) -> float:
        """Standard deviation of P(label) over the contexts of the focus stage."""
        return float(self.focus.outcomes[:, self.label].std(ddof=1))

    def _strength(self, conditional: float, drop: float | None) -> float:
        """The effect in this sequence if it was measured and is there; else the one in the most telling contexts.

        Zero where the two point in opposite directions: the test spoke for one, a few draws for the other.
        """
        if drop is None or abs(drop) < min(abs(conditional), self.config.delta):
            return conditional
        return drop if drop * conditional > 0 else 0.0

    def _verdict(self, q: float, strength: float, interval: tuple[float, float]) -> Verdict:
        if q <= self.config.alpha and abs(strength) >= self.config.delta:
            return "cause" if strength > 0 else "inhibitor"
        if -self.config.delta <= interval[0] and interval[1] <= self.config.delta:
            return "no effect"
        return "not resolvable"

    def _speaks_for(self, share: float | None, fall: float) -> bool:
        """Does a measured fall agree with the slopes that made an event a finalist, where no test tells?"""
        return share is not None and share > 0 and not self.config.tested_only and fall >= FALL

    def _screened(self, t: int, k: int, far: Differences) -> EventEvidence:
        small = -self.config.delta <= far.low[k] and far.high[k] <= self.config.delta
        return EventEvidence(
            event=self.names[t],
            positions=self.subject.places[t],
            verdict="no effect" if small else "not resolvable",
            effect=float(far.effects[k]),
            se=far.error(k),
            n_kept=int(far.kept[k]),
            n_replaced=int(far.replaced[k]),
        )


def measured_fall(probability: float, effect: float, alone: float | None, jointly: float | None) -> float:
    """By which share of themselves the odds of a label fall without an event.

    Taken out alone or with its stand-in; over the contexts, where it was not taken out. Odds are what count, so labels
    that the model doubts have causes too, and so have those that it is sure of.

    >>> round(measured_fall(0.99, 0.2, 0.01, None), 2), measured_fall(0.5, 0.1, -0.2, None)
    (0.51, 0.0)
    """
    return float(odds_fall(probability, effect if alone is None else max(alone, jointly or 0.0)))


def _turning(item: EventEvidence) -> str | None:
    """A flag for an accepted event whose mean effect over contexts points the other way than its verdict."""
    turned = (item.verdict == "cause" and item.effect < 0) or (item.verdict == "inhibitor" and item.effect > 0)
    return f"the direction of {item.event} depends on the context" if turned else None
