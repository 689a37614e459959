"""Direct effects of event types on P(label), with everything else in the sequence, past and future, as context.

1. *Screen*: N1 contexts replace every present type independently with a small probability.
2. *Focus*: the finalists of each label alone are replaced, with a probability fitted to the size of the boundary, in
   fresh contexts. Tests (`significance`) use these contexts only, so choosing finalists costs no validity.
3. *Pairs*: the sequence with and without a finalist (and without pairs of them): the effect in this very sequence.

All replacement draws come from Tf_x given the observed past, conditioned on "none of the types present", so a replaced
type is absent, and the draw at a position does not depend on any mask.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oscar_causal.density.interface import LabelDensity
from oscar_causal.discovery.boundary import EventEvidence, Verdict
from oscar_causal.discovery.cmi import paired_cmi
from oscar_causal.discovery.contexts import Bool, Float64, Int64, Stream
from oscar_causal.discovery.finalists import choose_finalists, focus_rates, forecast_moves
from oscar_causal.discovery.significance import ColumnTest, benjamini_hochberg, bounded_interval, column_test
from oscar_causal.discovery.subject import Stage, Subject, respond, run_stage
from oscar_causal.errors import UsageError

FIXED = 4
"""Contexts every sequence needs: as it is, its forecast along the way, and twice with its ties shuffled."""


TIE_FLAG = "order inside a timestamp matters"


@dataclass(frozen=True)
class InterventionConfig:
    """Settings of the `intervention` estimator."""

    contexts: int = 64
    """N: most forward passes for one sequence."""
    alpha: float = 0.05
    """False discovery rate within one (sequence, label)."""
    delta: float = 0.05
    """Tests ask whether an effect on P(label) is larger than this; smaller ones do not make an event a cause."""
    screen_rate: float = 0.15
    """Probability of replacing a type while screening."""
    finalists: int | None = None
    """Types per label that are looked at closely; by default a sixteenth of the contexts and four more."""
    redraws: int = 2000
    """Redraws of a mask column per test; bounds the smallest p-value."""
    shuffle_ties: bool = True
    """Shuffle events with one timestamp, so that their stored order cannot decide."""

    def __post_init__(self) -> None:
        if self.contexts < 16:
            raise UsageError(f"contexts: the intervention estimator needs at least 16, got {self.contexts}")
        if not 0 < self.alpha < 1:
            raise UsageError(f"alpha: expected between 0 and 1, got {self.alpha}")
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
    def budget(self) -> tuple[int, int, int]:
        """Contexts of screen, focus and pairs; `FIXED` more show the sequence as it is, its forecast, and its ties."""
        pairs = max(4, self.contexts // 6)
        screen = max(4, self.contexts // 6)
        return screen, self.contexts - pairs - screen - FIXED, pairs


@dataclass(frozen=True)
class Focus:
    """Tests of one label's finalists (indices into the types of the sequence)."""

    finalists: Int64
    tests: ColumnTest
    q_values: Float64


@dataclass(frozen=True)
class LabelEvidence:
    """What all stages found for one label."""

    observed: float
    evidence: tuple[EventEvidence, ...]
    flags: tuple[str, ...]


def explain(
    model: LabelDensity, subject: Subject, labels: Int64, names: list[str], config: InterventionConfig
) -> tuple[list[LabelEvidence], int]:
    """Evidence for each label, and the number of contexts spent. `names` are the event names of `subject.types`."""
    screen_n, focus_n, pair_n = config.budget
    count = len(subject.types)
    observed = respond(model, subject, np.zeros((1, count), bool), labels, "observed", shuffled=False)[0]  # (Y',)
    unchanged, tie_contexts = shuffled_reference(model, subject, labels, observed)  # (1 or 2, Y')
    reference = unchanged.mean(0)
    uniforms = Stream(subject.seed, subject.sequence_id, "mask").uniforms(screen_n + focus_n, count)
    screen_rates = np.where(subject.testable, config.screen_rate, 0.0)
    screen = run_stage(model, subject, labels, uniforms[:screen_n], screen_rates, "screen")
    moves = forecast_moves(model, subject, labels)  # (K, Y')
    finalists = [choose_finalists(subject, screen, moves[:, j], j, config.finalist_count) for j in range(len(labels))]
    rates = focus_rates(screen, reference, finalists, config.screen_rate)
    focus = run_stage(model, subject, labels, uniforms[screen_n:], rates, "focus")
    redraws = Stream(subject.seed, subject.sequence_id, "redraw").uniforms(config.redraws, focus_n)
    tested = [_test(focus, j, chosen, redraws, config.delta) for j, chosen in enumerate(finalists)]
    alone, spent = leave_one_out(model, subject, labels, tested, pair_n)
    hangs = np.abs(unchanged - observed).max(0) > config.delta
    results = []
    for j in range(len(labels)):
        judge = _Judge(subject, names, config, screen, focus, j, float(reference[j]))
        flags = (TIE_FLAG,) if hangs[j] else ()
        results.append(LabelEvidence(float(observed[j]), judge.all_evidence(tested[j], alone[j]), flags))
    return results, 2 + screen_n + focus_n + spent + tie_contexts


def shuffled_reference(model: LabelDensity, subject: Subject, labels: Int64, observed: Float64) -> tuple[Float64, int]:
    """P(label) with nothing replaced, in two random orders inside the timestamps, and the contexts spent on it.

    Without ties it is the observed one. Effects are measured against it, so the stored order of tied events is not
    what they are about.
    """
    if subject.ties is None:
        return observed[None, :], 0
    return respond(model, subject, np.zeros((2, len(subject.types)), bool), labels, "ties"), 2


def _test(focus: Stage, label: int, finalists: Int64, redraws: Float64, delta: float) -> Focus:
    masks = focus.masks[:, finalists].astype(float)
    tests = column_test(focus.outcomes[:, label], masks, focus.rates[finalists], redraws, delta=delta)
    return Focus(finalists, tests, benjamini_hochberg(tests.p_values))


def leave_one_out(
    model: LabelDensity, subject: Subject, labels: Int64, tested: list[Focus], budget: int
) -> tuple[list[dict[int, Float64]], int]:
    """P(label) with one finalist replaced and all else as observed: {type: draws} for each label.

    The budget goes to the finalists by rising p-value, the labels taking turns; what is left buys second draws.
    """
    queue: list[int] = []
    orders = [focus.finalists[np.argsort(focus.tests.p_values, kind="stable")] for focus in tested]
    for rank in range(max((len(order) for order in orders), default=0)):
        for order in orders:
            if rank < len(order) and int(order[rank]) not in queue:
                queue.append(int(order[rank]))
    if not queue:
        return [{} for _ in tested], 0
    chosen = (queue * budget)[:budget] if len(queue) < budget else queue[:budget]
    masks = np.zeros((len(chosen), len(subject.types)), bool)
    masks[np.arange(len(chosen)), chosen] = True
    outcomes = respond(model, subject, masks, labels, "alone")  # (budget, Y')
    rows = np.array(chosen)
    alone = [
        {int(t): outcomes[rows == t, j] for t in focus.finalists if (rows == t).any()} for j, focus in enumerate(tested)
    ]
    return alone, len(chosen)


@dataclass(frozen=True)
class _Judge:
    """Turns the stages' figures into evidence for one label."""

    subject: Subject
    names: list[str]
    config: InterventionConfig
    screen: Stage
    focus: Stage
    label: int
    reference: float

    def all_evidence(self, tested: Focus, alone: dict[int, Float64]) -> tuple[EventEvidence, ...]:
        """Evidence for every type of the sequence that may be replaced."""
        rank = {int(t): k for k, t in enumerate(tested.finalists)}
        return tuple(
            self._finalist(t, tested, rank[t], alone.get(t)) if t in rank else self._screened(t)
            for t in np.flatnonzero(self.subject.testable).tolist()
        )

    def _finalist(self, t: int, tested: Focus, k: int, alone: Float64 | None) -> EventEvidence:
        outcome, mask = self.focus.outcomes[:, self.label], self.focus.masks[:, t]
        effect, se = _difference(outcome, mask)
        low, high = bounded_interval(outcome, mask.astype(float), 1 - self.config.alpha)
        q = float(tested.q_values[k])
        drops = None if alone is None else self.reference - alone
        strength = self._strength(float(tested.tests.effects[k]), drops)
        return EventEvidence(
            event=self.names[t],
            positions=self._positions(t),
            verdict=self._verdict(q, strength, (low, high)),
            effect=effect,
            se=se,
            n_kept=int((~mask).sum()),
            n_replaced=int(mask.sum()),
            p_value=float(tested.tests.p_values[k]),
            q_value=q,
            score=float(tested.tests.scores[k]),
            indicator=effect,
            indicator_sd=float(outcome.std(ddof=1)),
            indicator_se=se,
            ci_low=low,
            ci_high=high,
            cmi_nats=None if alone is None else paired_cmi(np.full(len(alone), self.reference), alone),
            alone=None if drops is None else float(drops.mean()),
        )

    def _strength(self, conditional: float, drops: Float64 | None) -> float:
        """The effect in this sequence if it was measured and is there; else the one in the most telling contexts."""
        if drops is not None and abs(drops.mean()) >= min(abs(conditional), self.config.delta):
            return float(drops.mean())
        return conditional

    def _verdict(self, q: float, strength: float, interval: tuple[float, float]) -> Verdict:
        if q <= self.config.alpha and abs(strength) >= self.config.delta:
            return "cause" if strength > 0 else "inhibitor"
        if -self.config.delta <= interval[0] and interval[1] <= self.config.delta:
            return "no effect"
        return "not resolvable"

    def _screened(self, t: int) -> EventEvidence:
        mask = self.screen.masks[:, t]
        outcome = self.screen.outcomes[:, self.label]
        effect, se = _difference(outcome, mask)
        low, high = bounded_interval(outcome, mask.astype(float), 1 - self.config.alpha)
        small = -self.config.delta <= low and high <= self.config.delta
        return EventEvidence(
            event=self.names[t],
            positions=self._positions(t),
            verdict="no effect" if small else "not resolvable",
            effect=effect,
            se=se,
            n_kept=int((~mask).sum()),
            n_replaced=int(mask.sum()),
        )

    def _positions(self, t: int) -> tuple[int, ...]:
        return tuple(np.flatnonzero(self.subject.owner == t).tolist())


def _difference(outcome: Float64, mask: Bool) -> tuple[float, float | None]:
    """Mean kept minus mean replaced, and its standard error (None with fewer than two on a side)."""
    kept, replaced = outcome[~mask], outcome[mask]
    if not len(kept) or not len(replaced):
        return 0.0, None
    effect = float(kept.mean() - replaced.mean())
    if min(len(kept), len(replaced)) < 2:
        return effect, None
    return effect, float(np.sqrt(kept.var(ddof=1) / len(kept) + replaced.var(ddof=1) / len(replaced)))
