"""The two-groups model behind `fused`: each (sequence, label, event) either is a cause here or is not.

    H(sequence, label, event) ~ Bernoulli(prior)
    prior                     = 1 - (1 - acted) * (1 - rate * outside)
    rate of the pair          ~ Beta(k * m, k * (1 - m))              m = mean rate of the pair's class
    log likelihood ratio      = log e(p) + log f1(response) / f0(response)

acted, outside: what observed labels say here (`reading`): did the event act, and how likely did the label come by a way
that the classical boundary does not know? Without a reading, 0 and 1. So the label is a mixture of two stories: a known
way, in which members acted or did not and all others are bystanders; and, with probability `outside`, an unknown one,
in which an event of which the fleet knows nothing has the rate of its class, whose mean is then given and not learnt
(what happens where the fleet has not been cannot be learnt from it), and its own evidence decides.

f1, f0: how causes answer to a close look, and how others do. Where labels were read, they alone tell: f1 is the answers
of events in proportion to their prior, f0 those of members and of bystanders in proportion to what is left; nothing is
learnt from the model's own verdicts, which would confirm themselves. Without a reading f0 is that of control events,
which nothing speaks for, and f1 and the rates are learnt by expectation-maximisation. A larger response never speaks
less for a cause. p: the p-value of the one-shot test; e(p) = 1 / (2 sqrt(p)) turns it into an e-value, whose mean is at
most 1 when there is no effect: nothing to fit, nothing to overstate. Test and look ask the same model, which learnt
from the labels that were read: where there are all three, e(p) counts half. Of events outside a boundary that was read
(and of labels without one, beside others that have one) the grade of the one-shot evidence speaks instead, its f1 and
f0 learnt likewise: finalists are chosen by slopes, and which bystanders they take for causes is seen where nobody is
in doubt.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from oscar_causal.discovery.cells import (
    CELLS,
    GRADES,
    P_VALUE_EDGES,
    RANGES,
    RESPONSES,
    grades,
    is_looked,
    is_tested,
    p_value_bins,
    ranges,
    response_bins,
)

Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]

PRIOR_SEQUENCES = 2.0
"""k: the class mean weighs as much as so many sequences of the pair."""
SMOOTHING = 10.0
"""Each table starts with so many imagined sequences per range of P(label), spread by the guesses below."""
NULL_RESPONSES = np.array([0.9, 0.05, 0.03, 0.01, 0.01])
CAUSE_RESPONSES = np.array([[0.6, 0.1, 0.1, 0.1, 0.1], [0.2, 0.1, 0.15, 0.25, 0.3], [0.2, 0.05, 0.1, 0.15, 0.5]])
"""(RANGES, RESPONSES): where the model sees the label, taking a cause out mostly takes the label away.

Where no labels were read, the first column, how often a cause does not answer at all (a stand-in was not found, the
model errs), stays as it is: a silent cause and no cause look alike, so looks cannot tell."""
NULL_GRADES, CAUSE_GRADES = np.array([0.97, 0.015, 0.008, 0.004, 0.003]), np.array([0.2, 0.1, 0.15, 0.25, 0.3])
"""(GRADES,) first guesses: of events outside a boundary few are finalists, most causes are."""
LARGEST_LOG_RATIO = 7.0
"""No cell moves the odds by more than exp(7), about 1,000: tables fitted to finite fleets know no certainty."""
GROUPS = ("label not read", "member", "no member")
"""Of a pair: are there readings of its label (`reading`), and is the event in the boundary that is read?"""
NOT_READ, MEMBER, NO_MEMBER = range(3)
CLASSES = tuple(
    f"{classical}, {pooled}, {label} label"
    for classical in ("no classical boundary", "classical member", "no classical member")
    for pooled in ("pooled effect unclear", "pooled effect")
    for label in ("common", "rare")
)
"""What other sources say of a pair: the classical boundary, the pooled interventions, how often the label is met."""
RARE = 100
"""Labels with fewer sequences are rare."""
FIRST_MEANS = np.repeat([0.1, 0.5, 0.3, 0.7, 0.02, 0.4], 2)
MAX_ROUNDS = 100
TOLERANCE = 1e-4
TINY = 1e-9


@dataclass(frozen=True)
class PairCells:
    """Counts of cells: row r says that pair `pair[r]` was met `count[r]` times in cell `cell[r]`."""

    pair: Int64
    cell: Int64
    count: Float64
    classes: Int64
    """(pairs,) index into `CLASSES`."""
    controls: Float64
    """(CELLS,) how often looks at control events fell into each cell."""
    said: Said | None = None
    """What observed labels say; None = nothing."""


@dataclass(frozen=True)
class Said:
    """What observed labels say of each row of the cells, and which pairs they suspect."""

    acted: Float64
    """(rows,)"""
    outside: Float64
    """(rows,)"""
    outside_classes: Int64
    """(pairs,) index into `CLASSES` for the rate of labels from outside the boundary."""
    groups: Int64
    """(pairs,) index into `GROUPS`."""


@dataclass(frozen=True)
class TwoGroups:
    """A fitted model."""

    log_ratios: Float64
    """(GROUPS, CELLS) log of P(cell | cause) / P(cell | no cause)."""
    class_means: Float64
    """(classes,) rate of a pair of which nothing else is known."""
    rates: Float64
    """(pairs,) posterior mean of the rate of each pair: how often it is a cause."""
    outside: Float64
    """(pairs,) the same where the label came from outside the boundary; without a reading the same number."""
    outside_means: Float64
    """(classes,) that of a pair of which nothing else is known."""
    errors: Float64
    """(101,) see `expected_errors`."""


def fit(cells: PairCells) -> TwoGroups:
    """Fit the responses of causes, the class means and the pairs' rates.

    >>> pair, cell = np.repeat([0, 1], 50), np.repeat([86, 82], 50)  # large and no response
    >>> found = fit(PairCells(pair, cell, np.ones(100), np.zeros(2, np.int64), np.zeros(CELLS)))
    >>> bool(found.rates[0] > 0.9 and found.rates[1] < 0.1)
    True
    """
    said = cells.said or _nothing_said(cells)
    group = said.groups[cells.pair]
    rates = _Rates(cells, cells.classes, learn_means=True)
    outside = _Rates(cells, said.outside_classes, learn_means=cells.said is None)
    tables, read = _Tables(cells, group), cells.said is not None
    ratios = tables.read(either(said.acted, outside.values[cells.pair] * said.outside)) if read else tables.guessed()
    weights = np.zeros(len(cells.pair))
    for _ in range(MAX_ROUNDS):
        rate = outside.values[cells.pair]
        chance = rate * said.outside
        prior = either(said.acted, chance)
        updated = posterior(log_odds(prior), ratios[group, cells.cell])
        change = float(np.abs(updated - weights).max(initial=0.0))
        weights = updated
        rates.update(weights, np.ones(len(weights)))
        by_outside = weights * chance / np.maximum(prior, TINY)
        outside.update(by_outside, came_from_outside(by_outside, rate, said.outside))
        if not read:
            ratios = tables.learnt(weights)
        if change < TOLERANCE:
            break
    errors = expected_errors(weights, cells.count)
    return TwoGroups(ratios, rates.means, rates.values, outside.values, outside.means, errors)


class _Tables:
    """Log likelihood ratios of all cells in each group, from how often each was met: (GROUPS, CELLS)."""

    def __init__(self, cells: PairCells, group: Int64) -> None:
        self.cells, self.group = cells, group
        self.met = _by_response(self._counts(1.0))
        self.null = null_responses(cells.controls)

    def guessed(self) -> Float64:
        """Before anything is known."""
        return np.stack([_log_ratios(CAUSE_RESPONSES, self.null, self.met)] * len(GROUPS))

    def learnt(self, weights: Float64) -> Float64:
        """Without a reading, from what is held for causes in each row."""
        cause = _cause_responses(_by_response(self._counts(weights)))
        return np.stack([_log_ratios(cause, self.null, self.met)] * len(GROUPS))

    def read(self, weights: Float64) -> Float64:
        """From what observed labels say: the chance that each row is of a cause."""
        causes = self._counts(weights * (self.group != NOT_READ))  # of the others nobody told anything
        others, bystanders = (self._counts((1 - weights) * (self.group == k)) for k in (MEMBER, NO_MEMBER))
        cause = _shares(_by_response(causes), CAUSE_RESPONSES)
        members = _log_ratios(cause, _shares(_by_response(others), self.null), self.met, half=True)
        graded = _by_grade(causes, bystanders)
        return np.stack([graded, members, graded])

    def _counts(self, weights: Float64 | float) -> Float64:
        return _sums(self.cells.cell, self.cells.count * weights, CELLS)


def _by_grade(causes: Float64, others: Float64) -> Float64:
    """Log likelihood ratio of every cell by its grade alone, which never speaks less the higher it is."""
    cause, other = (_folded(counts, grades(), GRADES) for counts in (causes, others))  # (RANGES, GRADES)
    guesses = (np.broadcast_to(guess, cause.shape) for guess in (CAUSE_GRADES, NULL_GRADES))
    f1, f0 = (_shares(counts, guess) for counts, guess in zip((cause, other), guesses, strict=True))
    return _limited(_rising(np.log(f1) - np.log(f0), cause + other)[ranges(), grades()])


class _Rates:
    """Rates of pairs, shrunk to the means of their classes."""

    def __init__(self, cells: PairCells, classes: Int64, *, learn_means: bool) -> None:
        self.cells, self.classes, self.learn_means = cells, classes, learn_means
        self.means, self.values = FIRST_MEANS.copy(), FIRST_MEANS[classes]

    def update(self, hits: Float64, weights: Float64) -> None:
        """From what is held for causes in each row, and how much each row counts."""
        cells, pairs = self.cells, len(self.classes)
        hit = _sums(cells.pair, cells.count * hits, pairs)
        met = _sums(cells.pair, cells.count * weights, pairs)
        self.values = (PRIOR_SEQUENCES * self.means[self.classes] + hit) / (PRIOR_SEQUENCES + met)
        if self.learn_means:
            self.means = _class_means(hit, met, self.classes)


def _nothing_said(cells: PairCells) -> Said:
    rows = len(cells.pair)
    return Said(np.zeros(rows), np.ones(rows), cells.classes, np.zeros(len(cells.classes), np.int64))


def either(first: Float64, second: Float64) -> Float64:
    """The chance that at least one of two independent things happened."""
    chance: Float64 = 1 - (1 - first) * (1 - second)
    return chance


def came_from_outside(cause: Float64, rate: Float64, outside: Float64) -> Float64:
    """The chance that the label came from outside the boundary, given that of "and this event brought it from there".

    Where the event did, it did come from there; where it did not, Bayes' rule. So a rate, hits over these chances,
    never exceeds 1.

    >>> came_from_outside(np.array([1.0, 0.0]), np.array([0.5, 0.5]), np.array([0.01, 0.5])).round(3).tolist()
    [1.0, 0.333]
    """
    otherwise = outside * (1 - rate) / np.maximum(1 - outside * rate, TINY)
    came: Float64 = cause + (1 - cause) * otherwise
    return came


def posterior(prior_log_odds: Float64, log_ratio: Float64) -> Float64:
    """P(cause | prior, cell) = logistic(prior log odds + log likelihood ratio).

    >>> float(posterior(np.array([0.0]), np.array([0.0]))[0])
    0.5
    """
    value: Float64 = 1 / (1 + np.exp(-(prior_log_odds + log_ratio)))
    return value


def log_odds(rates: Float64) -> Float64:
    """log(rate / (1 - rate)), rates kept a millionth away from 0 and 1."""
    clipped = np.clip(rates, 1e-6, 1 - 1e-6)
    odds: Float64 = np.log(clipped / (1 - clipped))
    return odds


def expected_errors(posteriors: Float64, counts: Float64) -> Float64:
    """Expected share of non-causes among the events with a posterior of at least k %, for k = 0 to 100: (101,).

    Where there are no such events, what one of just this posterior would have.

    >>> expected_errors(np.array([0.9, 1.0, 0.4]), np.ones(3))[[0, 40, 41, 90, 95, 100]].round(3).tolist()
    [0.233, 0.233, 0.05, 0.05, 0.0, 0.0]
    """
    steps = np.arange(101) / 100
    above = posteriors[:, None] >= steps - TINY
    number = counts @ above
    errors: Float64 = np.where(number > 0, (counts * (1 - posteriors)) @ above / np.maximum(number, TINY), 1 - steps)
    return errors.round(6)


def e_values() -> Float64:
    """Mean of e(p) = 1 / (2 sqrt(p)) over each bin of p-values, weakest evidence first: (P_VALUES,).

    >>> e_values().round(1).tolist()
    [0.6, 1.0, 2.1, 4.4, 9.8, 31.6]
    """
    upper, lower = np.array((1.0, *P_VALUE_EDGES)), np.array((*P_VALUE_EDGES, 0.0))
    values: Float64 = (np.sqrt(upper) - np.sqrt(lower)) / (upper - lower)
    return values


def null_responses(controls: Float64) -> Float64:
    """f0: share of each response among control events, by range of P(label): (RANGES, RESPONSES)."""
    return _shares(_by_response(controls), np.broadcast_to(NULL_RESPONSES, (RANGES, RESPONSES)))


def _shares(counts: Float64, guess: Float64) -> Float64:
    shares: Float64 = (counts + SMOOTHING * guess) / (counts.sum(1, keepdims=True) + SMOOTHING)
    return shares


def _cause_responses(counts: Float64) -> Float64:
    """f1 without a reading: learnt shares of the answers, the share of silent causes being given."""
    silent = CAUSE_RESPONSES[:, :1]
    answers = _shares(counts[:, 1:], CAUSE_RESPONSES[:, 1:] / (1 - silent))
    return np.concatenate([silent, (1 - silent) * answers], axis=1)


def _by_response(counts: Float64) -> Float64:
    """Counts of cells with a response, added up by range and response: (RANGES, RESPONSES)."""
    return _folded(np.where(is_looked(), counts, 0.0), response_bins(), RESPONSES)


def _folded(counts: Float64, axis: Int64, size: int) -> Float64:
    """Counts of all cells, added up by range of P(label) and place on an axis: (RANGES, size)."""
    return _sums(ranges() * size + axis, counts, RANGES * size).reshape(RANGES, size)


def _rising(ratios: Float64, met: Float64) -> Float64:
    """The nearest rows that never fall (weights: how often each place was met)."""
    from scipy.optimize import isotonic_regression  # 0.15 s to import, and `discover` seldom needs it

    return np.stack([isotonic_regression(row, weights=w + 1.0).x for row, w in zip(ratios, met, strict=True)])


def _log_ratios(cause: Float64, null: Float64, met: Float64, *, half: bool = False) -> Float64:
    """Log likelihood ratio of every cell by p-value and response; `half`: beside a response e(p) counts half."""
    by_response = _rising(np.log(cause) - np.log(null), met)
    ratios = np.where(is_tested(), np.log(e_values())[p_value_bins()], 0.0)
    ratios *= np.where(is_looked() & half, 0.5, 1.0)
    ratios += np.where(is_looked(), by_response[ranges(), response_bins()], 0.0)
    return _limited(ratios)


def _limited(ratios: Float64) -> Float64:
    """Ratios of all cells, none too large; where the model does not see the label, its answers are worth nothing."""
    limited: Float64 = np.where(ranges() == 0, 0.0, np.clip(ratios, -LARGEST_LOG_RATIO, LARGEST_LOG_RATIO))
    return limited.round(4)  # no table is known better, and files stay small


def _sums(index: Int64, values: Float64, size: int) -> Float64:
    return np.bincount(index, values, size).astype(np.float64)


def _class_means(hit: Float64, met: Float64, classes: Int64) -> Float64:
    """Mean rate of the pairs of each class, each pair weighing met / (met + k); the first guess counts as one more.

    A pair that was hardly met says hardly anything: it must not confirm the mean it was given.
    """
    known = met + PRIOR_SEQUENCES
    hits, weights = (np.bincount(classes, part / known, len(CLASSES)) for part in (hit, met))
    means: Float64 = (hits + FIRST_MEANS) / (weights + 1)
    return means
