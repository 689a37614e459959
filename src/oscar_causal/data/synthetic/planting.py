"""What scenarios bring into their sequences: causes in order, precursors that announce, symptoms that accompany.

A near miss brings the same precursors and symptoms, but lacks a clause or has a blocker; of a temporal label it brings
the routes in the wrong order, too late or too few. So only the causes themselves decide.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oscar_causal.data.sequences import ragged_positions
from oscar_causal.data.synthetic.rates import DRIVEN_EVENTS
from oscar_causal.data.synthetic.recipes import (
    ANY,
    BOOLEAN,
    COUNT,
    GRADED,
    GRADED_COMPANY,
    INHIBITOR_RATE,
    WINDOW,
)
from oscar_causal.data.synthetic.scenarios import Scenarios, moment_within
from oscar_causal.data.synthetic.streams import Ints, Mask, below, gap_table, look_up
from oscar_causal.data.synthetic.subjects import Subjects
from oscar_causal.data.synthetic.world import World

ABSENT, PLANTED, SPOILED, OMITTED = range(4)
"""What happens to a part: nothing at all; it holds; it stands by but fails; it is announced but does not come."""
JITTER_S = gap_table(6.0, zeros=0.4)
AHEAD_S = gap_table(3_600.0, zeros=0.0)
"""How long before its cause a precursor comes."""
APART_S = gap_table(7_200.0, zeros=0.0)
"""How long after the first event of an order the second comes."""
SWAPPED_WINDOWS = 0.3
"""Share of the spoiled windows that are in the wrong order instead of too late."""


@dataclass(frozen=True)
class Plants:
    """Events to plant: `delta_s` after the moment near `anchor_s` that the sequence offers."""

    row: Ints
    event: Ints
    anchor_s: Ints
    delta_s: Ints


@dataclass(frozen=True)
class _Parts:
    """The parts that show up, each with its scenario, what happens to it, when, and by which alternative."""

    owner: Ints
    part: Ints
    state: Ints
    anchor_s: Ints
    number: Ints

    def take(self, at: Ints) -> _Parts:
        return _Parts(self.owner[at], self.part[at], self.state[at], self.anchor_s[at], self.number[at])


def plant(world: World, rng: np.random.Generator, scenarios: Scenarios, subjects: Subjects, spans_s: Ints) -> Plants:
    """Everything the scenarios and the hidden driver bring."""
    parts = _draw_parts(world, rng, scenarios)
    kind = world.recipes.kind[parts.part]
    singles = parts.take(np.flatnonzero((kind == ANY) & (parts.state == PLANTED)))
    pieces = [
        _singles(world, rng, scenarios, singles),
        _again(world, rng, scenarios, singles),
        *_ordered(world, rng, scenarios, parts.take(np.flatnonzero((kind != ANY) & (kind != COUNT)))),
        _counted(world, rng, scenarios, parts.take(np.flatnonzero(kind == COUNT))),
        _redundant(world, rng, scenarios, parts),
        _precursors(world, rng, scenarios, parts),
        _blockers(world, rng, scenarios),
        _symptoms(world, rng, scenarios),
        _driven(world, rng, subjects, spans_s),
    ]
    columns = ("row", "event", "anchor_s", "delta_s")
    return Plants(*(np.concatenate([getattr(piece, name) for piece in pieces]) for name in columns))


def _draw_parts(world: World, rng: np.random.Generator, scenarios: Scenarios) -> _Parts:
    owner = np.repeat(np.arange(len(scenarios)), world.recipes.parts[scenarios.law])
    part = ragged_positions(world.recipes.part_offsets, scenarios.law)
    state = _states(world, rng, scenarios, owner, part)
    alternatives = np.where(world.recipes.kind[part] == ANY, world.recipes.alternatives.lengths[part], 1)
    parts = _Parts(owner, part, state, _anchors(world, rng, scenarios, owner, part), below(rng, alternatives))
    return parts.take(np.flatnonzero(state != ABSENT))


def _states(world: World, rng: np.random.Generator, scenarios: Scenarios, owner: Ints, part: Ints) -> Ints:
    """What happens to each part of each scenario, by the kind of its law."""
    config, recipes, law = world.config, world.recipes, scenarios.law
    route = recipes.route[part]
    chosen_route, left_out = below(rng, recipes.routes[law]), below(rng, recipes.parts[law])
    luck = rng.random((len(scenarios), int(recipes.routes.max())))[owner, route]
    near, mine = scenarios.near_miss[owner], route == chosen_route[owner]
    lacking = near & ~scenarios.blocked[owner]
    boolean = np.where(lacking & (recipes.place[part] == left_out[owner]), OMITTED, PLANTED)
    company = np.where(mine | (luck < GRADED_COMPANY), PLANTED, ABSENT)
    graded = np.where(near, np.where(mine, OMITTED, ABSENT), company)
    spoils = np.where(recipes.kind[part] == ANY, PLANTED, SPOILED)  # a decoy is complete but for its order or number
    second = ~near & (luck < config.redundant_causes)
    stands_by = luck < config.redundant_causes + (1 - config.redundant_causes) * config.decoys
    others = np.where(second, PLANTED, np.where(stands_by, spoils, ABSENT))
    temporal = np.where(mine, np.where(lacking, spoils, PLANTED), others)
    return np.choose(recipes.mode[law][owner], [boolean, temporal, graded])


def _anchors(world: World, rng: np.random.Generator, scenarios: Scenarios, owner: Ints, part: Ints) -> Ints:
    """The moment of each part: boolean causes come in their order, the others anywhere in the scenario."""
    law = scenarios.law[owner]
    u = rng.random(len(owner))
    in_order = (world.recipes.place[part] + u) / world.recipes.parts[law]
    share = np.where(world.recipes.mode[law] == BOOLEAN, in_order, u)
    begin, end = scenarios.begin_s[owner], scenarios.end_s[owner]
    return (begin + share * (end - begin)).astype(np.int64)


def _event(world: World, part: Ints, number: Ints) -> Ints:
    alternatives = world.recipes.alternatives
    return np.asarray(alternatives.ids[alternatives.offsets[part] + number], np.int64)


def _singles(world: World, rng: np.random.Generator, scenarios: Scenarios, parts: _Parts) -> Plants:
    event = _event(world, parts.part, parts.number)
    return Plants(scenarios.row[parts.owner], event, parts.anchor_s, look_up(JITTER_S, rng, len(event)))


def _again(world: World, rng: np.random.Generator, scenarios: Scenarios, parts: _Parts) -> Plants:
    """Some causes of kind `any` come a second time."""
    here = parts.take(np.flatnonzero(rng.random(len(parts.part)) < world.config.repeats))
    return _somewhere(rng, scenarios, here.owner, _event(world, here.part, here.number))


def _ordered(world: World, rng: np.random.Generator, scenarios: Scenarios, parts: _Parts) -> list[Plants]:
    """Orders and windows: the event that comes first, then the one that comes a gap later."""
    gap, swapped = _gaps(world, rng, parts)
    row = scenarios.row[parts.owner]
    return [
        Plants(row, _event(world, parts.part, np.where(swapped, 1 - place, place)), parts.anchor_s, gap * place)
        for place in (0, 1)
    ]


def _gaps(world: World, rng: np.random.Generator, parts: _Parts) -> tuple[Ints, Mask]:
    """Seconds between the two events of an order or window, and whether they come in the wrong order."""
    window = world.recipes.window_s[parts.part]
    in_window = world.recipes.kind[parts.part] == WINDOW
    spoiled = parts.state == SPOILED
    u, coin = rng.random(len(window)), rng.random(len(window))
    swapped = spoiled & (~in_window | (coin < SWAPPED_WINDOWS))
    inside, beyond = (0.02 + 0.7 * u) * window, (1.8 + 2 * u) * window
    gap = np.where(spoiled & ~swapped, beyond, inside).astype(np.int64)
    return np.where(in_window, gap, look_up(APART_S, rng, len(window))), swapped


def _counted(world: World, rng: np.random.Generator, scenarios: Scenarios, parts: _Parts) -> Plants:
    """Counts: as many occurrences as needed, one too few when spoiled."""
    times = world.recipes.count[parts.part] - (parts.state == SPOILED)
    each = parts.take(np.repeat(np.arange(len(times)), times))
    event = _event(world, each.part, each.number)
    return Plants(scenarios.row[each.owner], event, each.anchor_s, look_up(APART_S, rng, len(event)))


def _redundant(world: World, rng: np.random.Generator, scenarios: Scenarios, parts: _Parts) -> Plants:
    """A second alternative of a clause that holds already."""
    lengths = world.recipes.alternatives.lengths[parts.part]
    wanted = rng.random(len(lengths)) < world.config.redundant_causes
    holds = (parts.state == PLANTED) & (world.recipes.kind[parts.part] == ANY)
    at = np.flatnonzero(wanted & holds & (lengths > 1))
    chosen, lengths = parts.take(at), lengths[at]
    other = (chosen.number + 1 + below(rng, lengths - 1)) % lengths
    return _somewhere(rng, scenarios, chosen.owner, _event(world, chosen.part, other))


def _precursors(world: World, rng: np.random.Generator, scenarios: Scenarios, parts: _Parts) -> Plants:
    """Announcements, whether or not the cause then comes."""
    here = parts.take(np.flatnonzero(rng.random(len(parts.part)) < world.config.precursors))
    event = world.roles.precursor_of[_event(world, here.part, here.number)]
    return Plants(scenarios.row[here.owner], event, here.anchor_s, -look_up(AHEAD_S, rng, len(event)))


def _blockers(world: World, rng: np.random.Generator, scenarios: Scenarios) -> Plants:
    """One blocker for a blocked near miss; the inhibitors of a graded law come along now and then."""
    blockers = world.recipes.blockers
    graded = world.recipes.mode[scenarios.law] == GRADED
    wanted = scenarios.blocked | (graded & (rng.random(len(scenarios)) < INHIBITOR_RATE))
    at = np.flatnonzero(wanted & (blockers.lengths[scenarios.law] > 0))
    law = scenarios.law[at]
    event = blockers.ids[blockers.offsets[law] + below(rng, blockers.lengths[law])].astype(np.int64)
    return _somewhere(rng, scenarios, at, event)


def _symptoms(world: World, rng: np.random.Generator, scenarios: Scenarios) -> Plants:
    """Each symptom of the label with its probability, among the causes or after them."""
    lengths = world.roles.symptoms.lengths[scenarios.label]
    owner = np.repeat(np.arange(len(scenarios)), lengths)
    event = world.roles.symptoms.ids[ragged_positions(world.roles.symptoms.offsets, scenarios.label)].astype(np.int64)
    here = rng.random(len(owner)) < world.config.symptoms
    return _somewhere(rng, scenarios, owner[here], event[here])


def _driven(world: World, rng: np.random.Generator, subjects: Subjects, spans_s: Ints) -> Plants:
    """Harmless events that the hidden driver brings."""
    rows = np.flatnonzero(subjects.driven) if len(world.roles.driven) else np.empty(0, np.int64)
    row = np.repeat(rows, DRIVEN_EVENTS)
    event = world.roles.driven[below(rng, np.full(len(row), len(world.roles.driven)))]
    return Plants(row, event, below(rng, spans_s[row]), look_up(JITTER_S, rng, len(row)))


def _somewhere(rng: np.random.Generator, scenarios: Scenarios, owner: Ints, event: Ints) -> Plants:
    """Events anywhere in their scenarios."""
    return Plants(scenarios.row[owner], event, moment_within(rng, scenarios, owner), look_up(JITTER_S, rng, len(owner)))
