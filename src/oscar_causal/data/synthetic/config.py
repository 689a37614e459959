"""Every knob of a synthetic fleet, with what it does written under it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from oscar_causal.errors import UsageError

BLOCK_SEQUENCES = 1024
"""Sequences drawn together; their randomness is keyed by (seed, number of the block) and by nothing else."""

PUBLISHED_SIZES = ((1, 56), (2, 32), (3, 35), (4, 42), (5, 17), (6, 17), (7, 11), (8, 9))
"""How many labels of the published vehicle data have a boundary of 1, 2, ... events."""
PUBLISHED_TAIL = ((9, 5), (10, 4), (11, 3), (13, 2), (16, 1), (20, 1), (25, 1), (42, 1), (71, 1))
"""The thin tail beyond, shaped to the published largest size (71) and mean (4.4)."""


@dataclass(frozen=True)
class FleetConfig:
    """What a fleet looks like. Checked when it is made: a value that cannot be is a UsageError that names the knob."""

    event_types: int = 3_000
    """Different trouble codes, V."""
    labels: int = 60
    """Different labels, Y."""
    sequences: int = 20_000
    """Sequences to draw. The first sequences of a longer fleet are those of a shorter one."""
    mean_length: float = 100.0
    """Mean number of events of a sequence."""
    sd_length: float = 50.0
    """Standard deviation of the number of events (gamma distributed)."""

    event_tail: float = 1.05
    """Exponent of the long tail of events without a role: the k-th most frequent comes about as k ** -event_tail."""
    bursts: float = 6.0
    """Mean number of background events written in one burst, seconds apart (1 = no bursts)."""
    repeats: float = 0.08
    """Probability that a background event repeats the one before it in its burst, and that a cause comes again."""
    cascades: float = 0.15
    """Probability that a background event is the follower of the one before it (each code has one usual follower)."""
    sequences_per_subject: float = 1.3
    """Mean number of sequences of one car."""
    missing_mileage: float = 0.1
    """Share of events whose mileage was not written."""
    days: int = 730
    """Sequences begin within so many days from 1 January 2023."""

    labels_per_sequence: float = 1.2
    """Planned mean number of labels of a sequence; shared causes and noise move the real one a little."""
    label_tail: float = 1.1
    """Long tail of labels: standard deviation of the logarithm of their frequencies (0 = all equally frequent)."""
    boundary_sizes: tuple[tuple[int, float], ...] = PUBLISHED_SIZES
    """Weights of the number of events in a boolean rule, negated ones included: ((size, weight), ...)."""
    shared_causes: float = 0.7
    """Share of the places in rules, less one clause of each, that take an event which already causes another label."""
    or_share: float = 0.5
    """Share of the boolean labels with room for it whose rule has alternatives, `A & (B | C)`."""
    not_share: float = 0.25
    """Share of the labels with room for it whose rule has a blocker, `A & B & !D`."""

    near_misses: float = 0.6
    """Scenarios that just miss their label, per scenario that brings it: a clause left out, or a blocker present."""
    symptoms: float = 0.7
    """Probability of each symptom in a scenario, near misses included: symptoms accompany and do not cause."""
    symptoms_per_label: int = 2
    """Different symptoms of each label."""
    precursors: float = 0.4
    """Probability that a cause is announced by its precursor, near misses included: precursors do not cause."""
    redundant_causes: float = 0.2
    """Probability that a second alternative of a clause (or a second route) is satisfied too."""
    stray_events: float = 0.3
    """How often causes, blockers, symptoms and precursors come alone, relative to how often scenarios bring them."""
    hidden_driver: float = 0.0
    """Share of labels under a hidden driver: in a fifth of the sequences their scenarios and a harmless event each
    become more frequent together, although neither causes the other."""

    lost_labels: float = 0.0
    """Probability that a label which came about is not recorded."""
    false_labels: float = 0.0
    """Labels recorded without a reason, as a share of each label's planned frequency."""
    drift: float = 0.0
    """Share of the labels whose rule changes at a date; `rules.json` has one of its versions, with `from` or `to`."""
    missing_rules: float = 0.12
    """Share of the labels whose (real) rule is left out of `rules.json`."""
    probabilistic_labels: float = 0.0
    """Share of the labels with graded effects: each present cause brings the label with its own probability, each
    present inhibitor prevents it with its own."""
    null: bool = False
    """The same events, but labels that depend on nothing, at the same frequencies."""

    temporal_labels: float = 0.0
    """Share of the labels with several routes made of order, windows and counts instead of a boolean rule."""
    routes: float = 2.25
    """Mean number of routes of a temporal label, two at least: 2.25 = three quarters have two, the others three."""
    orders: float = 0.4
    """Weight of routes `A then B`."""
    windows: float = 0.4
    """Weight of routes `A then B within ...`."""
    counts: float = 0.2
    """Weight of routes `A >= n & B`."""
    decoys: float = 0.0
    """Probability that each other route of a temporal label stands by, complete but in the wrong order, too late or
    too few."""

    def __post_init__(self) -> None:
        for name, (low, high) in _BOUNDS.items():
            _check_number(name, getattr(self, name), low, high, whole=name in _WHOLE)
        if not isinstance(self.null, bool):
            raise UsageError(f"null: expected true or false, got {self.null!r}")
        if self.repeats + self.cascades > 0.9:
            raise UsageError(f"repeats + cascades: expected at most 0.9, got {self.repeats + self.cascades:g}")
        if self.temporal_labels + self.probabilistic_labels > 1:
            total = self.temporal_labels + self.probabilistic_labels
            raise UsageError(f"temporal_labels + probabilistic_labels: expected at most 1, got {total:g}")
        if self.temporal_labels and self.orders + self.windows + self.counts <= 0:
            raise UsageError("orders, windows, counts: expected a weight above 0 for at least one, got none")
        object.__setattr__(self, "boundary_sizes", _checked_sizes(self.boundary_sizes))

    def to_json(self) -> dict[str, Any]:
        """The knobs for `dataset.json`."""
        return {**asdict(self), "boundary_sizes": {str(size): weight for size, weight in self.boundary_sizes}}


_BOUNDS: dict[str, tuple[float, float]] = {
    "event_types": (10, 10_000_000),
    "labels": (1, 100_000),
    "sequences": (1, 1_000_000_000),
    "mean_length": (4, 100_000),
    "sd_length": (0, 100_000),
    "event_tail": (0, 5),
    "bursts": (1, 1_000),
    "repeats": (0, 0.9),
    "cascades": (0, 0.9),
    "sequences_per_subject": (1, 1_000),
    "missing_mileage": (0, 1),
    "days": (2, 20_000),
    "labels_per_sequence": (0, 20),
    "label_tail": (0, 3),
    "shared_causes": (0, 0.9),
    "or_share": (0, 1),
    "not_share": (0, 1),
    "near_misses": (0, 10),
    "symptoms": (0, 1),
    "symptoms_per_label": (0, 20),
    "precursors": (0, 1),
    "redundant_causes": (0, 1),
    "stray_events": (0, 10),
    "hidden_driver": (0, 1),
    "lost_labels": (0, 1),
    "false_labels": (0, 1),
    "drift": (0, 1),
    "missing_rules": (0, 1),
    "probabilistic_labels": (0, 1),
    "temporal_labels": (0, 1),
    "routes": (2, 4),
    "orders": (0, 1_000),
    "windows": (0, 1_000),
    "counts": (0, 1_000),
    "decoys": (0, 1),
}
_WHOLE = ("event_types", "labels", "sequences", "days", "symptoms_per_label")
MAX_SIZE = 100
"""Largest boundary a rule may have."""


def _check_number(name: str, value: Any, low: float, high: float, *, whole: bool) -> None:
    kinds = int if whole else (int, float)
    kind = "a whole number" if whole else "a number"
    if isinstance(value, bool) or not isinstance(value, kinds) or not math.isfinite(value) or not low <= value <= high:
        raise UsageError(f"{name}: expected {kind} from {low:,g} to {high:,g}, got {value!r}")


def _checked_sizes(sizes: Any) -> tuple[tuple[int, float], ...]:
    try:
        pairs = tuple((size, weight) for size, weight in sizes)
    except (TypeError, ValueError) as error:
        raise UsageError(f"boundary_sizes: expected pairs of size and weight, got {sizes!r}") from error
    for size, weight in pairs:
        _check_number("boundary_sizes (a size)", size, 1, MAX_SIZE, whole=True)
        _check_number("boundary_sizes (a weight)", weight, 0, 1e9, whole=False)
    if len({size for size, _ in pairs}) != len(pairs):
        raise UsageError(f"boundary_sizes: expected each size once, got {[size for size, _ in pairs]}")
    if sum(weight for _, weight in pairs) <= 0:
        raise UsageError("boundary_sizes: expected a weight above 0 for at least one size, got none")
    return tuple(sorted(pairs))
