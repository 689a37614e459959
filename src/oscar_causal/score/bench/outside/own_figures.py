"""Figures that the fields of the outside sets use: single occurrences, edges between types, rankings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from oscar_causal.data.metrics import harmonic
from oscar_causal.score.bench.ladder.interface import Answer, Answers, Positions, Truth
from oscar_causal.score.bench.ladder.scoring import NOTHING
from oscar_causal.score.matching import Pair, match, summarise

Edge = tuple[str, str]
"""(label, event type)."""


def occurrence_figures(answers: Answers, truth: Truth, occurrences: Callable[[Pair], Positions]) -> float:
    """F1 of mean precision and mean recall over single occurrences; `occurrences`: where each type is in a sequence."""
    found, causes = {}, {}
    for pair, reasons in truth.items():
        if reasons.positions is not None:
            answer, there = answers.get(pair, NOTHING), occurrences(pair)
            said = {event: answer.positions.get(event) or there.get(event, frozenset()) for event in answer.causes}
            found[pair], causes[pair] = _flat(said), _flat(reasons.positions)
    return float(summarise(match(found, causes))["sample"]["f1_of_means"])


def _flat(positions: Positions) -> frozenset[str]:
    return frozenset(f"{place} {event}" for event, places in positions.items() for place in places)


def edges_named(answers: Answers, present: Mapping[Pair, frozenset[str]]) -> set[Edge]:
    """Edges (label, type): the type is named in at least half of the scored pairs of the label that hold it."""
    votes: dict[Edge, list[bool]] = {}
    for pair, events in present.items():
        answer = answers.get(pair, NOTHING)
        for event in events:
            votes.setdefault((pair[1], event), []).append(event in answer.causes)
    return {edge for edge, cast in votes.items() if 2 * sum(cast) >= len(cast)}


def edge_figures(found: set[Edge], true: set[Edge]) -> dict[str, float]:
    """Precision, recall and F1 of edges between types."""
    hits = len(found & true)
    precision, recall = (hits / len(part) if part else 0.0 for part in (found, true))
    return {"edge precision": precision, "edge recall": recall, "edge F1": harmonic(precision, recall)}


def ranking(answers: Iterable[Answer], unit: Callable[[str], str]) -> list[str]:
    """Units by their best score in any of the answers, strongest first; equal ones by name."""
    best: dict[str, float] = {}
    for answer in answers:
        for event, score in answer.scores.items():
            best[unit(event)] = max(score, best.get(unit(event), -np.inf))
    return sorted(best, key=lambda name: (-best[name], name))


def average_precision_at(k: int, ranked: Sequence[str], true: frozenset[str]) -> float:
    """Sum over the true ones among the first k of the precision at their rank, divided by min(k, number of true ones).

    >>> average_precision_at(3, ["a", "x", "b"], frozenset("ab"))
    0.8333333333333333
    """
    hits = [rank for rank, name in enumerate(ranked[:k], 1) if name in true]
    return sum((place + 1) / rank for place, rank in enumerate(hits)) / min(k, len(true))
