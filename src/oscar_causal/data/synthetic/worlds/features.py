"""State of a sequence as seen by one part of a mechanism: presence, recency, rate, dose, value, order, ...

Each feature is a frozen dataclass with `types` (numbers among the label's own event types) and a method `of` that gives
its level in [0, 1] for n sequences. Everything is decided by recorded events, times, values and static covariates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from oscar_causal.data.synthetic.worlds.occurrences import Bool, Float, Occurrences


class Feature(Protocol):
    """A level in [0, 1] for each sequence."""

    @property
    def types(self) -> tuple[int, ...]:
        """The event types it depends on; the first one is (or begins) what can bring the label about."""

    def of(self, seen: Occurrences) -> Float:
        """(n,) levels."""


@dataclass(frozen=True)
class Presence:
    """1 where the event occurs."""

    kind: int

    @property
    def types(self) -> tuple[int, ...]:
        return (self.kind,)

    def of(self, seen: Occurrences) -> Float:
        return seen.present(self.kind).astype(float)


@dataclass(frozen=True)
class Recency(Presence):
    """exp(-age / scale) of the last occurrence."""

    scale_s: float

    def of(self, seen: Occurrences) -> Float:
        return np.asarray(_decayed(seen, self.kind, self.scale_s).max(axis=1))


@dataclass(frozen=True)
class Excitation(Presence):
    """Sigmoid of (sum of exp(-age / scale) over all occurrences - centre) / width."""

    scale_s: float
    centre: float
    width: float

    def of(self, seen: Occurrences) -> Float:
        return sigmoid((_decayed(seen, self.kind, self.scale_s).sum(axis=1) - self.centre) / self.width)


@dataclass(frozen=True)
class Burst(Presence):
    """1 where `count` occurrences lie within `window_s` seconds."""

    count: int
    window_s: float

    def of(self, seen: Occurrences) -> Float:
        times = np.sort(np.where(seen.of(self.kind), seen.times_s, np.inf), axis=1)
        later, earlier = times[:, self.count - 1 :], times[:, : times.shape[1] - self.count + 1]
        with np.errstate(invalid="ignore"):  # inf - inf of padding
            return np.asarray((later - earlier <= self.window_s).any(axis=1), float)


@dataclass(frozen=True)
class Dose(Presence):
    """Sigmoid of (number of occurrences - centre) / width."""

    centre: float
    width: float

    def of(self, seen: Occurrences) -> Float:
        return sigmoid((seen.of(self.kind).sum(axis=1) - self.centre) / self.width)


@dataclass(frozen=True)
class Value(Presence):
    """Largest sigmoid of slope * (value - threshold) over the occurrences; an infinite slope is a step.

    An occurrence without a value counts nothing.
    """

    threshold: float
    slope: float

    def of(self, seen: Occurrences) -> Float:
        excess = np.where(seen.of(self.kind) & ~np.isnan(seen.values), seen.values - self.threshold, -np.inf)
        level = (excess > 0).astype(float) if np.isinf(self.slope) else sigmoid(self.slope * excess)
        return np.asarray(level.max(axis=1))


@dataclass(frozen=True)
class PresenceWhere(Presence):
    """1 where the event occurs and the static covariate `column` lies in [low, high)."""

    column: int
    low: float
    high: float

    def holds(self, static: Float) -> Bool:
        """(n,): where the covariate lets the event count."""
        value = static[:, self.column]
        return np.asarray((value >= self.low) & (value < self.high))

    def of(self, seen: Occurrences) -> Float:
        return (seen.present(self.kind) & self.holds(seen.static)).astype(float)


@dataclass(frozen=True)
class Unanswered:
    """1 where some occurrence of `alarm` has no `answer` later and within `window_s` seconds."""

    alarm: int
    answer: int
    window_s: float

    @property
    def types(self) -> tuple[int, ...]:
        return (self.alarm, self.answer)

    def of(self, seen: Occurrences) -> Float:
        times = np.where(seen.of(self.answer), seen.times_s, np.inf)
        coming = np.minimum.accumulate(times[:, ::-1], axis=1)[:, ::-1]  # next answer at or after each column
        return (seen.of(self.alarm) & (coming - seen.times_s > self.window_s)).any(axis=1).astype(float)


@dataclass(frozen=True)
class Chain:
    """1 where the events occur in this order, each within its gap of the one before it."""

    types: tuple[int, ...]
    gaps_s: tuple[float, ...]

    def of(self, seen: Occurrences) -> Float:
        reached = np.where(seen.of(self.types[0]), seen.times_s, -np.inf)
        for kind, gap in zip(self.types[1:], self.gaps_s, strict=True):
            latest = np.maximum.accumulate(reached, axis=1)
            before = np.concatenate([np.full((len(seen), 1), -np.inf), latest[:, :-1]], axis=1)
            reached = np.where(seen.of(kind) & (seen.times_s - before <= gap), seen.times_s, -np.inf)
        return np.isfinite(reached).any(axis=1).astype(float)


def sigmoid(logit: Float) -> Float:
    """1 / (1 + exp(-logit)) without overflow."""
    return np.asarray(0.5 * (1 + np.tanh(0.5 * np.asarray(logit, float))))


def _decayed(seen: Occurrences, kind: int, scale_s: float) -> Float:
    age = np.maximum(seen.end_s[:, None] - seen.times_s, 0)
    return np.where(seen.of(kind), np.exp(-age / scale_s), 0.0)
