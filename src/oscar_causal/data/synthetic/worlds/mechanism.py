"""How a label comes about: levels of features, an optional unrecorded variable, and a link that gives a probability."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from oscar_causal.data.synthetic.worlds.features import Feature, sigmoid
from oscar_causal.data.synthetic.worlds.occurrences import Bool, Float, Occurrences


class Link(Protocol):
    """From levels (n, F) of the features to probabilities (n,) of the label."""

    def of(self, levels: Float) -> Float:
        """P(label | levels)."""


@dataclass(frozen=True)
class NoisyOr:
    """Every feature brings the label about by itself with its strength; `floor` is the rate without any."""

    strengths: tuple[float, ...]
    floor: float

    def of(self, levels: Float) -> Float:
        return np.asarray(1 - (1 - self.floor) * np.prod(1 - levels * np.array(self.strengths), axis=1))


@dataclass(frozen=True)
class Logistic:
    """A risk score: log odds add up."""

    weights: tuple[float, ...]
    intercept: float

    def of(self, levels: Float) -> Float:
        return sigmoid(self.intercept + levels @ np.array(self.weights))


@dataclass(frozen=True)
class AtLeast:
    """`high` where at least `count` of the features are on, `floor` elsewhere."""

    count: int
    high: float
    floor: float

    def of(self, levels: Float) -> Float:
        return np.where((levels > 0.5).sum(axis=1) >= self.count, self.high, self.floor)


@dataclass(frozen=True)
class Parity:
    """`high` where an odd number of features is on, `floor` elsewhere."""

    high: float
    floor: float

    def of(self, levels: Float) -> Float:
        return np.where((levels > 0.5).sum(axis=1) % 2 == 1, self.high, self.floor)


@dataclass(frozen=True)
class Network:
    """A small network with one hidden layer of tanh units: sigmoid(scale * (units - threshold))."""

    inner: tuple[tuple[float, ...], ...]
    biases: tuple[float, ...]
    outer: tuple[float, ...]
    scale: float
    threshold: float

    def score(self, levels: Float) -> Float:
        """The output before threshold and sigmoid."""
        return np.asarray(np.tanh(levels @ np.array(self.inner) + np.array(self.biases)) @ np.array(self.outer))

    def of(self, levels: Float) -> Float:
        return sigmoid(self.scale * (self.score(levels) - self.threshold))


@dataclass(frozen=True)
class Hazard:
    """The label comes after the record ends, at a rate that present events raise and time lets fade, unless censored.

    Rate at s seconds after the end: base * exp(sum of weight * level * exp(-s / scale)). Follow-up ends at
    `follow_s`; a share `censored` of the sequences is lost at a moment drawn uniformly before that. The probability is
    that of a *recorded* label: the moment of censoring is not recorded and is integrated out.
    """

    weights: tuple[float, ...]
    scales_s: tuple[float, ...]
    base: float
    follow_s: float
    censored: float
    steps: int = 48

    @cached_property
    def grid_s(self) -> Float:
        """(steps + 1,) moments of the follow-up; the rate is constant between two of them."""
        return np.linspace(0, self.follow_s, self.steps + 1)

    def cumulative(self, levels: Float) -> Float:
        """(n, steps + 1): integrated rate from the end of the record to each moment of the grid."""
        middle = (self.grid_s[1:] + self.grid_s[:-1]) / 2
        fade = np.exp(-middle[None, :] / np.array(self.scales_s)[:, None])  # (F, steps)
        rate = self.base * np.exp((levels * np.array(self.weights)) @ fade)  # (n, steps)
        whole = np.cumsum(rate * (self.follow_s / self.steps), axis=1)
        return np.concatenate([np.zeros((len(levels), 1)), whole], axis=1)

    def of(self, levels: Float) -> Float:
        came = 1 - np.exp(-self.cumulative(levels))
        average = (came[:, 1:] + came[:, :-1]).mean(axis=1) / 2  # over a uniform moment of censoring
        return np.asarray((1 - self.censored) * came[:, -1] + self.censored * average)

    def draw(self, levels: Float, rng: np.random.Generator) -> tuple[Bool, Float]:
        """Whether the label was recorded, and how long after the end of the record it came."""
        n, need = len(levels), rng.exponential(size=len(levels))
        whole = self.cumulative(levels)
        after = np.array([np.interp(need[i], whole[i], self.grid_s, right=np.inf) for i in range(n)])
        lost = np.where(rng.random(n) < self.censored, rng.random(n) * self.follow_s, self.follow_s)
        return after < lost, after


@dataclass(frozen=True)
class Hidden:
    """An unrecorded yes-or-no variable; recorded signs of it are written with other chances where it is on."""

    prior: float
    signs: tuple[int, ...]
    """Numbers among the label's own types; signs have no effect on the label."""
    chances_on: tuple[float, ...]
    chances_off: tuple[float, ...]

    def posterior(self, seen: Occurrences) -> Float:
        """(n,): P(on | which signs are recorded)."""
        on, off = np.full(len(seen), self.prior), np.full(len(seen), 1 - self.prior)
        for sign, chance_on, chance_off in zip(self.signs, self.chances_on, self.chances_off, strict=True):
            there = seen.present(sign)
            on = on * np.where(there, chance_on, 1 - chance_on)
            off = off * np.where(there, chance_off, 1 - chance_off)
        return np.asarray(on / (on + off))


@dataclass(frozen=True)
class Mechanism:
    """One label: its event types, the features over them, and the link; a hidden variable is the link's last input."""

    label: str
    types: tuple[int, ...]
    """Event types of the world, by number; features speak of them by their index here."""
    causes: tuple[int, ...]
    """Indices of the types that can bring the label about: the perfect boundary, read by presence."""
    features: tuple[Feature, ...]
    link: Link
    hidden: Hidden | None = None

    def levels(self, seen: Occurrences) -> Float:
        """(n, F) levels of the recorded features."""
        return np.stack([feature.of(seen) for feature in self.features], axis=1)

    def posterior(self, seen: Occurrences) -> Float:
        """(n,): P(the hidden variable is on | the record); 0 without one."""
        return self.hidden.posterior(seen) if self.hidden is not None else np.zeros(len(seen))

    def probs(self, seen: Occurrences) -> Float:
        """(n,): P(label | recorded sequence), the hidden variable integrated out."""
        return self.probs_given(seen, self.posterior(seen))

    def probs_given(self, seen: Occurrences, on: Float) -> Float:
        """(n,): the same with a given chance of the hidden variable: what removing events cannot change."""
        levels = self.levels(seen)
        if self.hidden is None:
            return self.link.of(levels)
        with_on = self.link.of(np.column_stack([levels, np.ones(len(seen))]))
        with_off = self.link.of(np.column_stack([levels, np.zeros(len(seen))]))
        return np.asarray(on * with_on + (1 - on) * with_off)
