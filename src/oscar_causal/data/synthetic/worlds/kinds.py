"""The kinds of worlds. Every constant of a label's mechanism is drawn by the seed, from the ranges written here.

A kind is a function that drafts one label: features over its own event types, how they are planted, and how the link is
finished once the levels that such planting gives are known (so that the label has the rate that was drawn for it).
Nothing here knows of rules, of any estimator or of any label model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from oscar_causal.data.synthetic.worlds.features import (
    Burst,
    Chain,
    Dose,
    Excitation,
    Feature,
    Presence,
    PresenceWhere,
    Recency,
    Unanswered,
    Value,
)
from oscar_causal.data.synthetic.worlds.mechanism import (
    AtLeast,
    Hazard,
    Hidden,
    Link,
    Logistic,
    Network,
    NoisyOr,
    Parity,
)
from oscar_causal.data.synthetic.worlds.occurrences import Float
from oscar_causal.data.synthetic.worlds.planting import Independent, Plan, Rng, Scenarios

HOUR = 3600.0
DAY = 24 * HOUR
SITES = 4
"""Categories of the static covariate `site`; the other one is `age`, 20 to 80 years."""


Levels = Callable[[], Float]


@dataclass(frozen=True)
class Draft:
    """One label before its rate is set."""

    features: tuple[Feature, ...]
    plan: Callable[[float], Plan]
    """How often to plant, given the rate that the label is to have."""
    finish: Callable[[Levels, float], Link]
    """The link, given levels (n, F) of sequences planted so (drawn when asked for), and the rate."""
    causes: tuple[int, ...] | None = None
    """Own types that can bring the label about; None = the first type of each feature."""
    hidden: Hidden | None = None
    symptoms: tuple[tuple[int, ...], ...] = ()
    """For each feature the own types that are always written after it was active."""


def uniform(rng: Rng, low: float, high: float) -> float:
    """One number of the range."""
    return float(rng.uniform(low, high))


def log_uniform(rng: Rng, low: float, high: float) -> float:
    """One number of the range, every factor of two as likely as the next."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def whole(rng: Rng, low: int, high: int) -> int:
    """A whole number from low to high, both included."""
    return int(rng.integers(low, high + 1))


def additive(rng: Rng) -> Draft:
    """Risk score: 3 to 5 strong events (log odds 1.5 to 3), 2 to 4 weak (0.3 to 0.8), 1 to 3 opposing (-1 to -3)."""
    strong, weak, against = whole(rng, 3, 5), whole(rng, 2, 4), whole(rng, 1, 3)
    weights = [
        *rng.uniform(1.5, 3.0, size=strong),
        *rng.uniform(0.3, 0.8, size=weak),
        *-rng.uniform(1.0, 3.0, size=against),
    ]
    return _score(rng, [float(w) for w in weights], (0.1, 0.4), causes=range(strong + weak))


def many_weak(rng: Rng) -> Draft:
    """30 events of the same weight (log odds 0.5 to 0.9), each in 15 to 35 % of the sequences."""
    return _score(rng, [uniform(rng, 0.5, 0.9)] * 30, (0.15, 0.35), causes=range(30))


def decay(rng: Rng) -> Draft:
    """An event counts by how recent it is: exp(-age / scale), scales 0.5 to 4 hours, 3 to 5 such events."""
    kinds = range(whole(rng, 3, 5))
    return _terms(rng, [Recency(k, log_uniform(rng, 0.5 * HOUR, 4 * HOUR)) for k in kinds])


def rate(rng: Rng) -> Draft:
    """3 to 5 occurrences within 10 to 90 minutes; decoys are as many, spread out."""
    kinds = range(whole(rng, 3, 5))
    return _terms(rng, [Burst(k, whole(rng, 3, 5), log_uniform(rng, HOUR / 6, 1.5 * HOUR)) for k in kinds])


def dose(rng: Rng) -> Draft:
    """The number of occurrences against a soft threshold of 3 to 6."""
    kinds = range(whole(rng, 3, 5))
    return _terms(rng, [Dose(k, whole(rng, 3, 6) - 0.5, uniform(rng, 0.15, 0.35)) for k in kinds])


def value_step(rng: Rng) -> Draft:
    """An event counts where its channel value is above a threshold (-1 to 1 standard deviations)."""
    kinds = range(whole(rng, 3, 5))
    return _terms(rng, [Value(k, uniform(rng, -1, 1), np.inf) for k in kinds])


def value_smooth(rng: Rng) -> Draft:
    """The same with a sigmoid of slope 3 to 8 instead of a step."""
    kinds = range(whole(rng, 3, 5))
    return _terms(rng, [Value(k, uniform(rng, -1, 1), uniform(rng, 3, 8)) for k in kinds])


def static(rng: Rng) -> Draft:
    """A static covariate decides which event counts: the site, or (half of the labels) bands of age."""
    count = whole(rng, 3, 4)
    if rng.random() < 0.5:
        sites = rng.permutation(SITES)[:count]
        return _terms(rng, [PresenceWhere(k, 0, float(s), float(s) + 1) for k, s in enumerate(sites)])
    cuts = np.sort(rng.uniform(30, 70, size=count - 1))
    bands = np.concatenate([[20], cuts, [81]])
    return _terms(rng, [PresenceWhere(k, 1, float(bands[k]), float(bands[k + 1])) for k in range(count)])


def unanswered(rng: Rng) -> Draft:
    """An alarm that is not answered within 10 minutes to 2 hours, 2 to 4 such alarms."""
    pairs = range(whole(rng, 2, 4))
    features = [Unanswered(2 * k, 2 * k + 1, log_uniform(rng, HOUR / 6, 2 * HOUR)) for k in pairs]
    return _terms(rng, features)


def chain(rng: Rng) -> Draft:
    """Three events in order with gaps of at most 10 minutes to 6 hours, 2 to 3 such chains."""
    gaps = [tuple(log_uniform(rng, HOUR / 6, 6 * HOUR) for _ in range(2)) for _ in range(whole(rng, 2, 3))]
    features = [Chain((3 * k, 3 * k + 1, 3 * k + 2), g) for k, g in enumerate(gaps)]
    return _terms(rng, features, causes=range(3 * len(features)))


def at_least(rng: Rng) -> Draft:
    """At least k (2 to 4) of n (k + 2 to k + 4) events, each in 20 to 50 % of the sequences."""
    k = whole(rng, 2, 4)
    n = k + whole(rng, 2, 4)
    high, floor = uniform(rng, 0.8, 0.98), uniform(rng, 0.002, 0.02)
    features = tuple(Presence(i) for i in range(n))
    frequencies = tuple(float(f) for f in rng.uniform(0.2, 0.5, size=n) * uniform(rng, 0.6, 1.0))
    return Draft(features, lambda r: Independent(frequencies), lambda levels, r: AtLeast(k, high, floor))


def xor(rng: Rng) -> Draft:
    """One of two frequent events (in 20 to 60 % of the sequences), not both."""
    high, floor = uniform(rng, 0.7, 0.97), uniform(rng, 0.002, 0.02)
    frequencies = (uniform(rng, 0.2, 0.6), uniform(rng, 0.2, 0.6))
    features = (Presence(0), Presence(1))
    return Draft(features, lambda r: Independent(frequencies), lambda levels, r: Parity(high, floor))


def network(rng: Rng) -> Draft:
    """A random network of 4 to 8 units over recency, dose and value of 4 to 6 events."""
    kinds = range(whole(rng, 4, 6))
    features = tuple(_any_state(rng, k) for k in kinds)
    units = whole(rng, 4, 8)
    inner = tuple(tuple(float(x) for x in rng.normal(0, 3, size=units)) for _ in kinds)
    biases = tuple(float(x) for x in rng.normal(0, 1, size=units))
    outer = tuple(float(x) for x in rng.normal(0, 1, size=units))
    frequencies = tuple(float(f) for f in rng.uniform(0.25, 0.45, size=len(features)))
    steepness = uniform(rng, 8, 16)

    def finish(draw_levels: Levels, target: float) -> Link:
        levels = draw_levels()
        score = Network(inner, biases, outer, 1.0, 0.0).score(levels)
        scale = steepness / float(np.ptp(score))
        margin = 20 / scale
        threshold = _solve(
            lambda t: Network(inner, biases, outer, scale, t).of(levels),
            target,
            score.min() - margin,
            score.max() + margin,
        )
        return Network(inner, biases, outer, scale, threshold)

    return Draft(features, lambda r: Independent(frequencies, active=0.5), finish)


def hazard(rng: Rng) -> Draft:
    """Time to event: the rate of the label in 2 to 7 days of follow-up; a third or so of the sequences is censored."""
    kinds = range(whole(rng, 3, 5))
    features = tuple(Recency(k, log_uniform(rng, HOUR, 6 * HOUR)) for k in kinds)
    weights = tuple(uniform(rng, 4, 6) for _ in kinds)
    fading = tuple(log_uniform(rng, 0.5 * DAY, 4 * DAY) for _ in kinds)
    follow, censored = uniform(rng, 2, 7) * DAY, uniform(rng, 0.2, 0.5)
    plan = _scenarios(rng, [0.75] * len(features))

    def finish(draw_levels: Levels, target: float) -> Link:
        levels = draw_levels()

        def probs(log_base: float) -> Float:
            return Hazard(weights, fading, float(np.exp(log_base)), follow, censored).of(levels)

        log_base = _solve(probs, target, np.log(1e-4 / follow), np.log(10 / follow))
        return Hazard(weights, fading, float(np.exp(log_base)), follow, censored)

    return Draft(features, plan, finish)


def symptoms(rng: Rng) -> Draft:
    """A before B within 10 minutes to 4 hours; one or two symptoms are always written after it and never without it."""
    count = whole(rng, 2, 3)
    features = [Chain((2 * k, 2 * k + 1), (log_uniform(rng, HOUR / 6, 4 * HOUR),)) for k in range(count)]
    free = 2 * count
    written = []
    for _ in range(count):
        more = whole(rng, 1, 2)
        written.append(tuple(range(free, free + more)))
        free += more
    return _terms(rng, features, causes=range(2 * count), symptoms=tuple(written))


def unrecorded(rng: Rng) -> Draft:
    """One cause is never recorded; two or three signs of it are, with chances of 0.5 to 0.95 (else 0.01 to 0.05)."""
    return _with_hidden(rng, [Presence(k) for k in range(whole(rng, 1, 3))], signs=whole(rng, 2, 3))


def hidden_driver(rng: Rng) -> Draft:
    """A hidden variable drives one recorded event and the label; 2 to 4 recorded causes beside it count by recency."""
    kinds = range(whole(rng, 2, 4))
    return _with_hidden(rng, [Recency(k, log_uniform(rng, 0.5 * HOUR, 4 * HOUR)) for k in kinds], signs=1)


def self_exciting(rng: Rng) -> Draft:
    """Events that bring about their own repeats; the label counts the recent ones, cooled-down clusters are decoys."""
    kinds = range(whole(rng, 3, 5))
    features = [
        Excitation(k, log_uniform(rng, 0.5 * HOUR, 3 * HOUR), uniform(rng, 1.0, 3.0), uniform(rng, 0.15, 0.3))
        for k in kinds
    ]
    return _terms(rng, features)


def _any_state(rng: Rng, kind: int) -> Feature:
    drawn = whole(rng, 0, 2)
    if drawn == 0:
        return Recency(kind, log_uniform(rng, 0.5 * HOUR, 4 * HOUR))
    if drawn == 1:
        return Dose(kind, whole(rng, 2, 4) + 0.5, uniform(rng, 0.15, 0.35))
    return Value(kind, uniform(rng, -1, 1), uniform(rng, 3, 8))


def _scenarios(rng: Rng, strengths: list[float]) -> Callable[[float], Plan]:
    active, decoy, second = uniform(rng, 0.35, 0.7), uniform(rng, 0.6, 0.85), uniform(rng, 0.05, 0.25)
    mean = float(np.mean(strengths))

    def plan(target: float) -> Plan:
        often = min(max(active, target / (0.9 * mean)), 1.0)  # a frequent label needs more of its sequences active
        return Scenarios(min(target / (often * mean), 0.9), often, decoy, second)

    return plan


def _terms(
    rng: Rng,
    features: Sequence[Feature],
    causes: range | None = None,
    symptoms: tuple[tuple[int, ...], ...] = (),
) -> Draft:
    """Each feature is one way to the label (strength 0.75 to 0.98): a noisy OR, or a risk score with the same ends."""
    strengths = [uniform(rng, 0.75, 0.98) for _ in features]
    floor, logistic = uniform(rng, 0.001, 0.01), rng.random() < 0.5

    def finish(draw_levels: Levels, target: float) -> Link:
        low = min(floor, target / 20)
        if not logistic:
            return NoisyOr(tuple(strengths), low)
        start = float(np.log(low / (1 - low)))
        return Logistic(tuple(float(np.log(s / (1 - s))) - start for s in strengths), start)

    return Draft(
        tuple(features), _scenarios(rng, strengths), finish, tuple(causes) if causes else None, symptoms=symptoms
    )


def _score(rng: Rng, weights: list[float], frequency: tuple[float, float], causes: range) -> Draft:
    features = tuple(Presence(k) for k in range(len(weights)))
    frequencies = tuple(float(f) for f in rng.uniform(*frequency, size=len(weights)))

    def finish(draw_levels: Levels, target: float) -> Link:
        levels = draw_levels()
        intercept = _solve(lambda b: Logistic(tuple(weights), b).of(levels), target, -30.0, 30.0)
        return Logistic(tuple(weights), intercept)

    return Draft(features, lambda r: Independent(frequencies), finish, tuple(causes))


def _with_hidden(rng: Rng, features: Sequence[Feature], signs: int) -> Draft:
    strengths = [uniform(rng, 0.75, 0.98) for _ in features]
    share, hidden_strength = uniform(rng, 0.3, 0.6), uniform(rng, 0.75, 0.98)
    floor, recorded = uniform(rng, 0.001, 0.01), len(features)
    on = tuple(uniform(rng, 0.5, 0.95) for _ in range(signs))
    off = tuple(uniform(rng, 0.01, 0.05) for _ in range(signs))
    plan = _scenarios(rng, strengths)
    numbers = tuple(range(recorded, recorded + signs))
    return Draft(
        tuple(features),
        lambda target: plan(target * (1 - share)),
        lambda levels, target: NoisyOr((*strengths, hidden_strength), min(floor, target / 20)),
        hidden=Hidden(share, numbers, on, off),  # the prior is scaled to the label's rate when the world is made
    )


def _solve(probs: Callable[[float], Float], target: float, low: float, high: float) -> float:
    """The constant for which the mean of the probabilities is the target."""
    return float(brentq(lambda x: float(probs(x).mean()) - target, low, high))


KINDS: dict[str, Callable[[Rng], Draft]] = {
    "additive": additive,
    "many-weak": many_weak,
    "decay": decay,
    "rate": rate,
    "dose": dose,
    "value-step": value_step,
    "value-smooth": value_smooth,
    "static": static,
    "unanswered": unanswered,
    "chain": chain,
    "at-least": at_least,
    "xor": xor,
    "network": network,
    "hazard": hazard,
    "symptoms": symptoms,
    "unrecorded": unrecorded,
    "hidden-driver": hidden_driver,
    "self-exciting": self_exciting,
    "rare": chain,
}
"""Name -> how a label is drafted."""


def label_rates(rng: Rng, kind: str) -> list[float]:
    """Rates of 12 labels, 0.03 to 0.4; `rare`: 0.001 to 0.5; `many-weak`: 6 labels, no more event types are free."""
    if kind == "rare":
        return [float(r) for r in rng.permutation(np.geomspace(0.001, 0.5, 12))]
    if kind == "many-weak":
        return [log_uniform(rng, 0.1, 0.4) for _ in range(6)]
    return [log_uniform(rng, 0.03, 0.4) for _ in range(12)]


STATE_DECIDES = frozenset(KINDS) - {"additive", "many-weak", "at-least", "xor", "unrecorded"}
"""Kinds in which order, recency, rate, value, covariate or state decide: presence is not enough to know the causes."""

CORE = ("additive", "decay", "value-step", "static", "chain", "at-least")
"""Six kinds that are measured with three seeds."""

RECORD_ONLY = ("unanswered", "network", "self-exciting")
"""Kinds on which nothing is trained or scored but for the record: they are made and audited, and choose nothing."""

FIRST_RECORDED_SEED = 1000
"""Seeds from here on are kept for the record too."""
