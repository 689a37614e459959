"""What an exactly solvable process is made of: events, their law, labels, ties, a hidden driver. Checked at birth.

A sequence has `length` events. Its types are the *relevant* ones (`events`, ids first) and `inert` further ones
(`inert0`, `inert1`, ...), which enter every law only as one lump; inside the lump the type is drawn from a fixed
distribution, whatever the history. Names in pulls and rules are relevant events; pulls may also name the lump, `inert`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from oscar_causal.errors import UsageError

INERT = "inert"
"""Name of the lump of inert types in pulls."""

MAX_RELEVANT = 8
MAX_INERT = 100
MAX_LENGTH = 64


@dataclass(frozen=True)
class Pull:
    """The log-weight of `target` grows by `weight` when `source` stood `lag` (1 or 2) events before."""

    source: str
    target: str
    weight: float
    lag: int = 1


@dataclass(frozen=True)
class Effect:
    """`size` is added to the label's probability in every sequence where `rule` (grammar of `data.rules`) holds."""

    rule: str
    size: float


@dataclass(frozen=True)
class LabelLaw:
    """P(Y = 1 | sequence, driver) = base + sum of the effects whose rule holds + `hidden` where the driver is on."""

    name: str
    base: float
    effects: tuple[Effect, ...] = ()
    hidden: float = 0.0


@dataclass(frozen=True)
class HiddenDriver:
    """A latent coin, on with probability `rate`, that nobody observes.

    At every step `event` occurs with probability `high` where it is on and `low` where it is off, whatever the history;
    the other types share the rest by the order-2 law. So the count of `event` is all that a prefix says about the coin.
    """

    rate: float
    event: str
    low: float
    high: float


@dataclass(frozen=True)
class SolvableConfig:
    """One process. Log-weights may be any finite numbers: every type keeps a positive probability at every step."""

    length: int
    """Events per sequence, L."""
    events: tuple[str, ...]
    """Names of the relevant types (at most 8); ids 0, 1, ..."""
    labels: tuple[LabelLaw, ...]
    """The labels, at least one; they are independent given the sequence and the driver."""
    inert: int = 0
    """Number of inert types (at most 100); ids follow the relevant ones."""
    weights: tuple[float, ...] = ()
    """Log-weight of each relevant type; empty = all 0."""
    inert_weight: float = 0.0
    """Log-weight of the lump of inert types as a whole."""
    inert_tail: float = 0.0
    """Inside the lump the u-th inert type has a share proportional to (u + 1) ** -inert_tail."""
    pulls: tuple[Pull, ...] = ()
    """Who makes whom more (or less) likely to follow."""
    repeat: float = 0.0
    """Extra log-weight of the type that stood one event before."""
    memory: float = 0.0
    """Scale of normal log-weights drawn once, from `seed`, for every (two events before, one before, type)."""
    tied: tuple[int, ...] = ()
    """Positions (1 .. L-1) that share the timestamp of the position before them."""
    hidden: HiddenDriver | None = None
    """The latent coin; None = off."""
    seed: int = 0
    """Of the `memory` table; nothing else in the definition is random."""

    def __post_init__(self) -> None:
        _check_sizes(self)
        _check_law(self)
        for label in self.labels:
            _check_label(label, hidden=self.hidden is not None)
        if self.hidden is not None:
            _check_hidden(self.hidden, self.events, types=len(self.events) + (self.inert > 0))

    @property
    def event_names(self) -> tuple[str, ...]:
        """Names of all V types in id order.

        >>> SolvableConfig(length=2, events=("A",), labels=(LabelLaw("y", 0.5),), inert=2).event_names
        ('A', 'inert0', 'inert1')
        """
        return self.events + tuple(f"{INERT}{u}" for u in range(self.inert))


def _expect(holds: bool, field: str, expected: str, came: object) -> None:
    if not holds:
        raise UsageError(f"solvable process, {field}: expected {expected}, got {came!r}")


def _distinct(names: Iterable[str]) -> bool:
    listed = list(names)
    return len(set(listed)) == len(listed) and all(listed)


def _check_sizes(config: SolvableConfig) -> None:
    _expect(1 <= config.length <= MAX_LENGTH, "length", f"1 to {MAX_LENGTH} events", config.length)
    _expect(0 <= config.inert <= MAX_INERT, "inert", f"0 to {MAX_INERT} inert types", config.inert)
    count = len(config.events)
    _expect(1 <= count <= MAX_RELEVANT, "events", f"1 to {MAX_RELEVANT} relevant types", count)
    names_ok = _distinct((*config.event_names, INERT))
    _expect(names_ok, "events", f"distinct names other than {INERT!r}, {INERT}0, ...", config.events)
    _expect(count + config.inert >= 2, "events", "at least two types in all", count + config.inert)
    names = [label.name for label in config.labels]
    _expect(bool(names) and _distinct(names), "labels", "at least one, with distinct names", names)
    inside = all(1 <= position < config.length for position in config.tied)
    _expect(inside and len(set(config.tied)) == len(config.tied), "tied", "distinct positions 1 to L-1", config.tied)


def _check_law(config: SolvableConfig) -> None:
    _expect(len(config.weights) in (0, len(config.events)), "weights", "one per relevant type", config.weights)
    numbers = (*config.weights, config.inert_weight, config.inert_tail, config.repeat, config.memory)
    _expect(all(math.isfinite(number) for number in numbers), "weights", "finite numbers", numbers)
    _expect(config.seed >= 0, "seed", "a whole number from 0", config.seed)
    known = config.events + ((INERT,) if config.inert else ())
    for pull in config.pulls:
        _expect(pull.source in known and pull.target in known, "pulls", f"names among {known}", pull)
        _expect(pull.lag in (1, 2) and math.isfinite(pull.weight), "pulls", "lag 1 or 2 and a finite weight", pull)


def _check_label(label: LabelLaw, *, hidden: bool) -> None:
    _expect(0 <= label.base <= 1, f"label {label.name!r}, base", "a probability", label.base)
    sizes = [effect.size for effect in label.effects]
    _expect(all(math.isfinite(size) for size in sizes), f"label {label.name!r}, effects", "finite sizes", sizes)
    allowed = math.isfinite(label.hidden) and (hidden or label.hidden == 0)
    _expect(allowed, f"label {label.name!r}, hidden", "a finite effect, 0 without a hidden driver", label.hidden)


def _check_hidden(hidden: HiddenDriver, events: tuple[str, ...], *, types: int) -> None:
    _expect(hidden.event in events, "hidden event", f"a name among {events}", hidden.event)
    _expect(types >= 2, "hidden", "at least one type beside the driven event", hidden.event)
    rates = (hidden.rate, hidden.low, hidden.high)
    _expect(all(0 < rate < 1 for rate in rates), "hidden", "rate, low and high strictly between 0 and 1", rates)
