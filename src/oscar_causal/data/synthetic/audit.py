"""How well a fleet can be known at best: counts that add up over blocks, and the figures they give.

Bayes: a forecaster who knows the true probability of every label given the whole sequence (and its start) and says yes
above one half. Presence oracle: an explainer who knows every label's true events and names those present, compared with
the events that really brought the label about.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from oscar_causal.data.rules import EventIndex
from oscar_causal.data.synthetic.outcomes import Outcomes, WhyRow, presence
from oscar_causal.data.synthetic.streams import Ints
from oscar_causal.data.synthetic.world import World


@dataclass(frozen=True)
class Audit:
    """Counts of one block or of many; `merge` adds them up."""

    observed: Ints
    """(Y,) labels recorded."""
    lost: Ints
    """(Y,) labels that came about and were not recorded."""
    false: Ints
    """(Y,) labels recorded that did not come about."""
    forecast: Ints
    """(Y,) labels whose true probability is above one half."""
    hits: Ints
    """(Y,) forecast labels that were recorded."""
    pairs: int
    """Recorded (sequence, label) pairs with a reason."""
    precision_sum: float
    recall_sum: float
    decoy_pairs: int
    """Pairs with a present true event of the label that had no part in it."""
    decoy_pairs_several: int
    """Those of them with two or more causes."""
    causes: int
    """Causes of all pairs together."""


def audit(world: World, index: EventIndex, outcomes: Outcomes, start_s: Ints) -> Audit:
    """The counts of one block."""
    forecast = outcomes.chance > 0.5
    oracle = _oracle(world, index, outcomes.why, start_s)
    return Audit(
        observed=outcomes.observed.sum(axis=0),
        lost=(outcomes.came & ~outcomes.observed).sum(axis=0),
        false=(outcomes.observed & ~outcomes.came).sum(axis=0),
        forecast=forecast.sum(axis=0),
        hits=(forecast & outcomes.observed).sum(axis=0),
        pairs=len(oracle),
        precision_sum=float((oracle[:, 0] / oracle[:, 2]).sum()),
        recall_sum=float((oracle[:, 0] / oracle[:, 1]).sum()),
        decoy_pairs=int((oracle[:, 2] > oracle[:, 0]).sum()),
        decoy_pairs_several=int(((oracle[:, 2] > oracle[:, 0]) & (oracle[:, 1] >= 2)).sum()),
        causes=int(oracle[:, 1].sum()),
    )


def merge(audits: Iterable[Audit]) -> Audit:
    """The counts of several blocks together."""
    items = list(audits)
    return Audit(**{name: sum(getattr(item, name) for item in items) for name in Audit.__dataclass_fields__})


def bayes_figures(total: Audit) -> dict[str, float | None]:
    """F1 of the Bayes forecast; macro and weighted over the labels recorded at least once, weighted by their counts."""
    if not total.observed.sum():
        return {"micro_f1": None, "macro_f1": None, "weighted_f1": None}
    seen = total.observed > 0
    f1 = 2 * total.hits[seen] / (total.forecast[seen] + total.observed[seen])
    micro = 2 * total.hits.sum() / (total.forecast.sum() + total.observed.sum())
    return {
        "micro_f1": float(micro),
        "macro_f1": float(f1.mean()),
        "weighted_f1": float((f1 * total.observed[seen]).sum() / total.observed.sum()),
    }


def oracle_figures(total: Audit) -> dict[str, float | int | None]:
    """Precision and recall of the presence oracle averaged over pairs, and F1 of the two averages."""
    if not total.pairs:
        return {"precision": None, "recall": None, "f1": None, "pairs": 0, "decoy_share": None, "causes_per_pair": None}
    precision, recall = total.precision_sum / total.pairs, total.recall_sum / total.pairs
    return {
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / (precision + recall),
        "pairs": total.pairs,
        "decoy_share": total.decoy_pairs / total.pairs,
        "decoy_share_several_causes": total.decoy_pairs_several / total.pairs,
        "causes_per_pair": total.causes / total.pairs,
    }


def _oracle(world: World, index: EventIndex, why: tuple[WhyRow, ...], start_s: Ints) -> Ints:
    """(pairs, 3) for each pair: causes that are true events of the label and present; causes; present true events."""
    causes: dict[tuple[int, int], set[int]] = {}
    for item in why:
        if item.role == "cause":
            causes.setdefault((item.row, item.label), set()).add(item.event)
    counts = np.zeros((len(causes), 3), np.int64)
    by_law: dict[int, list[tuple[int, int]]] = {}
    for number, (row, label) in enumerate(causes):
        law = label if start_s[row] < world.change_s[label] else int(world.later[label])
        by_law.setdefault(law, []).append((number, row))
    keys = list(causes)
    for law, places in by_law.items():
        events = world.laws[law].causes
        here = presence(world, index, events)
        for number, row in places:
            named = {event for event, present in zip(events, here[row].tolist(), strict=True) if present}
            counts[number] = len(named & causes[keys[number]]), len(causes[keys[number]]), len(named)
    return counts
