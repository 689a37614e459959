"""A slow, literal reading of the solvable process: every whole sequence is written down, everything else is sums.

Nothing here uses the tables under test. Inert types are not lumped, histories are read off the sequence, rules are
Python predicates, and conditional laws are ratios of sums over complete sequences.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from oscar_causal.data.solvable import Effect, HiddenDriver, LabelLaw, Pull, SolvableConfig, SolvableProcess

Ids = tuple[int, ...]
Predicate = Callable[[Sequence[str], Sequence[int]], bool]


def has(name: str) -> Predicate:
    return lambda events, times: name in events


def before(first: str, second: str) -> Predicate:
    return lambda events, times: any(
        a == first and b == second and s < t
        for a, s in zip(events, times, strict=True)
        for b, t in zip(events, times, strict=True)
    )


class Literal:
    """All sequences of a tiny process with their probabilities."""

    def __init__(self, config: SolvableConfig, predicates: dict[str, Predicate]) -> None:
        self.config, self.predicates = config, predicates
        self.names = config.event_names
        self.types = range(len(self.names))
        self.times = [sum(i not in config.tied for i in range(1, k + 1)) for k in range(config.length)]
        self.drivers = [1.0] if config.hidden is None else [1 - config.hidden.rate, config.hidden.rate]
        self.sequences: list[Ids] = list(itertools.product(self.types, repeat=config.length))
        self.joint = {(d, x): p * self.chain(x, d) for d, p in enumerate(self.drivers) for x in self.sequences}

    def chain(self, sequence: Ids, driver: int, skip: int | None = None) -> float:
        """P(sequence | driver); the position `skip` is set by hand and has no probability."""
        steps = range(len(sequence))
        return math.prod(self.law(sequence[:i], driver)[sequence[i]] for i in steps if i != skip)

    def law(self, prefix: Ids, driver: int) -> list[float]:
        """P(next type | prefix, driver)."""
        config, relevant = self.config, len(self.config.events)
        symbols = [*config.events, "inert"] if config.inert else list(config.events)
        history = self.history(prefix)
        logits = [self.logit(history, symbols, x) for x in range(len(symbols))]
        total = sum(math.exp(value) for value in logits)
        probs = [math.exp(value) / total for value in logits]
        if config.hidden is not None:
            at = symbols.index(config.hidden.event)
            rate = (config.hidden.low, config.hidden.high)[driver]
            rest = sum(p for x, p in enumerate(probs) if x != at)
            probs = [rate if x == at else (1 - rate) * p / rest for x, p in enumerate(probs)]
        shares = [(u + 1) ** -config.inert_tail for u in range(config.inert)]
        return probs[:relevant] + [probs[relevant] * share / sum(shares) for share in shares]

    def history(self, prefix: Ids) -> tuple[int | None, int | None]:
        """The two symbols that the next event sees: ties sorted, its own tie left out."""
        now = self.times[len(prefix)]
        seen = [(self.times[i], min(x, len(self.config.events))) for i, x in enumerate(prefix) if self.times[i] < now]
        padded = [None, None, *(x for _, x in sorted(seen))]
        return padded[-2], padded[-1]

    def logit(self, history: tuple[int | None, int | None], symbols: list[str], x: int) -> float:
        config, size = self.config, len(symbols)
        older, newer = (None if h is None else symbols[h] for h in history)
        value = config.inert_weight if symbols[x] == "inert" else (config.weights or (0.0,) * size)[x]
        for pull in config.pulls:
            source = newer if pull.lag == 1 else older
            value += pull.weight * (source == pull.source and symbols[x] == pull.target)
        value += config.repeat * (newer == symbols[x])
        table = np.random.default_rng(config.seed).standard_normal((size + 1, size + 1, size))
        a, b = (size if h is None else h for h in history)
        return value + config.memory * table[a, b, x]

    def mechanism(self, sequence: Iterable[int | None], driver: int) -> np.ndarray:
        """P(Y = 1 | sequence, driver), (Y,); None in the sequence is a blank."""
        events = ["" if x is None else self.names[x] for x in sequence]
        return np.array(
            [
                label.base
                + sum(effect.size for effect in label.effects if self.predicates[effect.rule](events, self.times))
                + label.hidden * driver
                for label in self.config.labels
            ]
        )

    def matching(self, prefix: Ids) -> list[tuple[float, np.ndarray]]:
        """Probability and P(Y) of every (driver, sequence) that starts with the prefix."""
        return [(p, self.mechanism(x, d)) for (d, x), p in self.joint.items() if x[: len(prefix)] == tuple(prefix)]

    def prob(self, prefix: Ids) -> float:
        return sum(p for (_, x), p in self.joint.items() if x[: len(prefix)] == tuple(prefix))

    def label(self, prefix: Ids) -> np.ndarray:
        """P(Y = 1 | prefix), (Y,)."""
        found = self.matching(prefix)
        return sum(p * y for p, y in found) / sum(p for p, _ in found)

    def next_event(self, prefix: Ids) -> np.ndarray:
        return np.array([self.prob((*prefix, x)) for x in self.types]) / self.prob(prefix)

    def prefixes(self, length: int) -> list[Ids]:
        return list(itertools.product(self.types, repeat=length))


@dataclass(frozen=True)
class Case:
    process: SolvableProcess
    literal: Literal


def _case(predicates: dict[str, Predicate], **config: object) -> Case:
    made = SolvableConfig(**{"length": 4, "events": ("A", "B"), **config})  # type: ignore[arg-type]
    return Case(SolvableProcess(made), Literal(made, predicates))


def _plain() -> Case:
    predicates = {
        "A & !B": lambda events, times: "A" in events and "B" not in events,
        "A >= 2": lambda events, times: list(events).count("A") >= 2,
        "B": has("B"),
    }
    labels = (
        LabelLaw("graded", 0.3, (Effect("A & !B", 0.5), Effect("A >= 2", -0.25), Effect("B", 0.005))),
        LabelLaw("rare", 0.001, (Effect("A >= 2", 0.05),)),
    )
    return _case(predicates, labels=labels, inert=2, inert_tail=1.0, memory=0.8, weights=(0.3, -0.4), seed=5)


def _unlumped() -> Case:
    predicates = {
        "(A & !C) | (!A & C)": lambda events, times: ("A" in events) != ("C" in events),
        "A then B then A": lambda events, times: any(
            (a, b, c) == ("A", "B", "A") for a, b, c in itertools.combinations(events, 3)
        ),
    }
    labels = (
        LabelLaw("xor", 0.0, (Effect("(A & !C) | (!A & C)", 1.0),)),
        LabelLaw("chain", 0.1, (Effect("A then B then A", 0.6),)),
    )
    pulls = (Pull("A", "B", 1.5), Pull("C", "A", -1.0, lag=2), Pull("B", "A", 1.0, lag=2))
    return _case(predicates, events=("A", "B", "C"), labels=labels, pulls=pulls, repeat=-0.5, weights=(0.2, 0, -0.1))


def _tied(*tied: int) -> Case:
    labels = (LabelLaw("order", 0.05, (Effect("A then B", 0.8),)), LabelLaw("b", 0.1, (Effect("B", 0.4),)))
    predicates = {"A then B": before("A", "B"), "B": has("B")}
    return _case(predicates, labels=labels, inert=1, memory=1.0, tied=tied)


def _hidden(*tied: int) -> Case:
    driver = HiddenDriver(rate=0.3, event="B", low=0.1, high=0.6)
    labels = (LabelLaw("y", 0.05, (Effect("A", 0.3),), hidden=0.6), LabelLaw("z", 0.2, (Effect("B", 0.1),)))
    return _case(
        {"A": has("A"), "B": has("B")}, labels=labels, inert=2 - len(tied), memory=0.7, hidden=driver, tied=tied
    )


_CASES: dict[str, Callable[[], Case]] = {
    "plain": _plain,
    "unlumped": _unlumped,
    "tied start": lambda: _tied(1),
    "tied pair": lambda: _tied(2),
    "tied three": lambda: _tied(1, 2),
    "two ties": lambda: _tied(1, 3),
    "hidden": _hidden,
    "hidden and tied": lambda: _hidden(2),
}


@pytest.fixture(scope="session", params=list(_CASES))
def case(request: pytest.FixtureRequest) -> Case:
    """A tiny process beside its literal reading."""
    return _CASES[request.param]()
