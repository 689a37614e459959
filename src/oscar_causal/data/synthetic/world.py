"""What a seed's fleet looks like before any sequence is drawn: codes, labels, laws, roles, frequencies."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property

import numpy as np

from oscar_causal.data.rules import PublishedRule, Rule
from oscar_causal.data.sequences import Ragged
from oscar_causal.data.synthetic.config import FleetConfig
from oscar_causal.data.synthetic.draws import Floats, Ints, Mask, choose, permutation, stream
from oscar_causal.data.synthetic.laws import CausePool, Law, draw_laws, exchange, rule_of
from oscar_causal.data.synthetic.names import event_codes, event_descriptions, label_descriptions, label_names
from oscar_causal.data.synthetic.recipes import Recipes, flatten, frequencies, graded_success, planted_rates, ragged
from oscar_causal.errors import UsageError

EPOCH = datetime(2023, 1, 1, tzinfo=UTC)
"""No sequence begins earlier."""
DAY_S = 86_400
NEVER = np.iinfo(np.int64).max
DRIVER_SHARE = 0.2
"""Share of the sequences under the hidden driver."""
DRIVER_LIFT = 3.0
"""How much more frequent it makes the scenarios of its labels; elsewhere they are rarer, so that the mean stays."""
DRIVEN_EVENTS = 3
"""Harmless driven events in a sequence under the hidden driver."""


@dataclass(frozen=True)
class World:
    """All that the blocks of a fleet have in common. Depends on the config (not on `sequences`, `null`) and the seed."""

    config: FleetConfig
    seed: int
    event_names: tuple[str, ...]
    label_names: tuple[str, ...]
    laws: tuple[Law, ...]
    """The law of each label, then the later laws of the labels whose law changes."""
    change_s: Ints
    """When each label's law changes, in seconds since `EPOCH`; `NEVER` for most."""
    later: Ints
    """Index in `laws` of each label's law after the change (its own index when there is none)."""
    published: Ints
    """Index in `laws` of the law that `rules.json` shows for each label; -1 = none."""
    rates: Floats
    """Planned frequency of each label."""
    scenario_rates: Floats
    """Scenarios of each label per sequence, near misses included: (2, Y), without and with the hidden driver."""
    precursor_of: Ints
    """The event that announces each event; -1 = none."""
    symptoms: Ragged
    """The symptoms of each label."""
    driven_events: Ints
    """Harmless events that the hidden driver makes frequent."""
    background: Floats
    """Cumulative probabilities of the event types in the background."""
    follower_of: Ints
    """The usual follower of each event in a cascade."""
    recipes: Recipes

    @cached_property
    def event_ids(self) -> dict[str, int]:
        """Event name -> event id."""
        return {name: number for number, name in enumerate(self.event_names)}

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The laws as rules."""
        return tuple(rule_of(law, self.event_names) for law in self.laws)

    @cached_property
    def drifting(self) -> Mask:
        """Which labels change their law."""
        return np.asarray(self.change_s != NEVER)

    def descriptions(self) -> dict[str, str]:
        """The content of `names.json`."""
        rng = stream(self.seed, "names", 1)
        return event_descriptions(rng, self.event_names) | label_descriptions(self.label_names)

    def all_rules(self) -> list[tuple[str, int, PublishedRule]]:
        """Every true rule: label, index in `laws`, rule with its dates."""
        found = []
        for label, name in enumerate(self.label_names):
            if not self.drifting[label]:
                found.append((name, label, PublishedRule(self.rules[label])))
                continue
            moment = EPOCH + timedelta(seconds=int(self.change_s[label]))
            later = int(self.later[label])
            found.append((name, label, PublishedRule(self.rules[label], end=moment)))
            found.append((name, later, PublishedRule(self.rules[later], start=moment)))
        return found

    def published_rules(self) -> dict[str, PublishedRule]:
        """The content of `rules.json`."""
        shown = set(self.published.tolist())
        return {name: rule for name, index, rule in self.all_rules() if index in shown}

    def hidden_rules(self) -> list[tuple[str, PublishedRule]]:
        """True rules that `rules.json` lacks."""
        shown = set(self.published.tolist())
        return [(name, rule) for name, index, rule in self.all_rules() if index not in shown]


def make_world(config: FleetConfig, seed: int) -> World:
    """Draw the world of a seed.

    >>> from oscar_causal.data.synthetic.presets import preset
    >>> world = make_world(preset("demo"), seed=1)
    >>> len(world.event_names), len(world.label_names)
    (320, 12)
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise UsageError(f"seed: expected a whole number from 0, got {seed!r}")
    names = stream(seed, "names")
    codes, labels = event_codes(names, config.event_types), label_names(names, config.labels)
    rng = stream(seed, "laws")
    pool = CausePool(rng, config)
    laws = draw_laws(config, rng, pool)
    roles = stream(seed, "roles")
    rates = frequencies(config.label_tail, config.labels_per_sequence, config.labels)
    rates = rates[permutation(roles, config.labels)]
    change_s, later = _drift(config, roles, pool, laws)
    published = _publish(config, roles, later)
    symptoms = [[pool.fresh() for _ in range(config.symptoms_per_label)] for _ in range(config.labels)]
    precursor_of = np.full(config.event_types, -1, np.int64)
    for event in sorted({event for law in laws for event in law.causes}):
        precursor_of[event] = pool.fresh()
    scenario_rates, driven_labels = _scenario_rates(config, roles, laws, rates)
    driven_events = np.array([pool.fresh() for _ in range(len(driven_labels))], np.int64)
    strays = _stray_rates(config, laws, later, scenario_rates, precursor_of, symptoms, driven_events)
    background, follower_of = _background(config, roles, strays)
    return World(
        config=config,
        seed=seed,
        event_names=codes,
        label_names=labels,
        laws=tuple(laws),
        change_s=change_s,
        later=later,
        published=published,
        rates=rates,
        scenario_rates=scenario_rates,
        precursor_of=precursor_of,
        symptoms=ragged(symptoms),
        driven_events=driven_events,
        background=background,
        follower_of=follower_of,
        recipes=flatten(laws),
    )


def _drift(config: FleetConfig, rng: np.random.Generator, pool: CausePool, laws: list[Law]) -> tuple[Ints, Ints]:
    """Choose the labels whose law changes and append their later laws: one event gives way to a fresh one."""
    later = np.arange(config.labels)
    change_s = np.full(config.labels, NEVER, np.int64)
    steady = np.array([not law.graded for law in laws])
    for label in choose(rng, np.flatnonzero(steady), round(config.drift * config.labels)).tolist():
        causes = laws[label].causes
        old = causes[int(rng.random() * len(causes))]
        later[label] = len(laws)
        laws.append(exchange(laws[label], old, pool.fresh()))
        change_s[label] = int((0.35 + 0.3 * rng.random()) * config.days) * DAY_S
    return change_s, later


def _publish(config: FleetConfig, rng: np.random.Generator, later: Ints) -> Ints:
    """The newest law of most labels; for half of the changed ones the rule sheet is out of date; some have no rule."""
    labels = np.arange(config.labels)
    published = np.where(rng.random(config.labels) < 0.5, labels, later)
    published[choose(rng, labels, round(config.missing_rules * config.labels))] = -1
    return published


def _scenario_rates(
    config: FleetConfig, rng: np.random.Generator, laws: list[Law], rates: Floats
) -> tuple[Floats, Ints]:
    brought = np.ones(config.labels)  # labels per scenario that is no near miss
    for label, law in enumerate(laws[: config.labels]):
        if law.graded:
            brought[label] = graded_success(law)
        elif law.solo:
            brought[label] = 1 + config.stray_events * (1 + config.near_misses)
    scenarios = rates / brought * (1 + config.near_misses)
    driven = choose(rng, np.arange(config.labels), round(config.hidden_driver * config.labels))
    scenario_rates = np.stack([scenarios, scenarios])  # (2, Y)
    scenario_rates[0, driven] *= (1 - DRIVER_SHARE * DRIVER_LIFT) / (1 - DRIVER_SHARE)
    scenario_rates[1, driven] *= DRIVER_LIFT
    return scenario_rates, driven


def _stray_rates(
    config: FleetConfig,
    laws: list[Law],
    later: Ints,
    scenario_rates: Floats,
    precursor_of: Ints,
    symptoms: list[list[int]],
    driven_events: Ints,
) -> dict[int, float]:
    """How often each event with a role comes alone, per sequence."""
    near_share = config.near_misses / (1 + config.near_misses)
    mean_rates = (1 - DRIVER_SHARE) * scenario_rates[0] + DRIVER_SHARE * scenario_rates[1]
    brought: dict[int, float] = {}
    for label in range(config.labels):
        versions = {label, int(later[label])}
        scenarios = float(mean_rates[label])
        for index in sorted(versions):
            causes, blockers = planted_rates(laws[index], scenarios / len(versions), near_share, config.decoys)
            announced = {int(precursor_of[event]): rate * config.precursors for event, rate in causes.items()}
            for rates in (causes, blockers, announced):
                for event, rate in rates.items():
                    brought[event] = brought.get(event, 0.0) + rate
        for event in symptoms[label]:
            brought[event] = brought.get(event, 0.0) + scenarios * config.symptoms
    for event in driven_events.tolist():
        brought[event] = DRIVER_SHARE * DRIVEN_EVENTS / len(driven_events)
    return {event: rate * config.stray_events for event, rate in brought.items()}


def _background(config: FleetConfig, rng: np.random.Generator, strays: dict[int, float]) -> tuple[Floats, Ints]:
    """Cumulative background probabilities, long-tailed for events without a role; and the usual follower of each."""
    inert = np.setdiff1d(np.arange(config.event_types), np.array(sorted(strays), np.int64))
    if len(inert) < 5:
        needed = len(strays) + 5
        raise UsageError(f"event_types: expected at least {needed} for the roles of these labels, got {config.event_types}")
    chances = np.zeros(config.event_types)
    fresh = config.mean_length * (1 - config.repeats - config.cascades)
    chances[list(strays)] = [rate / fresh for rate in strays.values()]
    if chances.sum() > 0.5:
        chances *= 0.5 / chances.sum()
    tail = (1.0 + np.arange(len(inert))) ** -config.event_tail
    chances[inert[permutation(rng, len(inert))]] = tail * ((1 - chances.sum()) / tail.sum())
    follower_of = inert[(rng.random(config.event_types) * len(inert)).astype(np.int64)]
    return np.cumsum(chances), follower_of
