"""A world: event types, label mechanisms, and the sequences they are drawn with."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace

import numpy as np

from oscar_causal.data.synthetic.worlds.features import Value
from oscar_causal.data.synthetic.worlds.kinds import DAY, KINDS, SITES, Draft, label_rates, uniform
from oscar_causal.data.synthetic.worlds.mechanism import Hazard, Mechanism
from oscar_causal.data.synthetic.worlds.occurrences import Bool, Float, Recorded
from oscar_causal.data.synthetic.worlds.planting import (
    MISSING_VALUES,
    Plan,
    Planted,
    Rng,
    Sequence,
    plant,
    plant_signs,
)
from oscar_causal.errors import UsageError

EVENT_TYPES = 300
PILOT = 2000
"""Sequences on which the rate of a label is set; they are thrown away."""
LEAST_DAYS, MOST_DAYS = 2.0, 6.0


@dataclass(frozen=True)
class Label:
    """A label's mechanism and how its events are put into sequences."""

    mechanism: Mechanism
    plan: Plan
    symptoms: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class World:
    """Everything that a kind and a seed decide; sequences are drawn from it."""

    kind: str
    seed: int
    labels: tuple[Label, ...]
    frequencies: Float
    """(V,): how often each event type is drawn as background; types that a label depends on have none."""
    mean_length: float
    burstiness: float

    @property
    def event_names(self) -> list[str]:
        """Names of the event types; the last one ends every record."""
        return [f"E{i:03d}" for i in range(EVENT_TYPES - 1)] + ["READOUT"]

    @property
    def label_names(self) -> list[str]:
        """Names of the labels."""
        return [label.mechanism.label for label in self.labels]

    @property
    def has_values(self) -> bool:
        """Whether events carry a channel value."""
        return self.kind in ("value-step", "value-smooth", "network")

    @property
    def has_static(self) -> bool:
        """Whether sequences carry static covariates."""
        return self.kind == "static"

    def probs(self, recorded: Recorded) -> Float:
        """(n, Y): P(label | recorded sequence)."""
        return np.stack([m.probs(recorded.occurrences(m.types, EVENT_TYPES)) for m in self.mechanisms], axis=1)

    @property
    def mechanisms(self) -> list[Mechanism]:
        """One for each label."""
        return [label.mechanism for label in self.labels]


@dataclass(frozen=True)
class Drawn:
    """Sequences with their labels."""

    recorded: Recorded
    labels: Bool
    """(n, Y)."""
    delays_s: Float
    """(n, Y): how long after the end of the record the label came; NaN where the kind knows no label times."""


def make_world(kind: str, seed: int) -> World:
    """The world of this kind and seed; another seed is another mechanism for every label."""
    if kind not in KINDS:
        raise UsageError(f"world: expected one of {', '.join(KINDS)}, got {kind!r}")
    rng = _stream(kind, seed, "constants")
    order, taken = rng.permutation(EVENT_TYPES - 1), 0
    labels = []
    for number, target in enumerate(label_rates(rng, kind)):
        draft = KINDS[kind](rng)
        width = 1 + max(t for part in _own_types(draft) for t in part)
        own, taken = tuple(int(t) for t in order[taken : taken + width]), taken + width
        labels.append(_label(rng, f"L{number:02d}", own, draft, target))
    background = np.arange(1, EVENT_TYPES + 1) ** -uniform(rng, 0.6, 1.1)
    background = rng.permutation(background)
    used = {t for label in labels for t in label.mechanism.types} | {EVENT_TYPES - 1}
    background[list(used)] = 0
    return World(kind, seed, tuple(labels), background / background.sum(), uniform(rng, 40, 65), uniform(rng, 0.2, 0.6))


def draw(world: World, count: int, part: str) -> Drawn:
    """`count` sequences; `part` (train, test, ...) names an independent stream of them."""
    rng = _stream(world.kind, world.seed, part)
    statics = _statics(rng, count)
    hidden = np.array([[_prior(label) for label in world.labels]])
    on = rng.random((count, len(world.labels))) < hidden
    recorded = _join([_one(rng, world, statics[i], on[i]) for i in range(count)], statics)
    labels, delays = _outcomes(rng, world, recorded, on)
    return Drawn(recorded, labels, delays)


def _stream(kind: str, seed: int, purpose: str) -> Rng:
    return np.random.default_rng([seed, zlib.crc32(kind.encode()), zlib.crc32(purpose.encode())])


def _own_types(draft: Draft) -> list[tuple[int, ...]]:
    signs = [draft.hidden.signs] if draft.hidden is not None else []
    return [*(feature.types for feature in draft.features), *signs, *draft.symptoms]


def _label(rng: Rng, name: str, own: tuple[int, ...], draft: Draft, target: float) -> Label:
    plan = draft.plan(target)
    causes = draft.causes if draft.causes is not None else tuple(f.types[0] for f in draft.features)
    hidden = draft.hidden and replace(draft.hidden, prior=draft.hidden.prior * target)
    mechanism = Mechanism(name, own, causes, draft.features, _Unset(), hidden)
    link = draft.finish(lambda: mechanism.levels(_pilot(rng, plan, mechanism).occurrences(own, EVENT_TYPES)), target)
    return Label(replace(mechanism, link=link), plan, draft.symptoms)


class _Unset:
    """The link of a label whose rate is not set yet."""

    def of(self, levels: Float) -> Float:
        raise AssertionError("the link is finished before it is used")


def _pilot(rng: Rng, plan: Plan, mechanism: Mechanism) -> Recorded:
    """Sequences that hold nothing but this label's events."""
    statics = _statics(rng, PILOT)
    rows = []
    for i in range(PILOT):
        at = Sequence(uniform(rng, LEAST_DAYS, MOST_DAYS) * DAY, statics[i])
        rows.append((_numbered(plant(rng, plan, mechanism.features, at), mechanism), at.end_s))
    return _join([_sorted(events, end) for events, end in rows], statics)


def _one(rng: Rng, world: World, static: Float, on: Bool) -> list[Planted]:
    """The events of one sequence: background, what every label plants, and the read-out that ends it."""
    at = Sequence(uniform(rng, LEAST_DAYS, MOST_DAYS) * DAY, static)
    count = int(rng.poisson(world.mean_length * rng.gamma(4.0, 0.25)))
    kinds = rng.choice(EVENT_TYPES, size=count, p=world.frequencies)
    centres = rng.uniform(0, at.end_s, size=max(count // 8, 1))
    near = centres[rng.integers(len(centres), size=count)] + rng.normal(0, 1800, size=count)
    times = np.where(rng.random(count) < world.burstiness, near, rng.uniform(0, at.end_s, size=count))
    values = rng.normal(size=count) if world.has_values else np.full(count, np.nan)
    values[rng.random(count) < MISSING_VALUES] = np.nan
    events = list(zip(kinds.tolist(), np.clip(times, 0, at.end_s).tolist(), values.tolist(), strict=True))
    for label, is_on in zip(world.labels, on, strict=True):
        events += _numbered(_with_values(rng, world, label, _planted(rng, label, at, bool(is_on))), label.mechanism)
    return _sorted(events, at.end_s)


def _planted(rng: Rng, label: Label, at: Sequence, is_on: bool) -> list[Planted]:
    mechanism = label.mechanism
    events = plant(rng, label.plan, mechanism.features, at)
    if mechanism.hidden is not None:
        events += plant_signs(rng, mechanism.hidden, is_on, at)
    if label.symptoms and events:
        levels = mechanism.levels(
            _join([_sorted(events, at.end_s)], at.static[None]).occurrences(range(len(mechanism.types)), EVENT_TYPES)
        )[0]
        for written in (label.symptoms[i] for i in np.flatnonzero(levels > 0.5)):
            events += [(kind, uniform(rng, events[0][1], at.end_s), float("nan")) for kind in written]
    return events


def _with_values(rng: Rng, world: World, label: Label, events: list[Planted]) -> list[Planted]:
    """Where events carry values, those whose value does not matter have one too, so that it gives nothing away."""
    if not world.has_values:
        return events
    matters = {feature.kind for feature in label.mechanism.features if isinstance(feature, Value)}
    return [
        (kind, time, value if kind in matters or rng.random() < MISSING_VALUES else float(rng.normal()))
        for kind, time, value in events
    ]


def _numbered(events: list[Planted], mechanism: Mechanism) -> list[Planted]:
    return [(mechanism.types[kind], time, value) for kind, time, value in events]


def _sorted(events: list[Planted], end_s: float) -> list[Planted]:
    return [*sorted(events, key=lambda event: event[1]), (EVENT_TYPES - 1, end_s, float("nan"))]


def _join(rows: list[list[Planted]], static: Float) -> Recorded:
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    flat = np.array([event for row in rows for event in row], float).reshape(-1, 3)
    return Recorded(offsets, flat[:, 0].astype(np.int64), flat[:, 1], flat[:, 2], static)


def _statics(rng: Rng, count: int) -> Float:
    return np.column_stack([rng.integers(0, SITES, size=count), np.floor(rng.uniform(20, 81, size=count))]).astype(
        float
    )


def _prior(label: Label) -> float:
    return label.mechanism.hidden.prior if label.mechanism.hidden is not None else 0.0


def _outcomes(rng: Rng, world: World, recorded: Recorded, on: Bool) -> tuple[Bool, Float]:
    labels, delays = np.zeros(on.shape, bool), np.full(on.shape, np.nan)
    for y, mechanism in enumerate(world.mechanisms):
        seen = recorded.occurrences(mechanism.types, EVENT_TYPES)
        if isinstance(mechanism.link, Hazard):
            labels[:, y], delays[:, y] = mechanism.link.draw(mechanism.levels(seen), rng)
        else:
            labels[:, y] = rng.random(len(recorded)) < mechanism.probs_given(seen, on[:, y].astype(float))
    return labels, delays
