"""Order, windows and counts from the observed labels alone, among candidates that the model or a boundary named.

For models that know which events matter and not yet in which order. Routes (one or two candidates, with order, window
or count, and further candidates that must be there or must not) are added one after the other: a sequence with the
label that is explained counts 1, one without it that is claimed counts -3, so that a route must be right rather than
broad (where routes stand by for each other, presence of one claims nearly all).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from oscar_causal.data.rules import And, AtLeast, Event, Not, Rule, Then, all_of, any_of, evaluate, shortest
from oscar_causal.discovery.contexts import Bool
from oscar_causal.discovery.gains import USUAL_WINDOWS
from oscar_causal.graph.rules.mining import Mined

MOST_ROUTES = 4
MOST_COUNT = 4
BEAM = 12
"""Routes that are tried with further parts."""
LEAST_BLOCKED = 5
"""Sequences with a blocker that must be there to call it one."""
BLAME = 3.0
"""What a claimed sequence without the label costs, in explained ones with it."""
ROUTE_GAIN = 0.03
"""Gain, as a share of the sequences with the label, that a further route must bring."""
PART_GAIN = 0.01
"""The same for a window, or a further part of a route."""


@dataclass(frozen=True)
class _Option:
    rule: Rule
    mask: Bool
    gain: float = 0.0


def observed_rule(mined: Mined, label: str, candidates: Sequence[str]) -> Rule | None:
    """The rule that greedy search finds; None when no route explains anything."""
    present = {name: evaluate(Event(name), mined.index) for name in candidates}
    rows = mined.with_label(label) | np.logical_or.reduce(list(present.values()))  # the others say nothing
    has, present = mined.with_label(label)[rows], {name: mask[rows] for name, mask in present.items()}
    blocking = _blocking(present, has)
    left = [name for name in candidates if name not in blocking]
    free = ~np.logical_or.reduce([present[name] for name in blocking]) if blocking else np.ones(len(has), bool)
    events = [_Option(Event(name), present[name]) for name in left]
    pool = [_Option(rule, evaluate(rule, mined.index)[rows] & free) for rule in _shapes(left)]
    routes = _routes(pool, events, has)
    if not routes:
        return None
    said = evaluate(any_of(routes), mined.index)[rows]
    kept = [name for name in blocking if _gain(said & ~present[name], has) >= _gain(said, has) + PART_GAIN]
    return shortest(all_of([any_of(routes), *(Not(Event(name)) for name in kept)]))


def _blocking(present: dict[str, Bool], has: Bool) -> list[str]:
    """Candidates with which the label is a quarter as frequent, among sequences with two others at least."""
    total = sum((mask.astype(np.int64) for mask in present.values()), np.zeros(len(has), np.int64))
    found = []
    for name, mask in present.items():
        company = total - mask >= 2
        with_it, without = has[company & mask], has[company & ~mask]
        if len(with_it) >= LEAST_BLOCKED and len(without) and with_it.mean() < without.mean() / 4:
            found.append(name)
    return found


def _routes(pool: Sequence[_Option], events: Sequence[_Option], has: Bool) -> list[Rule]:
    """Routes added one after the other while they gain."""
    chosen: list[Rule] = []
    covered, score = np.zeros(len(has), bool), 0.0
    while pool and len(chosen) < MOST_ROUTES:
        tried = [_extended(option, events, covered, has) for option in _best(pool, covered, has)]
        best = max(tried, key=lambda item: item.gain)
        if best.gain < score + ROUTE_GAIN:
            break
        chosen.append(best.rule)
        covered, score = covered | best.mask, best.gain
    return chosen


def _shapes(candidates: Sequence[str]) -> Iterator[Rule]:
    """Simple routes, the simplest first: an event, two events, an order, a window, a count with an event."""
    yield from (Event(name) for name in candidates)
    pairs = [(Event(a), Event(b)) for a, b in permutations(candidates, 2)]
    yield from (And((a, b)) for a, b in pairs if a.name < b.name)
    yield from (Then(a, b) for a, b in pairs)
    yield from (Then(a, b, window) for a, b in pairs for window in USUAL_WINDOWS)
    yield from (And((AtLeast(a, count), b)) for a, b in pairs for count in range(2, MOST_COUNT + 1))


def _best(pool: Sequence[_Option], covered: Bool, has: Bool) -> list[_Option]:
    """The options that gain most together with what is covered; first a simpler one that gains about as much.

    Several, the broad ones among them, because a route that lacks a part may overtake the others when it gets it.
    """
    scored = [_Option(option.rule, option.mask, _gain(covered | option.mask, has)) for option in pool]
    scored.sort(key=lambda option: -option.gain)
    close = [option for option in scored if option.gain >= scored[0].gain - PART_GAIN]
    simplest = min(close, key=lambda option: (_rank(option.rule), -option.gain))
    alike = sorted((o for o in close if _same_chain(o.rule, simplest.rule)), key=lambda o: _window(o.rule))
    broad = sorted(scored, key=lambda option: -_f1(option.mask, has & ~covered))
    return [alike[len(alike) // 2] if alike else simplest, *scored[:BEAM], *broad[:BEAM]]


def _extended(option: _Option, events: Sequence[_Option], covered: Bool, has: Bool) -> _Option:
    """The option with further events that must be there, or must not, as long as they help."""
    while True:
        wider = [_joined(option, event, needed, covered, has) for event in events for needed in (True, False)]
        best = max(wider, key=lambda item: item.gain)
        if best.gain < option.gain + PART_GAIN:
            return option
        option = best


def _joined(option: _Option, event: _Option, needed: bool, covered: Bool, has: Bool) -> _Option:
    mask = option.mask & (event.mask if needed else ~event.mask)
    rule = And((option.rule, event.rule if needed else Not(event.rule)))
    return _Option(rule, mask, _gain(covered | mask, has))


def _rank(rule: Rule) -> int:
    """0 event, 1 two events, 2 order, 3 count, 4 window."""
    if isinstance(rule, Then):
        return 2 if rule.within is None else 4
    if isinstance(rule, And):
        return 3 if any(isinstance(item, AtLeast) for item in rule.items) else 1
    return 0


def _window(rule: Rule) -> float:
    return rule.within or 0.0 if isinstance(rule, Then) else 0.0


def _same_chain(one: Rule, other: Rule) -> bool:
    """Windows of the same order."""
    chains = isinstance(one, Then) and isinstance(other, Then)
    return chains and _rank(one) == _rank(other) == 4 and (one.first, one.second) == (other.first, other.second)  # type: ignore[union-attr]


def _f1(said: Bool, has: Bool) -> float:
    return 2 * int((said & has).sum()) / max(int(said.sum() + has.sum()), 1)


def _gain(said: Bool, has: Bool) -> float:
    """Explained sequences less the blame for claimed ones, as a share of those with the label."""
    right = int((said & has).sum())
    return (right - BLAME * (int(said.sum()) - right)) / max(int(has.sum()), 1)
