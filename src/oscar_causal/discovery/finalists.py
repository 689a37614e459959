"""Which event types of a sequence deserve a close look for a label, and how often to replace them there.

Nothing here decides a verdict: finalists are tested in fresh contexts, so a poor choice costs recall, never validity.
A model that can be differentiated ranks its events by slopes (a pass or two forward and back for each label); any other
model by a screen of random contexts and by the moves of the forecast along the sequence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from oscar_causal.density.interface import LabelDensity
from oscar_causal.density.slopes import PASSES, Sloped, has_slopes
from oscar_causal.discovery.boundary import RankedBy
from oscar_causal.discovery.contexts import Bool, Float64, Int64, Stream
from oscar_causal.discovery.significance import leading_columns, standardised
from oscar_causal.discovery.subject import Stage, Subject, run_stage

FADED = (0.05, 0.4)
"""How far all events have faded where slopes are taken; the second where the budget allows: there, events that stand in
for each other no longer do."""
WORTH = 0.4
"""Types with less than this share of the strongest pull are no part of the guessed boundary and not looked at closely.
"""
LARGEST_RATE, SMALLEST_RATE = 0.5, 0.12


@dataclass(frozen=True)
class Ranking:
    """Types of a sequence by promise, for each label."""

    orders: list[Int64]
    """Indices of types, most promising first."""
    sizes: Float64
    """(Y',) guessed number of events that are needed together."""
    spent: int
    """Forward passes, or their worth."""
    screen: Stage | None = None
    """The contexts behind the ranking, where it was made from contexts."""
    pull: Float64 | None = None
    """(K, Y') by how much log odds each type pulls towards the label (below 0: away), where slopes made the ranking."""

    def shares(self, allowed: Bool) -> Float64 | None:
        """The pull of every type as a share of the strongest among those `allowed` (Y', K): (K, Y')."""
        return None if self.pull is None else _of_strongest(np.where(allowed.T, self.pull, 0.0))

    @property
    def ranked_by(self) -> RankedBy:
        """Which of the two ways made it."""
        return "slopes" if self.screen is None else "screen"


def rank(  # noqa: PLR0913 - a stage of the estimator
    model: LabelDensity,
    subject: Subject,
    labels: Int64,
    reference: Float64,
    *,
    budget: int,
    screen_contexts: int,
    screen_rate: float,
) -> Ranking:
    """Rank the types for each label; `reference` is P(label) as things are.

    Slopes cost passes for every label: where `budget` does not pay for one set of them, or the model has none, a screen
    ranks instead, and `ranked_by` says so.
    """
    affordable = budget // (PASSES * len(labels))
    if has_slopes(model) and affordable:
        return rank_by_slopes(model, subject, labels, FADED[:affordable])
    return rank_by_screen(model, subject, labels, reference, contexts=screen_contexts, rate=screen_rate)


def rank_by_slopes(model: Sloped, subject: Subject, labels: Int64, faded: tuple[float, ...]) -> Ranking:
    """Rank by how fast the log odds fall (or rise) as events fade into their replacements.

    The plain mean over the places: where the model is sure, slopes are next to nothing, and so is their voice.
    """
    wanted = torch.as_tensor(labels)
    slopes = model.label_slopes(subject.sequence, wanted, subject.law, faded).double().cpu().numpy()  # (S, L, Y')
    summed = np.zeros((len(subject.types), len(faded), len(labels)))
    np.add.at(summed, subject.owner, slopes.transpose(1, 0, 2))
    pull = summed.mean(1)  # (K, Y')
    orders = [np.argsort(-np.abs(pull[:, j]), kind="stable") for j in range(len(labels))]
    sizes = (_of_strongest(pull) >= WORTH).sum(0).clip(1).astype(float)
    return Ranking(orders, sizes, PASSES * len(faded) * len(labels), pull=pull)


def rank_by_screen(
    model: LabelDensity, subject: Subject, labels: Int64, reference: Float64, *, contexts: int, rate: float
) -> Ranking:
    """Rank by random contexts that replace every type with probability `rate`, and by the moves of the forecast."""
    uniforms = Stream(subject.seed, subject.sequence_id, "screen mask").uniforms(contexts, len(subject.types))
    screen = run_stage(model, subject, labels, uniforms, np.where(subject.testable, rate, 0.0), "screen")
    moves = forecast_moves(model, subject, labels)  # (K, Y')
    orders = [alternate(rank_types(screen, j), np.argsort(-moves[:, j], kind="stable")) for j in range(len(labels))]
    return Ranking(orders, _sizes(screen, reference, rate), contexts + 1, screen)


def choose_finalists(ranking: Ranking, allowed: Bool, count: int) -> list[Int64]:
    """The `count` most promising types for each label among those `allowed` (Y', K), all of them `WORTH` a look.

    What pulls away from the label is a finalist too: it may be an inhibitor. Fewer finalists leave more power to each;
    slopes know nothing of the masks, so the tests keep their promise.
    """
    chosen = [order[allowed[j][order]][:count] for j, order in enumerate(ranking.orders)]
    shares = ranking.shares(allowed)
    return chosen if shares is None else [best[np.abs(shares[best, j]) >= WORTH] for j, best in enumerate(chosen)]


def focus_rates(ranking: Ranking, finalists: list[Int64], count: int) -> Float64:
    """Replacement probability of each of `count` types in the focus stage: about 1 / (size of the boundary).

    0 for types that are no finalists. With s needed events P(label) survives in a share (1 - r)^s of the contexts.
    """
    rates = np.zeros(count)
    for chosen, size in zip(finalists, ranking.sizes, strict=True):
        rate = float(np.clip(1 / max(float(size), 0.1), SMALLEST_RATE, LARGEST_RATE))
        rates[chosen] = np.where(rates[chosen] > 0, np.minimum(rates[chosen], rate), rate)
    return rates


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

    One pass. Announcers and symptoms move the forecast as causes do, so this chooses finalists and decides nothing. The
    first event is measured against nothing and counts as no move.
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


def _sizes(screen: Stage, reference: Float64, rate: float) -> Float64:
    """Solve (1 - rate)^size = share of contexts in which P(label) survived. Where nothing falls, events may stand in
    for each other, and the size comes out near 0.
    """
    fallen = np.clip((screen.outcomes < 0.5 * reference).mean(0), 0.01, 0.97)
    sizes: Float64 = np.log(1 - fallen) / np.log(1 - rate)
    return sizes


def _of_strongest(pulls: Float64) -> Float64:
    """Pulls (K, Y') divided by the strongest one towards the label; where none is, by the strongest one away."""
    towards = pulls.max(0)
    shares: Float64 = pulls / np.where(towards > 0, towards, np.abs(pulls).max(0)).clip(min=1e-12)
    return shares
