"""Which event types of a sequence deserve a close look for a label, and how often to replace them there.

Nothing here decides a verdict: finalists are tested in fresh contexts, so a poor choice costs recall, never validity.
"""

from __future__ import annotations

import numpy as np
import torch

from oscar_causal.density.interface import LabelDensity
from oscar_causal.discovery.contexts import Bool, Float64, Int64
from oscar_causal.discovery.significance import leading_columns, standardised
from oscar_causal.discovery.subject import Stage, Subject


def choose_finalists(subject: Subject, screen: Stage, moves: Float64, label: int, count: int) -> Int64:
    """The `count` types of a sequence that one label is tested on."""
    ranked = alternate(rank_types(screen, label), np.argsort(-moves, kind="stable"))
    return ranked[subject.testable[ranked]][:count]


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
