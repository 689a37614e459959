"""Puts a label's events into sequences: in the state that counts (active), or in one that does not (decoy)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from oscar_causal.data.synthetic.worlds.features import (
    Burst,
    Chain,
    Dose,
    Excitation,
    Feature,
    Presence,
    PresenceWhere,
    Recency,
    Unanswered,
    Value,
)
from oscar_causal.data.synthetic.worlds.mechanism import Hidden
from oscar_causal.data.synthetic.worlds.occurrences import Float

Rng = np.random.Generator
Planted = tuple[int, float, float]
"""(number of the type among the label's own, seconds, channel value or NaN)."""

MISSING = float("nan")
MISSING_VALUES = 0.1
"""Share of channel values that are not recorded."""


@dataclass(frozen=True)
class Scenarios:
    """How often, and in which states, a label's events are put into a sequence."""

    involved: float
    """Share of sequences that hold anything of the label."""
    active: float
    """Of these, the share with at least one feature in its active state; the rest holds decoys only."""
    decoy: float
    """Of those with an active feature, the share that holds decoys too."""
    second: float
    """Of those with an active feature, the share with a second one."""


@dataclass(frozen=True)
class Independent:
    """Each feature is present with its own frequency, in the active state with probability `active`."""

    frequencies: tuple[float, ...]
    active: float = 1.0


Plan = Scenarios | Independent


@dataclass(frozen=True)
class Sequence:
    """What planting knows of the sequence at hand."""

    end_s: float
    static: Float


def plant(rng: Rng, plan: Plan, features: tuple[Feature, ...], at: Sequence) -> list[Planted]:
    """The events of one label in one sequence."""
    if isinstance(plan, Independent):
        states = [
            (feature, rng.random() < plan.active)
            for feature, chance in zip(features, plan.frequencies, strict=True)
            if rng.random() < chance
        ]
    else:
        states = _scenario(rng, plan, features, at)
    return [event for feature, active in states for event in _PLANTERS[type(feature)](rng, feature, at, active)]


def plant_signs(rng: Rng, hidden: Hidden, on: bool, at: Sequence) -> list[Planted]:
    """The recorded signs of an unrecorded variable."""
    chances = hidden.chances_on if on else hidden.chances_off
    return [
        (sign, _anywhere(rng, at), MISSING)
        for sign, chance in zip(hidden.signs, chances, strict=True)
        if rng.random() < chance
    ]


def _scenario(rng: Rng, plan: Scenarios, features: tuple[Feature, ...], at: Sequence) -> list[tuple[Feature, bool]]:
    if rng.random() >= plan.involved:
        return []
    order = [features[i] for i in rng.permutation(len(features))]
    can = [f for f in order if not isinstance(f, PresenceWhere) or f.holds(at.static[None])[0]]
    cannot = [f for f in order if isinstance(f, PresenceWhere) and f not in can]
    active = (1 + (rng.random() < plan.second)) if rng.random() < plan.active else 0
    chosen = can[:active]
    rest = cannot if cannot or isinstance(order[0], PresenceWhere) else can[active:]
    decoys = 0 if chosen and rng.random() >= plan.decoy else int(rng.integers(1, max(len(rest), 1) + 1))
    return [(f, True) for f in chosen] + [(f, False) for f in rest[:decoys]]


def _anywhere(rng: Rng, at: Sequence) -> float:
    return float(rng.uniform(0, at.end_s))


def _presence(rng: Rng, feature: Any, at: Sequence, active: bool) -> list[Planted]:
    return [(feature.kind, _anywhere(rng, at), MISSING) for _ in range(int(rng.integers(1, 3)))]


def _recency(rng: Rng, feature: Recency, at: Sequence, active: bool) -> list[Planted]:
    nearest, farthest = (0.0, 0.5 * feature.scale_s) if active else (4 * feature.scale_s, at.end_s)
    ages = rng.uniform(nearest, farthest, size=1)
    if active and rng.random() < 0.3:  # an older occurrence of the same type, which does not matter
        ages = np.append(ages, rng.uniform(4 * feature.scale_s, at.end_s))
    return [(feature.kind, at.end_s - float(age), MISSING) for age in ages]


def _excitation(rng: Rng, feature: Excitation, at: Sequence, active: bool) -> list[Planted]:
    count = int(np.ceil(feature.centre)) + int(rng.integers(2, 5))
    last = 0.0 if active else float(rng.uniform(5 * feature.scale_s, at.end_s - feature.scale_s))
    ages = last + np.cumsum(rng.exponential(0.4 * feature.scale_s / count, size=count))  # each repeat triggers the next
    return [(feature.kind, max(at.end_s - float(age), 0.0), MISSING) for age in ages]


def _burst(rng: Rng, feature: Burst, at: Sequence, active: bool) -> list[Planted]:
    count = feature.count + int(rng.integers(0, 2))
    if active:  # the first `count` of them within the window
        gaps = rng.dirichlet(np.full(count, 8.0)) * feature.window_s * float(rng.uniform(0.3, 0.9))
    else:  # any two of them further apart than the window
        gaps = feature.window_s * rng.uniform(1.2, 4.0, size=count)
    times = np.cumsum(gaps)
    begin = rng.uniform(0, max(at.end_s - times[-1], 1.0))
    return [(feature.kind, min(float(begin + t), at.end_s), MISSING) for t in times]


def _dose(rng: Rng, feature: Dose, at: Sequence, active: bool) -> list[Planted]:
    enough = int(np.ceil(feature.centre))
    count = enough + int(rng.integers(1, 4)) if active else int(rng.integers(1, max(enough - 1, 2)))
    return [(feature.kind, _anywhere(rng, at), MISSING) for _ in range(count)]


def _value(rng: Rng, feature: Value, at: Sequence, active: bool) -> list[Planted]:
    margin = float(rng.uniform(0.3, 1.5))
    value = feature.threshold + (margin if active else -margin)
    low = feature.threshold - float(rng.uniform(0.3, 1.5))
    values = [value, low] if rng.random() < 0.3 else [value]
    if not active:
        values = [MISSING if rng.random() < MISSING_VALUES else v for v in values]
    return [(feature.kind, _anywhere(rng, at), v) for v in values]


def _unanswered(rng: Rng, feature: Unanswered, at: Sequence, active: bool) -> list[Planted]:
    w = feature.window_s
    begin = float(rng.uniform(0, at.end_s - 2 * w))
    planted = [(feature.alarm, begin, MISSING)]
    if not active:
        return [*planted, (feature.answer, begin + float(rng.uniform(0.05, 0.9)) * w, MISSING)]
    late = begin + float(rng.uniform(1.2, 4.0)) * w
    return [*planted, (feature.answer, late, MISSING)] if rng.random() < 0.6 and late < at.end_s else planted


def _chain(rng: Rng, feature: Chain, at: Sequence, active: bool) -> list[Planted]:
    gaps = np.array(feature.gaps_s) * rng.uniform(0.1, 0.9, size=len(feature.gaps_s))
    kinds = list(feature.types)
    if not active and rng.random() < 0.5:
        kinds = kinds[1:] + kinds[:1] if rng.random() < 0.5 else kinds[::-1]  # another order
    elif not active:
        late = int(rng.integers(len(gaps)))
        gaps[late] = feature.gaps_s[late] * float(rng.uniform(1.3, 4.0))  # too late
    times = np.concatenate([[0.0], np.cumsum(gaps)])
    begin = rng.uniform(0, max(at.end_s - times[-1], 1.0))
    return [(kind, min(float(begin + t), at.end_s), MISSING) for kind, t in zip(kinds, times, strict=True)]


_PLANTERS: dict[type, Callable[[Rng, Any, Sequence, bool], list[Planted]]] = {
    Presence: _presence,
    PresenceWhere: _presence,
    Recency: _recency,
    Excitation: _excitation,
    Burst: _burst,
    Dose: _dose,
    Value: _value,
    Unanswered: _unanswered,
    Chain: _chain,
}
