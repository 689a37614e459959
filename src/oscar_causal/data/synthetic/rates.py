"""How often things happen in a world: labels, scenarios, events with a role that come alone, the background."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from oscar_causal.data.sequences import Ragged
from oscar_causal.data.synthetic.config import FleetConfig
from oscar_causal.data.synthetic.laws import Law
from oscar_causal.data.synthetic.recipes import BLOCKED_SHARE, GRADED_COMPANY, INHIBITOR_RATE
from oscar_causal.data.synthetic.streams import Floats, Ints, choose, midpoints, permutation
from oscar_causal.errors import UsageError

DRIVER_SHARE = 0.2
"""Share of the sequences under the hidden driver."""
DRIVER_LIFT = 3.0
"""How much more frequent it makes the scenarios of its labels; elsewhere they are rarer, so that the mean stays."""
DRIVEN_EVENTS = 3
"""Harmless driven events in a sequence under the hidden driver."""


@dataclass(frozen=True)
class Roles:
    """Events that go with labels without causing them."""

    precursor_of: Ints
    """(V,) the event that announces each event; -1 = none."""
    symptoms: Ragged
    """The symptoms of each label."""
    driven: Ints
    """Harmless events that the hidden driver makes frequent."""


def graded_success(law: Law) -> float:
    """Probability that a scenario of a graded law brings its label."""
    missed = 0.0
    for chosen, strength in enumerate(law.strengths):
        others = [1 - GRADED_COMPANY * s for number, s in enumerate(law.strengths) if number != chosen]
        missed += (1 - strength) * float(np.prod(others)) / len(law.strengths)
    held_back = float(np.prod([1 - INHIBITOR_RATE * q for q in law.inhibitions]))
    return (1 - missed) * held_back


def planted_rates(
    law: Law, scenarios: float, near_share: float, decoys: float
) -> tuple[dict[int, float], dict[int, float]]:
    """About how often scenarios bring each cause and each blocker of a law, per sequence."""
    causes: dict[int, float] = {}
    share = _route_share(law, GRADED_COMPANY) * (1 - near_share) if law.graded else _route_share(law, decoys)
    for route in law.routes:
        for part in route:
            each = len(part.events) if part.kind == "any" else 1
            for event in part.events:
                causes[event] = causes.get(event, 0.0) + scenarios * share / each
    blocked = INHIBITOR_RATE if law.graded else near_share * BLOCKED_SHARE
    return causes, {event: scenarios * blocked for event in law.blockers}


def _route_share(law: Law, others: float) -> float:
    """How often a scenario brings a given route, when each of the others joins the chosen one this often."""
    return (1 + (len(law.routes) - 1) * others) / len(law.routes)


def frequencies(spread: float, total: float, count: int) -> Floats:
    """Planned frequencies of `count` labels, rising: log-normal quantiles that sum to `total`, none above one half."""
    weights = np.exp(spread * special.ndtri(midpoints(count)))
    return np.asarray(np.minimum(weights * (total / weights.sum()), 0.5), np.float64)


def scenario_rates(config: FleetConfig, rng: np.random.Generator, laws: list[Law], rates: Floats) -> tuple[Floats, int]:
    """Scenarios per sequence without and with the hidden driver, (2, Y), and how many labels it drives.

    Near misses are included; strays that bring a label by themselves and chance are allowed for.
    """
    brought = np.ones(config.labels)  # labels per scenario that is no near miss
    for label, law in enumerate(laws[: config.labels]):
        if law.graded:
            alone = sum(law.strengths) * _route_share(law, GRADED_COMPANY)
            brought[label] = graded_success(law) + config.stray_events * alone
        elif law.solo:
            brought[label] = 1 + config.stray_events * (1 + config.near_misses)
    scenarios = rates / brought * (1 + config.near_misses)
    driven = choose(rng, np.arange(config.labels), round(config.hidden_driver * config.labels))
    by_state = np.stack([scenarios, scenarios])  # (2, Y)
    by_state[0, driven] *= (1 - DRIVER_SHARE * DRIVER_LIFT) / (1 - DRIVER_SHARE)
    by_state[1, driven] *= DRIVER_LIFT
    return by_state, len(driven)


def stray_rates(config: FleetConfig, laws: list[Law], later: Ints, by_state: Floats, roles: Roles) -> dict[int, float]:
    """How often each event with a role comes alone, per sequence."""
    near_share = config.near_misses / (1 + config.near_misses)
    mean_rates = (1 - DRIVER_SHARE) * by_state[0] + DRIVER_SHARE * by_state[1]
    brought: dict[int, float] = {}
    for label in range(config.labels):
        versions = {label, int(later[label])}
        scenarios = float(mean_rates[label])
        for index in sorted(versions):
            causes, blockers = planted_rates(laws[index], scenarios / len(versions), near_share, config.decoys)
            announced = {int(roles.precursor_of[event]): rate * config.precursors for event, rate in causes.items()}
            for rates in (causes, blockers, announced):
                for event, rate in rates.items():
                    brought[event] = brought.get(event, 0.0) + rate
        for event in roles.symptoms[label].tolist():
            brought[event] = brought.get(event, 0.0) + scenarios * config.symptoms
    for event in roles.driven.tolist():
        brought[event] = DRIVER_SHARE * DRIVEN_EVENTS / len(roles.driven)
    return {event: rate * config.stray_events for event, rate in brought.items()}


def background_chances(config: FleetConfig, rng: np.random.Generator, strays: dict[int, float]) -> tuple[Floats, Ints]:
    """Cumulative background probabilities, long-tailed for events without a role; and the usual follower of each."""
    inert = np.setdiff1d(np.arange(config.event_types), np.array(sorted(strays), np.int64))
    if len(inert) < 5:
        needed = len(strays) + 5
        raise UsageError(
            f"event_types: expected at least {needed} for the roles of these labels, got {config.event_types}"
        )
    chances = np.zeros(config.event_types)
    fresh = config.mean_length * (1 - config.repeats - config.cascades)
    chances[list(strays)] = [rate / fresh for rate in strays.values()]
    if chances.sum() > 0.5:
        chances *= 0.5 / chances.sum()
    tail = (1.0 + np.arange(len(inert))) ** -config.event_tail
    chances[inert[permutation(rng, len(inert))]] = tail * ((1 - chances.sum()) / tail.sum())
    follower_of = inert[(rng.random(config.event_types) * len(inert)).astype(np.int64)]
    return np.cumsum(chances), follower_of
