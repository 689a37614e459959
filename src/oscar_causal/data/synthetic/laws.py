"""The law of a label: which events bring it about. Laws are drawn once per world and written out as rules.

A law is a set of routes, each sufficient by itself; a route is a set of parts that must all hold; blockers prevent.
A boolean label has one route, a temporal one several. In a graded law every route brings the label only with its
strength, and every present blocker prevents it only with its inhibition.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from oscar_causal.data.rules import AtLeast, Event, Not, Rule, Then, all_of, any_of
from oscar_causal.data.synthetic.config import FleetConfig
from oscar_causal.data.synthetic.streams import Ints, apportion, choose, permutation
from oscar_causal.errors import UsageError

MOST_CLAUSES = 5
"""Clauses of a boolean rule; larger boundaries have alternatives inside the clauses."""
MOST_SHARED = 18
"""Labels that one event may cause (the most shared event of the published data has 18)."""
WINDOWS_S = (600, 1_800, 3_600, 7_200, 21_600)
COUNTS = (2, 3, 4)
STRENGTHS = (0.95, 0.7, 0.4, 0.2)
INHIBITION = 0.6
_EXTRA_CLAUSE = {"order": 0.4, "window": 0.25, "count": 1.0}
"""Probability that a temporal route also needs an event present; a count always does, so routes have two causes."""

PartKind = Literal["any", "order", "window", "count"]


@dataclass(frozen=True, slots=True)
class Part:
    """One clause: any of the events, the first before the second, the same within a window, or one event n times."""

    kind: PartKind
    events: tuple[int, ...]
    window_s: int = 0
    count: int = 0


@dataclass(frozen=True, slots=True)
class Law:
    """When a label comes about."""

    routes: tuple[tuple[Part, ...], ...]
    blockers: tuple[int, ...] = ()
    strengths: tuple[float, ...] = ()
    inhibitions: tuple[float, ...] = ()

    @property
    def graded(self) -> bool:
        """Whether chance has a say in it."""
        return bool(self.strengths)

    @property
    def temporal(self) -> bool:
        """Whether order, time or number matter."""
        return any(part.kind != "any" for route in self.routes for part in route)

    @property
    def solo(self) -> bool:
        """Whether a single event can bring the label about."""
        return any(len(route) == 1 and route[0].kind == "any" for route in self.routes) and not self.blockers

    @property
    def causes(self) -> tuple[int, ...]:
        """The positive events, in order."""
        return tuple(dict.fromkeys(event for route in self.routes for part in route for event in part.events))


def rule_of(law: Law, names: tuple[str, ...]) -> Rule:
    """The law as a rule. Of a graded law: what raises and what prevents, without the chances."""
    either = any_of(all_of(_part_rule(part, names) for part in route) for route in law.routes)
    return all_of([either, *(Not(Event(names[event])) for event in law.blockers)])


def exchange(law: Law, old: int, new: int) -> Law:
    """The same law with one event in the place of another."""
    routes = tuple(
        tuple(replace(part, events=tuple(new if event == old else event for event in part.events)) for part in route)
        for route in law.routes
    )
    return replace(law, routes=routes)


class CausePool:
    """Hands out events for the places in laws: fresh ones, or ones in use, the more used the likelier."""

    def __init__(self, rng: np.random.Generator, config: FleetConfig) -> None:
        self._rng, self._shared, self._types = rng, config.shared_causes, config.event_types
        self._fresh = iter(permutation(rng, config.event_types).tolist())
        self._slots: list[int] = []
        self._uses: dict[int, int] = {}

    def take(self, count: int, *, new: int = 0, alone: bool = False) -> list[int]:
        """`count` different events, the first `new` of them fresh; with `alone` all are, and nobody else gets them."""
        taken: list[int] = []
        for place in range(count):
            old = None if alone or place < new else self._reuse(taken)
            taken.append(self.fresh() if old is None else old)
        if not alone:
            for event in taken:
                self._slots.append(event)
                self._uses[event] = self._uses.get(event, 0) + 1
        return taken

    def fresh(self) -> int:
        """An event that has no role yet."""
        event = next(self._fresh, None)
        if event is None:
            raise UsageError(f"event_types: expected more for the roles of these labels, got {self._types}")
        return int(event)

    def _reuse(self, taken: list[int]) -> int | None:
        if not self._slots or self._rng.random() >= self._shared:
            return None
        for _ in range(20):
            event = self._slots[int(self._rng.random() * len(self._slots))]
            if event not in taken and self._uses[event] < MOST_SHARED:
                return event
        return None


def draw_laws(config: FleetConfig, rng: np.random.Generator, pool: CausePool) -> list[Law]:
    """One law per label; shares of kinds are met exactly, as far as whole labels can."""
    everyone = np.arange(config.labels)
    temporal = choose(rng, everyone, round(config.temporal_labels * config.labels))
    others = np.setdiff1d(everyone, temporal)
    graded = choose(rng, others, round(config.probabilistic_labels * config.labels))
    sizes = apportion(config.boundary_sizes, config.labels)[permutation(rng, config.labels)]
    with_not = _share(rng, np.flatnonzero((sizes >= 2) | np.isin(everyone, temporal)), config.not_share)
    roomy = np.setdiff1d(np.flatnonzero(sizes - np.isin(everyone, with_not) >= 2), np.union1d(temporal, graded))
    with_or = _share(rng, roomy, config.or_share)
    laws: list[Law] = []
    for label in everyone.tolist():
        has_not = label in with_not
        if label in temporal:
            law = _temporal_law(config, rng, pool, has_not)
        elif label in graded:
            law = _graded_law(int(sizes[label]), pool)
        else:
            law = _boolean_law(int(sizes[label]), rng, pool, has_not=has_not, has_or=label in with_or)
        laws.append(law)
    return laws


def _boolean_law(size: int, rng: np.random.Generator, pool: CausePool, *, has_not: bool, has_or: bool) -> Law:
    positive = size - has_not
    has_or = has_or or positive > MOST_CLAUSES
    clauses = 1 + int(rng.random() * min(positive - 1, MOST_CLAUSES)) if has_or else positive
    sizes = 1 + np.bincount((rng.random(positive - clauses) * clauses).astype(np.int64), minlength=clauses)
    # one clause is of fresh events: otherwise popular events would bring rare labels by themselves
    events = pool.take(size, new=int(sizes[0]), alone=clauses == 1)
    groups = [group.tolist() for group in np.split(np.array(events[:positive]), np.cumsum(sizes)[:-1])]
    turn = int(rng.random() * clauses)
    groups = groups[turn:] + groups[:turn]
    return Law((tuple(Part("any", tuple(group)) for group in groups),), tuple(events[positive:]))


def _graded_law(size: int, pool: CausePool) -> Law:
    causes = pool.take(min(max(size, 2), len(STRENGTHS)), alone=True)
    routes = tuple((Part("any", (event,)),) for event in causes)
    return Law(routes, tuple(pool.take(1, alone=True)), STRENGTHS[: len(causes)], (INHIBITION,))


def _temporal_law(config: FleetConfig, rng: np.random.Generator, pool: CausePool, has_not: bool) -> Law:
    count = int(config.routes) + int(rng.random() < config.routes % 1)
    kinds: tuple[PartKind, ...] = ("order", "window", "count")
    shares = np.cumsum([config.orders, config.windows, config.counts])
    chosen = [kinds[int(np.searchsorted(shares / shares[-1], rng.random(), side="right"))] for _ in range(count)]
    extra = [rng.random() < _EXTRA_CLAUSE[kind] for kind in chosen]
    needed = [(1 if kind == "count" else 2) + int(more) for kind, more in zip(chosen, extra, strict=True)]
    events = iter(pool.take(sum(needed) + int(has_not)))
    routes = tuple(
        tuple(_temporal_parts(kind, [next(events) for _ in range(number)], rng))
        for kind, number in zip(chosen, needed, strict=True)
    )
    return Law(routes, tuple(events))


def _temporal_parts(kind: PartKind, events: list[int], rng: np.random.Generator) -> list[Part]:
    used = 1 if kind == "count" else 2
    window = WINDOWS_S[int(rng.random() * len(WINDOWS_S))] if kind == "window" else 0
    count = COUNTS[int(rng.random() * len(COUNTS))] if kind == "count" else 0
    parts = [Part(kind, tuple(events[:used]), window, count)]
    return parts + [Part("any", (event,)) for event in events[used:]]


def _share(rng: np.random.Generator, eligible: Ints, share: float) -> Ints:
    return choose(rng, eligible, round(share * len(eligible)))


def _part_rule(part: Part, names: tuple[str, ...]) -> Rule:
    events = [Event(names[event]) for event in part.events]
    if part.kind == "any":
        return any_of(events)
    if part.kind == "count":
        return AtLeast(events[0], part.count)
    return Then(events[0], events[1], float(part.window_s) if part.kind == "window" else None)
