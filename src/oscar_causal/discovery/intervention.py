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
import torch

from oscar_causal.density.interface import Contexts, EventDensity, LabelDensity
from oscar_causal.discovery.boundary import EventEvidence, Verdict
from oscar_causal.discovery.cmi import paired_cmi
from oscar_causal.discovery.contexts import (
    Bool,
    Float64,
    Int64,
    Stream,
    draw,
    present_types,
    replace_types,
    shuffle_ties,
    tie_groups,
    without_types,
)
from oscar_causal.discovery.significance import (
    ColumnTest,
    benjamini_hochberg,
    bounded_interval,
    column_test,
    leading_columns,
    standardised,
)
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
class Subject:
    """A sequence under study: what is drawn once and used in all contexts."""

    sequence: Contexts
    sequence_id: str
    seed: int
    event_ids: Int64  # (L,)
    types: Int64  # (K,) distinct event ids
    owner: Int64  # (L,) index into types
    law: torch.Tensor  # (L, V) replacement law
    ties: Int64 | None  # (L,) timestamp numbers, None = leave the order alone
    testable: Bool  # (K,) types that may be replaced


@dataclass(frozen=True)
class Stage:
    """Contexts of one stage: which types were replaced, with which probability, and what became of P(label)."""

    masks: Bool  # (N, K)
    rates: Float64  # (K,)
    outcomes: Float64  # (N, Y')


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


def prepare(
    model: EventDensity,
    sequence: Contexts,
    *,
    sequence_id: str,
    seed: int,
    shuffle: bool,
    excluded: frozenset[int] = frozenset(),
) -> Subject:
    """Compute the replacement law of a sequence once; `excluded` event ids are never replaced."""
    event_ids = sequence.event_ids[0].cpu().numpy()
    types, owner = present_types(event_ids)
    groups = tie_groups(sequence.times.cpu().numpy())
    tied = shuffle and groups[-1] + 1 < len(groups)
    law = without_types(model.event_probs(sequence), types)
    testable = np.array([int(t) not in excluded for t in types])
    return Subject(sequence, sequence_id, seed, event_ids, types, owner, law, groups if tied else None, testable)


def respond(
    model: LabelDensity, subject: Subject, masks: Bool, labels: Int64, purpose: str, *, shuffled: bool = True
) -> Float64:
    """P(label) after the last event with the masked types replaced: masks (N, K) -> (N, Y')."""
    shape = (len(masks), len(subject.event_ids))
    draws = draw(subject.law, Stream(subject.seed, subject.sequence_id, f"draw {purpose}").uniforms(*shape))
    ids = replace_types(subject.event_ids, subject.owner, masks, draws)
    if shuffled and subject.ties is not None:
        tie_stream = Stream(subject.seed, subject.sequence_id, f"tie {purpose}")
        ids = shuffle_ties(ids, subject.ties, tie_stream.uniforms(*shape))
    contexts = Contexts(torch.as_tensor(ids), subject.sequence.times, subject.sequence.channels)
    probs = model.label_probs(contexts, torch.as_tensor(labels), torch.tensor([shape[1]]))  # (N, 1, Y')
    return probs[:, 0].double().cpu().numpy()


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
    screen = _stage(model, subject, labels, uniforms[:screen_n], screen_rates, "screen")
    moves = forecast_moves(model, subject, labels)  # (K, Y')
    finalists = [choose_finalists(subject, screen, moves[:, j], j, config) for j in range(len(labels))]
    rates = focus_rates(screen, reference, finalists, config.screen_rate)
    focus = _stage(model, subject, labels, uniforms[screen_n:], rates, "focus")
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


def choose_finalists(subject: Subject, screen: Stage, moves: Float64, label: int, config: InterventionConfig) -> Int64:
    """The types of a sequence that one label is tested on."""
    ranked = alternate(rank_types(screen, label), np.argsort(-moves, kind="stable"))
    return ranked[subject.testable[ranked]][: config.finalist_count]


def _stage(
    model: LabelDensity, subject: Subject, labels: Int64, uniforms: Float64, rates: Float64, purpose: str
) -> Stage:
    masks = uniforms < rates
    return Stage(masks, rates, respond(model, subject, masks, labels, purpose))


def rank_types(screen: Stage, label: int) -> Int64:
    """Types by how much a label seems to hang on them, most first.

    Adds up the standardised difference over all contexts, the one over contexts that keep the leading types, and how
    low P(label) stays in the best context without the type (a needed event never leaves it high).
    """
    outcome, testable = screen.outcomes[:, label], np.flatnonzero(screen.rates > 0)
    masks, rates = screen.masks[:, testable].astype(float), screen.rates[testable]
    leading = leading_columns(outcome, masks, rates)
    kept: Bool = masks[:, leading].sum(axis=1) == 0
    score = np.abs(standardised(outcome, masks, rates, np.ones(len(outcome), bool)))
    if kept.sum() > 3:
        score = np.maximum(score, np.abs(standardised(outcome, masks, rates, kept)))
    best_without = np.where(masks > 0, outcome[:, None], 0.0).max(0)
    score = score + 2 * np.where((masks > 0).any(0), 1 - best_without / max(outcome.max(), 1e-9), 0.0)
    score[leading] += 10.0
    rest = np.flatnonzero(screen.rates == 0)
    return np.concatenate([testable[np.argsort(-score, kind="stable")], rest])


def forecast_moves(model: LabelDensity, subject: Subject, labels: Int64) -> Float64:
    """How far each type moves the log odds of each label when it arrives, at most over its occurrences: (K, Y').

    One pass. Announcers and symptoms move the forecast as causes do, so this chooses finalists and decides nothing.
    """
    length = len(subject.event_ids)
    probs = model.label_probs(subject.sequence, torch.as_tensor(labels), torch.arange(1, length + 1))[0]  # (L, Y')
    clipped = probs.double().cpu().numpy().clip(1e-4, 1 - 1e-4)
    log_odds = np.log(clipped / (1 - clipped))
    moves = np.abs(np.diff(log_odds, axis=0, prepend=log_odds[:1]))
    largest = np.zeros((len(subject.types), len(labels)))
    np.maximum.at(largest, subject.owner, moves)
    return largest


def alternate(first: Int64, second: Int64) -> Int64:
    """Two rankings of the same items merged by taking turns."""
    turns = np.stack([first, second], axis=1).reshape(-1)
    _, earliest = np.unique(turns, return_index=True)
    return turns[np.sort(earliest)]


def focus_rates(screen: Stage, observed: Float64, finalists: list[Int64], screen_rate: float) -> Float64:
    """Replacement probability of each type in the focus stage: about 1 / (size of the boundary), 0 for all others.

    With rate r and a boundary of s needed events P(label) survives in a share (1 - r)^s of the contexts: solve for s.
    Where nothing falls, events may stand in for each other, and the rate rises to one half.
    """
    rates = np.zeros(screen.masks.shape[1])
    for j, chosen in enumerate(finalists):
        fallen = float(np.clip((screen.outcomes[:, j] < 0.5 * observed[j]).mean(), 0.01, 0.97))
        size = np.log(1 - fallen) / np.log(1 - screen_rate)
        rate = float(np.clip(1 / max(size, 0.1), 0.12, 0.5))
        rates[chosen] = np.where(rates[chosen] > 0, np.minimum(rates[chosen], rate), rate)
    return rates


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
