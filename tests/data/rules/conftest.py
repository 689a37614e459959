"""What the rule tests share: random rules and sequences, and a slow evaluator that follows the definitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import strategies as st

from oscar_causal.data.rules import And, AtLeast, Event, EventIndex, Not, Or, Rule, Then, chain_steps

LETTERS = "ABCDEF"


@dataclass(frozen=True)
class Timed:
    """A sequence as people write it."""

    events: tuple[str, ...]
    times: tuple[float, ...]

    def keep(self, names: set[str]) -> Timed:
        kept = [(event, time) for event, time in zip(self.events, self.times, strict=True) if event in names]
        return Timed(tuple(event for event, _ in kept), tuple(time for _, time in kept))


def slow_holds(rule: Rule, sequence: Timed) -> bool:
    """Whether a rule holds in one sequence, by trying every combination of positions."""
    match rule:
        case Event(name):
            return name in sequence.events
        case Not(item):
            return not slow_holds(item, sequence)
        case And(items):
            return all(slow_holds(item, sequence) for item in items)
        case Or(items):
            return any(slow_holds(item, sequence) for item in items)
        case AtLeast(event, count):
            return sequence.events.count(event.name) >= count
        case Then():
            return bool(slow_chains(rule, sequence))
    raise AssertionError(rule)


def slow_chains(chain: Then, sequence: Timed) -> list[tuple[int, ...]]:
    """All tuples of positions that fulfil a chain."""
    names, windows = chain_steps(chain)
    places = [[i for i, event in enumerate(sequence.events) if event == name] for name in names]
    found = []
    for positions in product(*places):
        times = [sequence.times[i] for i in positions]
        gaps = [later - earlier for earlier, later in zip(times, times[1:], strict=False)]
        if all(gap > 0 and (w is None or gap <= w) for gap, w in zip(gaps, windows, strict=True)):
            found.append(positions)
    return found


def index_of(sequences: Sequence[Timed], *, with_times: bool = True, letters: str = LETTERS) -> EventIndex:
    """A batch of sequences laid end to end, with ids that are no positions of the alphabet."""
    offsets = np.cumsum([0, *(len(sequence.events) for sequence in sequences)])
    ids = {letter: 11 * number + 3 for number, letter in enumerate(letters)}
    event_ids = np.array([ids[event] for sequence in sequences for event in sequence.events], dtype=np.int32)
    times = np.array([time for sequence in sequences for time in sequence.times], dtype=np.float64)
    return EventIndex(offsets, event_ids, times if with_times else None, ids)


@cache
def atoms_over(letters: str, *, chains: bool) -> st.SearchStrategy[Rule]:
    event = st.sampled_from(letters).map(Event)
    if not chains:
        return event
    window = st.sampled_from([None, None, 1.0, 2.0])
    then = st.builds(Then, event, event, window)
    longer = st.builds(Then, then, event, window)
    return st.one_of(event, event, then, longer, st.builds(AtLeast, event, st.integers(1, 3)))


@cache
def rules_over(letters: str, *, chains: bool, max_leaves: int = 8) -> st.SearchStrategy[Rule]:
    def grow(inner: st.SearchStrategy[Rule]) -> st.SearchStrategy[Rule]:
        several = st.lists(inner, min_size=2, max_size=4)
        return st.one_of(inner.map(Not), several.map(tuple).map(And), several.map(tuple).map(Or))

    return st.recursive(atoms_over(letters, chains=chains), grow, max_leaves=max_leaves)


@st.composite
def sequences_over(draw: st.DrawFn, letters: str, max_size: int = 9) -> Timed:
    steps = draw(st.lists(st.tuples(st.sampled_from(letters), st.sampled_from([0, 0, 1, 1, 2, 3])), max_size=max_size))
    times = np.cumsum([gap for _, gap in steps]).astype(float).tolist()
    return Timed(tuple(event for event, _ in steps), tuple(times))


@dataclass(frozen=True)
class Kit:
    """The shared tools, handed to tests as one fixture."""

    letters: str = LETTERS
    Timed: Callable[..., Timed] = Timed
    holds: Callable[[Rule, Timed], bool] = slow_holds
    chains: Callable[[Then, Timed], list[tuple[int, ...]]] = slow_chains
    index: Callable[..., EventIndex] = index_of
    rules: Callable[..., st.SearchStrategy[Rule]] = rules_over
    sequences: Callable[..., st.SearchStrategy[Timed]] = sequences_over


@pytest.fixture(scope="session")
def kit() -> Kit:
    return Kit()
