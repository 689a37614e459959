"""What observed labels say of an event in this very sequence: a boundary, read with the event and without it.

A boundary's features (`A`, `A then B within 600s`, `A >= 3`: those of a classical boundary or the parts of a recovered
rule) hold here or do not: that is the sequence's *pattern*. How often the label came with each pattern is counted over
the fleet. Without an event every feature that names it fails; so the counts tell what would have become of the label.
With P1 = P(label | pattern) and P0 = the same without the event

    acted = (P1 - P0) / (1 - P0) / P1

is the chance that the event acted, given that the label came, if causes act independently of each other (Cheng's causal
power, 1997, over P1). Where P0 nears 1 the rest suffices and the ratio is all noise; `DOUBT` shrinks it there.

Stand-ins hide an event: of four events of which any two suffice, none is missed. So an event that seems quiet is asked
for again with other quiet ones taken out first, one after the other as long as the label stays likely, each time the
one without which the event shows most. `outside` is the share of labels that would have come with none of the
features: near 0 the boundary explains this label, near 1 something else brought it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from oscar_causal.data.rules import EventIndex, Rule, event_names, format_rule, parse
from oscar_causal.data.rules.tree import Atom, atoms
from oscar_causal.data.sequences import Dataset
from oscar_causal.discovery.additive import additive_chances
from oscar_causal.discovery.evidence import FOLDS, GROUPS, FleetEvidence, pattern_evidence, subject_groups
from oscar_causal.errors import DataError

Float64 = npt.NDArray[np.float64]
DOUBT = 0.2
"""Added to 1 - P0: label noise, and redundancy nobody recorded."""
IMAGINED = 0.5
"""A pattern starts with so many imagined sequences, half of them with the label; without an event `WITHOUT` * P1. Few:
most labels follow rules, so a pattern that was met a few times, always with the label, is soon believed."""
IMAGINED_IN_SEARCH = 2.0
"""The same where a search for boundaries predicts labels of other folds."""
WITHOUT = 0.3
"""How likely a label is guessed to stay without an event of its boundary, as a share, where nobody has seen it."""
STAYS = 0.5
"""Stand-ins may be taken out as long as the label stays at least so likely, as a share of P1."""
UNSEEN = 0.01
"""In so many sequences a label may come by a way that nobody has seen yet: a pattern with which it hardly ever came
explains nothing, however much rarer it is without."""
QUIET, PLAIN = 0.5, 0.9
"""An event that acted with less than the first chance may have stand-ins; with the second it is not asked for again."""
LEAST_CHANCE = 1e-6
REMEMBERED = 1 << 16
"""Readings that are kept to be given again."""
SURE = 0.999
"""No count makes a cause certain: the assumptions may fail."""


def _feature(text: str) -> Atom:
    rule = parse(text)
    if not isinstance(rule, Atom):
        raise DataError(f"feature: expected an event, an order or a count, got {text!r}")
    return rule


@dataclass(frozen=True)
class Features:
    """The boundary of one label as features."""

    raising: tuple[str, ...]
    lowering: tuple[str, ...] = ()

    @cached_property
    def atoms(self) -> tuple[Atom, ...]:
        """Raising ones first; feature k is bit k of a pattern."""
        return tuple(_feature(text) for text in (*self.raising, *self.lowering))

    @cached_property
    def names(self) -> tuple[frozenset[str], ...]:
        """The events of each feature."""
        return tuple(frozenset(event_names(atom)) for atom in self.atoms)

    def __bool__(self) -> bool:
        return bool(self.raising or self.lowering)

    def pattern(self, index: EventIndex) -> int:
        """The pattern of the one sequence of an index."""
        return sum(1 << k for k, atom in enumerate(self.atoms) if index.holds(atom)[0])

    @cached_property
    def digest(self) -> str:
        """Tells boundaries apart: counts of one say nothing about another."""
        text = "\n".join((*self.raising, "", *self.lowering))
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    def without(self, pattern: int, *events: str) -> int:
        """The pattern with events taken out: features that name one of them fail.

        >>> Features(("A then B", "C")).without(0b11, "B")
        2
        """
        failing = sum(1 << k for k, names in enumerate(self.names) if names & set(events))
        return pattern & ~failing


NONE = Features(())


def rule_features(rule: Rule) -> Features:
    """The parts of a rule: those it asks for raise the label, those it negates lower it.

    >>> rule_features(parse("A & (B >= 2 | A then D) & !C"))
    Features(raising=('A', 'B >= 2', 'A then D'), lowering=('C',))
    """
    parts = [(format_rule(atom), positive) for atom, positive in atoms(rule)]
    raising = dict.fromkeys(text for text, positive in parts if positive)
    lowering = dict.fromkeys(text for text, positive in parts if not positive and text not in raising)
    return Features(tuple(raising), tuple(lowering))


@dataclass(frozen=True)
class Read:
    """A boundary read in one sequence."""

    acted: Mapping[str, float]
    """Event -> the chance that it acted; events that are not in it did not."""
    outside: float
    """Share of labels of this pattern that would have come without the boundary."""


@dataclass(frozen=True, eq=False)
class Readings:
    """Counts of patterns by label and fold of subjects."""

    features: Mapping[str, Features]
    counts: Mapping[str, Mapping[int, npt.NDArray[np.int64]]]
    """Label -> pattern -> (2, FOLDS): sequences, and those with the label."""

    def suspects(self, label: str, event: str) -> bool:
        """Is the event in the boundary of a label that was counted?"""
        return label in self.counts and any(event in names for names in self.features[label].names)

    def read(self, label: str, index: EventIndex, fold: int) -> Read | None:
        """The label's boundary in the one sequence of `index`, its own fold not counted; None = nothing was counted."""
        if label not in self.counts:
            return None
        return self.of_pattern(label, self.features[label].pattern(index), fold)

    def of_pattern(self, label: str, pattern: int, fold: int) -> Read:
        """The same for a pattern."""
        known = self._read.get((label, pattern, fold))
        if known is None:
            if len(self._read) >= REMEMBERED:
                self._read.clear()
            known = self._read[label, pattern, fold] = self._of_pattern(label, pattern, fold)
        return known

    @cached_property
    def _read(self) -> dict[tuple[str, int, int], Read]:
        return {}

    def _of_pattern(self, label: str, pattern: int, fold: int) -> Read:
        features, whole = self.features[label], self._probability(label, pattern, fold, 0.5)
        holding = sorted({name for k, names in enumerate(features.names) if pattern >> k & 1 for name in names})
        alone = {event: self._acted(label, (pattern, whole), event, fold) for event in holding}
        quiet = [event for event in holding if alone[event] < QUIET]
        found = {
            event: max(chance, self._hidden(label, (pattern, whole), event, quiet, fold)) if event in quiet else chance
            for event, chance in alone.items()
        }
        return Read({event: chance for event, chance in found.items() if chance > 0}, self._leak(label, pattern, fold))

    def _acted(self, label: str, having: tuple[int, float], event: str, fold: int) -> float:
        """Did the event act? `having`: a pattern and P(label) with it."""
        (pattern, chance), other = having, self.features[label].without(having[0], event)
        if other == pattern:
            return 0.0
        return acted(chance, _or_unseen(self._probability(label, other, fold, _guess(chance))))

    def _hidden(self, label: str, having: tuple[int, float], event: str, quiet: list[str], fold: int) -> float:
        """The chance that it acted behind stand-ins, which are taken out one after the other."""
        (pattern, whole), features, best = having, self.features[label], 0.0
        others = [other for other in quiet if other != event]
        while others and best < PLAIN:
            tried = []
            for other in others:
                rest = features.without(pattern, other)
                without = features.without(rest, event)
                chance = _or_unseen(self._probability(label, rest, fold, 0.0))
                if pattern != rest != without and chance >= STAYS * whole:
                    shown = self._acted(label, (rest, chance), event, fold) * min(chance / whole, 1.0)
                    tried.append((shown, -self._probability(label, without, fold, _guess(chance)), other, rest))
            if not tried:
                break
            shown, _, taken, pattern = max(tried)
            best = max(best, shown)
            others.remove(taken)
        return best

    def log_likelihood(self, label: str) -> float:
        """Of the label in every counted sequence, predicted from its pattern in all other folds.

        A pattern that was hardly ever met is guessed from its features one by one (`additive`): of a boundary with
        many of them most patterns are new.
        """
        patterns = self.counts[label]
        holds = np.array([[p >> k & 1 for k in range(len(self.features[label].atoms))] for p in patterns], bool)
        return cross_fold_likelihood(holds, np.stack([*patterns.values()]))

    def _leak(self, label: str, pattern: int, fold: int) -> float:
        none = pattern >> len(self.features[label].raising) << len(self.features[label].raising)
        if none == pattern:
            return 1.0
        whole = self._probability(label, pattern, fold, 0.5)
        return min(_or_unseen(self._probability(label, none, fold, self._frequency(label, fold))) / whole, 1.0)

    def _probability(self, label: str, pattern: int, fold: int, guess: float) -> float:
        sums = self.counts[label].get(pattern)
        number, came = (0, 0) if sums is None else (int(sums[k].sum() - sums[k, fold]) for k in (0, 1))
        return (came + IMAGINED * guess) / (number + IMAGINED)

    def _frequency(self, label: str, fold: int) -> float:
        number, came = (int(sums.sum() - sums[fold]) for sums in self._totals[label])
        return came / max(number, 1)

    @cached_property
    def _totals(self) -> dict[str, npt.NDArray[np.int64]]:
        return {label: np.sum(list(patterns.values()), axis=0) for label, patterns in self.counts.items()}


def cross_fold_likelihood(holds: npt.NDArray[np.bool_], counts: npt.NDArray[np.int64]) -> float:
    """See `Readings.log_likelihood`: which features hold in each pattern, (patterns, features), and how often the
    pattern was met and met with the label in each fold, (patterns, 2, FOLDS).
    """
    numbers, positives = counts.transpose(1, 2, 0).astype(np.float64)  # (FOLDS, patterns)
    number, came = (part.sum(0) - part for part in (numbers, positives))
    guess = additive_chances(holds, number, came)
    chance = np.clip(
        (came + IMAGINED_IN_SEARCH * guess) / (number + IMAGINED_IN_SEARCH), LEAST_CHANCE, 1 - LEAST_CHANCE
    )
    return float((positives * np.log(chance) + (numbers - positives) * np.log(1 - chance)).sum())


def _guess(chance: float) -> float:
    """P(label) without an event of its boundary, where nobody has seen it, from that with the event."""
    return chance * (1 - (1 - WITHOUT) * chance**2)


def _or_unseen(probability: float) -> float:
    return 1 - (1 - probability) * (1 - UNSEEN)


def acted(with_event: float, without: float) -> float:
    """The chance that an event acted, from P(label) with it and without it.

    >>> [round(acted(*pair), 3) for pair in ((0.96, 0.01), (0.96, 0.4), (0.995, 0.98), (0.5, 0.6))]
    [0.998, 0.875, 0.082, 0.0]
    """
    power = (1 + DOUBT) * (with_event - without) / (1 - without + DOUBT)
    return float(np.clip(power / max(with_event, 1e-9), 0.0, SURE))


def count_patterns(dataset: Dataset, *sources: Mapping[str, Features]) -> FleetEvidence:
    """How often each pattern was met, and met with its label, over the labelled sequences; statistics alone.

    Each source gives the boundaries of labels; what two of them share is counted once.
    """
    data = dataset if dataset.labelled.all() else dataset.take(dataset.labelled)
    names = {name: number for number, name in enumerate(data.event_names)}
    index = EventIndex(data.events.offsets, data.events.ids, data.times, names)
    labels = {name: number for number, name in enumerate(data.label_names)}
    group, parts, rows = subject_groups(data.subject_ids), [], data.labels.rows()
    wanted = {(label, part.digest): part for features in sources for label, part in features.items()}
    for (label, _), boundary in sorted(wanted.items(), key=lambda item: item[0]):
        if label in labels and boundary:
            parts.append(_count(label, boundary, index, group, rows[data.labels.ids == labels[label]]))
    return pattern_evidence(parts)


def not_counted(patterns: pa.Table, features: Mapping[str, Features]) -> dict[str, Features]:
    """The boundaries of which a `patterns` table holds no counts."""
    known = set(zip(patterns["label"].to_pylist(), patterns["boundary"].to_pylist(), strict=True))
    return {label: boundary for label, boundary in features.items() if (label, boundary.digest) not in known}


def _count(label: str, boundary: Features, index: EventIndex, group: Any, came: Any) -> dict[str, Any]:
    holds = np.array([index.holds(atom) for atom in boundary.atoms])  # (features, n)
    some = np.flatnonzero(holds.any(0))  # in most sequences nothing holds
    packed, which = np.unique(np.packbits(holds[:, some].T, axis=1, bitorder="little"), axis=0, return_inverse=True)
    pattern = np.zeros(len(group), np.int64)
    pattern[some] = which.ravel() + 1
    key = pattern * GROUPS + group
    sequences = np.bincount(key, minlength=GROUPS)
    positives = np.bincount(key[came], minlength=len(sequences))
    met = np.flatnonzero(sequences)
    texts = ["0", *(f"{int.from_bytes(row.tobytes(), 'little'):x}" for row in packed)]
    return {
        "label": [label] * len(met),
        "boundary": [boundary.digest] * len(met),
        "pattern": [texts[k // GROUPS] for k in met.tolist()],
        "group": (met % GROUPS).astype(np.int32),
        "sequences": sequences[met].astype(np.int64),
        "positives": positives[met].astype(np.int64),
    }


def readings_of(patterns: pa.Table, features: Mapping[str, Features]) -> Readings | None:
    """The counts of a `patterns` table by fold, those of these very boundaries; None where nothing was counted."""
    digests = pa.array([f"{label}\0{boundary.digest}" for label, boundary in features.items()], pa.string())
    mine = pc.is_in(pc.binary_join_element_wise(patterns["label"], patterns["boundary"], "\0"), digests)
    patterns = patterns.filter(mine)
    counts: dict[str, dict[int, npt.NDArray[np.int64]]] = {}
    columns = (patterns[name].to_pylist() for name in ("label", "pattern", "group", "sequences", "positives"))
    for label, pattern, group, sequences, positives in zip(*columns, strict=True):
        sums = counts.setdefault(label, {}).setdefault(int(pattern, 16), np.zeros((2, FOLDS), np.int64))
        sums[:, group % FOLDS] += sequences, positives
    return Readings(features, counts) if counts else None
