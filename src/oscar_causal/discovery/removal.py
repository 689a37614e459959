"""What this very sequence loses without a finalist: taken out alone, in pairs, or all but one of its occurrences.

Each context is paired with the sequence as it is (or with one that lacks the partner only): here the analyst decides
what is present, so the conditional mutual information is identified.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from oscar_causal.density.interface import LabelDensity
from oscar_causal.discovery.cmi import paired_cmi
from oscar_causal.discovery.contexts import Float64, Int64
from oscar_causal.discovery.looks import Focus
from oscar_causal.discovery.subject import Subject, respond_at, without

PROMISING = 0.25
"""Finalists with a p-value up to this are taken out in pairs when nothing happens without one of them."""
MOST_OCCURRENCES = 6
"""Of a type that occurs more often the last ones are told apart."""


@dataclass
class Removed:
    """What became of one label. Types are indices into the types of the sequence."""

    alone: dict[int, Float64] = field(default_factory=dict)
    """P(label) without the type, one number for each draw."""
    partner: dict[int, int] = field(default_factory=dict)
    """The type that stands in for it."""
    without_both: dict[int, float] = field(default_factory=dict)
    """P(label) without the type and its partner."""
    mattered: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Positions that suffice: with this occurrence alone P(label) keeps more than half of what the type is worth."""

    def drop(self, t: int, reference: float) -> float | None:
        """Fall of P(label) without the type."""
        return float(reference - self.alone[t].mean()) if t in self.alone else None

    def cmi(self, t: int, reference: float) -> float | None:
        """I(label; type kept or removed), all else as observed; without the partner where there is one."""
        if t in self.partner:
            kept = self.alone[self.partner[t]].mean()
            return paired_cmi(np.array([kept]), np.array([self.without_both[t]]))
        return paired_cmi(np.full(len(self.alone[t]), reference), self.alone[t]) if t in self.alone else None


def remove_finalists(  # noqa: PLR0913 - a stage of the estimator
    model: LabelDensity,
    subject: Subject,
    labels: Int64,
    tested: list[Focus],
    reference: Float64,
    *,
    delta: float,
    budget: int,
) -> tuple[list[Removed], int]:
    """Take finalists out alone, those with a stand-in in pairs, and tell occurrences apart; contexts spent."""
    stage = _Removal(model, subject, labels, tested, reference, delta, [Removed() for _ in tested])
    spent = stage.one(max(2, 2 * budget // 3, min(budget, len({int(t) for part in tested for t in part.finalists}))))
    spent += stage.two((budget - spent + 1) // 2)
    spent += stage.occurrences(budget - spent)
    return stage.removed, spent


@dataclass(frozen=True)
class _Removal:
    """The stage at work on one sequence; each step returns the contexts it has spent."""

    model: LabelDensity
    subject: Subject
    labels: Int64
    tested: list[Focus]
    reference: Float64
    delta: float
    removed: list[Removed]

    def one(self, budget: int) -> int:
        """Take out one finalist each: by rising p-value, the labels taking turns; what is left buys second draws."""
        queue: dict[int, None] = {}
        orders = [focus.finalists[np.argsort(focus.tests.p_values, kind="stable")] for focus in self.tested]
        for rank in range(max((len(order) for order in orders), default=0)):
            queue.update(dict.fromkeys(int(order[rank]) for order in orders if rank < len(order)))
        if not queue:
            return 0
        chosen = np.array((list(queue) * 2)[:budget])
        outcomes = without(self.model, self.subject, chosen[:, None], self.labels, "alone")  # (M, Y')
        for j, focus in enumerate(self.tested):
            answers = {int(t): outcomes[chosen == t, j] for t in focus.finalists if (chosen == t).any()}
            self.removed[j].alone.update(answers)
        return len(chosen)

    def two(self, budget: int) -> int:
        """Take out pairs of promising finalists without which, one by one, P(label) hardly falls."""
        wanted = [(j, pair) for j in range(len(self.tested)) for pair in combinations(self._quiet(j), 2)]
        pairs = list(dict.fromkeys(pair for _, pair in wanted))[: max(budget, 0)]
        if not pairs:
            return 0
        outcomes = without(self.model, self.subject, pairs, self.labels, "pair")  # (M, Y')
        for j, pair in wanted:
            if pair in pairs:
                left, reference = float(outcomes[pairs.index(pair), j]), float(self.reference[j])
                _note_pair(self.removed[j], pair, left, reference, self.delta)
        return len(pairs)

    def occurrences(self, budget: int) -> int:
        """For repeated finalists with an effect of their own: keep one occurrence, replace the others."""
        owner = self.subject.owner
        repeated = np.flatnonzero(np.bincount(owner, minlength=len(self.subject.types)) > 1)
        drops = {(j, t): self._drop(j, t) for j, part in enumerate(self.removed) for t in part.alone if t in repeated}
        effects = {key: drop for key, drop in drops.items() if abs(drop) >= self.delta}
        types = dict.fromkeys(t for _, t in effects)
        rows = [(t, int(at)) for t in types for at in np.flatnonzero(owner == t)[-MOST_OCCURRENCES:]][: max(budget, 0)]
        if not rows:
            return 0
        masks = np.array([(owner == t) & (np.arange(len(owner)) != at) for t, at in rows])  # (M, L)
        outcomes = respond_at(self.model, self.subject, masks, self.labels, "occurrence")  # (M, Y')
        for (j, t), drop in effects.items():
            falls = {at: self.reference[j] - outcomes[k, j] for k, (of, at) in enumerate(rows) if of == t}
            if falls:
                enough = (at for at, fall in falls.items() if fall * np.sign(drop) < abs(drop) / 2)
                self.removed[j].mattered[t] = tuple(enough)
        return len(rows)

    def _drop(self, j: int, t: int) -> float:
        return self.removed[j].drop(t, float(self.reference[j])) or 0.0

    def _quiet(self, j: int) -> list[int]:
        """Promising finalists of a label that were taken out and hardly missed, by rising p-value."""
        focus = self.tested[j]
        order = np.argsort(focus.tests.p_values, kind="stable")
        promising = [int(focus.finalists[k]) for k in order if focus.tests.p_values[k] <= PROMISING]
        return [t for t in promising if t in self.removed[j].alone and abs(self._drop(j, t)) < self.delta]


def _note_pair(removed: Removed, pair: tuple[int, int], left: float, reference: float, delta: float) -> None:
    """Remember for each of the two the partner without which P(label) falls furthest."""
    for t, other in (pair, pair[::-1]):
        if abs(reference - left) < delta:
            continue
        if t not in removed.partner or abs(reference - left) > abs(reference - removed.without_both[t]):
            removed.partner[t], removed.without_both[t] = other, left
