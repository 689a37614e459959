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
from oscar_causal.discovery.subject import Subject, respond, respond_at

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
    removed = [Removed() for _ in tested]
    spent = remove_one(model, subject, labels, tested, removed, max(2, 2 * budget // 3))
    spent += remove_two(model, subject, labels, tested, removed, reference, delta, (budget - spent + 1) // 2)
    spent += tell_occurrences(model, subject, labels, tested, removed, reference, delta, budget - spent)
    return removed, spent


def remove_one(
    model: LabelDensity, subject: Subject, labels: Int64, tested: list[Focus], removed: list[Removed], budget: int
) -> int:
    """Take out one finalist each: by rising p-value, the labels taking turns; what is left buys second draws."""
    queue: dict[int, None] = {}
    orders = [focus.finalists[np.argsort(focus.tests.p_values, kind="stable")] for focus in tested]
    for rank in range(max((len(order) for order in orders), default=0)):
        queue.update(dict.fromkeys(int(order[rank]) for order in orders if rank < len(order)))
    if not queue:
        return 0
    types = list(queue)
    chosen = np.array((types * 2)[:budget])
    masks = np.zeros((len(chosen), len(subject.types)), bool)
    masks[np.arange(len(chosen)), chosen] = True
    outcomes = respond(model, subject, masks, labels, "alone")  # (M, Y')
    for j, focus in enumerate(tested):
        removed[j].alone.update({int(t): outcomes[chosen == t, j] for t in focus.finalists if (chosen == t).any()})
    return len(chosen)


def remove_two(  # noqa: PLR0913
    model: LabelDensity,
    subject: Subject,
    labels: Int64,
    tested: list[Focus],
    removed: list[Removed],
    reference: Float64,
    delta: float,
    budget: int,
) -> int:
    """Take out pairs of promising finalists without which, one by one, P(label) hardly falls."""
    wanted: list[tuple[int, int, int]] = []
    for j, focus in enumerate(tested):
        order = np.argsort(focus.tests.p_values, kind="stable")
        quiet = [
            int(focus.finalists[k])
            for k in order
            if focus.tests.p_values[k] <= PROMISING
            and abs(removed[j].drop(int(focus.finalists[k]), float(reference[j])) or 0.0) < delta
            and int(focus.finalists[k]) in removed[j].alone
        ]
        wanted += [(j, a, b) for a, b in combinations(quiet, 2)]
    pairs = list(dict.fromkeys((a, b) for _, a, b in wanted))[: max(budget, 0)]
    if not pairs:
        return 0
    masks = np.zeros((len(pairs), len(subject.types)), bool)
    for row, pair in enumerate(pairs):
        masks[row, list(pair)] = True
    outcomes = respond(model, subject, masks, labels, "pair")  # (M, Y')
    for j, a, b in wanted:
        if (a, b) in pairs:
            _note_pair(removed[j], (a, b), float(outcomes[pairs.index((a, b)), j]), float(reference[j]), delta)
    return len(pairs)


def _note_pair(removed: Removed, pair: tuple[int, int], without: float, reference: float, delta: float) -> None:
    """Remember for each of the two the partner without which P(label) falls furthest."""
    for t, other in (pair, pair[::-1]):
        if abs(reference - without) < delta:
            continue
        if t not in removed.partner or abs(reference - without) > abs(reference - removed.without_both[t]):
            removed.partner[t], removed.without_both[t] = other, without


def tell_occurrences(  # noqa: PLR0913
    model: LabelDensity,
    subject: Subject,
    labels: Int64,
    tested: list[Focus],
    removed: list[Removed],
    reference: Float64,
    delta: float,
    budget: int,
) -> int:
    """For repeated finalists with an effect of their own: keep one occurrence, replace the others."""
    repeated = np.flatnonzero(np.bincount(subject.owner, minlength=len(subject.types)) > 1)
    effects = {
        (j, t): drop
        for j, part in enumerate(removed)
        for t in part.alone
        if t in repeated and abs(drop := part.drop(t, float(reference[j])) or 0.0) >= delta
    }
    rows = [
        (t, int(position))
        for t in dict.fromkeys(t for _, t in effects)
        for position in np.flatnonzero(subject.owner == t)[-MOST_OCCURRENCES:]
    ][: max(budget, 0)]
    if not rows:
        return 0
    masks = np.array([(subject.owner == t) & (np.arange(len(subject.owner)) != at) for t, at in rows])  # (M, L)
    outcomes = respond_at(model, subject, masks, labels, "occurrence")  # (M, Y')
    for (j, t), drop in effects.items():
        mine = [k for k, (owner, _) in enumerate(rows) if owner == t]
        enough = [rows[k][1] for k in mine if (reference[j] - outcomes[k, j]) * np.sign(drop) < abs(drop) / 2]
        if mine:
            removed[j].mattered[t] = tuple(enough)
    return len(rows)
