"""What a seed's fleet looks like before any sequence is drawn: codes, labels, laws, roles, frequencies."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property

import numpy as np

from oscar_causal.data.rules import PublishedRule, Rule
from oscar_causal.data.synthetic.config import FleetConfig
from oscar_causal.data.synthetic.laws import CausePool, Law, draw_laws, exchange, rule_of
from oscar_causal.data.synthetic.names import event_codes, event_descriptions, label_descriptions, label_names
from oscar_causal.data.synthetic.rates import Roles, background_chances, frequencies, scenario_rates, stray_rates
from oscar_causal.data.synthetic.recipes import Recipes, flatten, ragged
from oscar_causal.data.synthetic.streams import Floats, Ints, Mask, choose, permutation, stream
from oscar_causal.errors import UsageError

EPOCH = datetime(2023, 1, 1, tzinfo=UTC)
"""No sequence begins earlier."""
DAY_S = 86_400
NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class World:
    """All that the blocks of a fleet share: a function of the config (less `sequences` and `null`) and the seed."""

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
    roles: Roles
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
    rng = stream(seed, "roles")
    rates = frequencies(config.label_tail, config.labels_per_sequence, config.labels)
    rates = rates[permutation(rng, config.labels)]
    change_s, later = _drift(config, rng, pool, laws)
    published = _publish(config, rng, later)
    by_state, driven = scenario_rates(config, rng, laws, rates)
    roles = _draw_roles(config, pool, laws, driven)
    background, follower_of = background_chances(config, rng, stray_rates(config, laws, later, by_state, roles))
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
        scenario_rates=by_state,
        roles=roles,
        background=background,
        follower_of=follower_of,
        recipes=flatten(laws),
    )


def _draw_roles(config: FleetConfig, pool: CausePool, laws: list[Law], driven: int) -> Roles:
    """Fresh events for everything that goes with labels; nothing among them is a cause."""
    symptoms = [[pool.fresh() for _ in range(config.symptoms_per_label)] for _ in range(config.labels)]
    precursor_of = np.full(config.event_types, -1, np.int64)
    for event in sorted({event for law in laws for event in law.causes}):
        precursor_of[event] = pool.fresh()
    return Roles(precursor_of, ragged(symptoms), np.array([pool.fresh() for _ in range(driven)], np.int64))


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
