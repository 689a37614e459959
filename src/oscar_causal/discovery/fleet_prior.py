"""What the fleet says about an event before this sequence is looked at: the prior of `fused`.

Everything is fitted once per fold of subjects, with that fold left out; a sequence is judged with the fit of its own
subject's fold, so its prior never contains it, nor another sequence of the same car.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from oscar_causal.data.rules import EventIndex, Rule, event_names, parse
from oscar_causal.data.subjects import seen_subjects
from oscar_causal.discovery.cells import CELLS, word_values
from oscar_causal.discovery.evidence import CONTROL, FOLDS, FleetEvidence, subject_groups
from oscar_causal.discovery.pooling import PairSums, fleet_q_values, pair_sums
from oscar_causal.discovery.reading import NONE, Features, Read, Readings, readings_of, rule_features
from oscar_causal.discovery.two_groups import MEMBER, NO_MEMBER, NOT_READ, RARE, PairCells, Said, either, fit

Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]
LIKELY = 0.1
"""Events with at least this rate are candidates wherever they are present."""
POOLED_ALPHA, POOLED_DELTA = 0.05, 0.05
"""A pooled effect is one that the other folds' interventions find beyond delta, at this false discovery rate."""


@dataclass(frozen=True)
class Classical:
    """Global boundaries of a classical method, as a source of the prior."""

    method: str
    features: Mapping[str, tuple[str, ...]]
    """Label -> what raises it, as rules: events, orders, counts."""
    positives: Mapping[str, int]
    """Label -> sequences with it in the data the boundaries were learnt from."""
    subjects: str | None
    """The subjects of that data (`pack_subjects`); None = not known."""
    lowering: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Label -> what goes against it, likewise."""

    @cached_property
    def members(self) -> dict[str, frozenset[str]]:
        """Label -> the events of its features."""
        return {
            label: frozenset(name for text in texts for name in event_names(parse(text)))
            for label, texts in self.features.items()
        }

    def word_on(self, label: str, event: str) -> int:
        """0: no boundary for this label, 1: member, 2: no member."""
        if label not in self.features:
            return 0
        return 1 if event in self.members[label] else 2


def _group(readings: Readings | None, label: str, event: str) -> int:
    if readings is None or label not in readings.counts:
        return NOT_READ
    return MEMBER if readings.suspects(label, event) else NO_MEMBER


def class_number(word: Any, pooled: Any, rare: Any) -> Any:
    """Index into `two_groups.CLASSES`, of one pair or of arrays of them."""
    return 4 * word + 2 * pooled + rare


@dataclass(frozen=True, eq=False)
class FleetPrior:
    """Rates of (label, event) pairs and tables of likelihood ratios, each fitted without one fold of subjects."""

    pairs: pa.Table
    """label, event, sequences (all folds)."""
    rates: Float64
    """(pairs, FOLDS)."""
    outside: Float64
    """(pairs, FOLDS) rates where the label came from outside the boundary that is read."""
    log_ratios: Float64
    """(FOLDS, GROUPS, CELLS)."""
    class_means: Float64
    """(FOLDS, 2, classes) of the rates, of the rates from outside."""
    rare: frozenset[str]
    """Labels met in few sequences."""
    errors: Float64
    """(FOLDS, 101): expected share of non-causes among the fleet's events with a posterior of at least k %."""
    classical: Classical | None = None
    readings: Readings | None = None
    rules: Mapping[str, Rule] | None = None
    rule_subjects: str | None = None
    """The subjects that the rules were recovered from (`pack_subjects`); None = not known."""
    never_without: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    """Label -> event -> events that no sequence of the fleet holds without it (`graph.variants`)."""

    @cached_property
    def _rows(self) -> dict[str, dict[str, int]]:
        rows: dict[str, dict[str, int]] = {}
        for row, (label, event) in enumerate(_keys(self.pairs)):
            rows.setdefault(label, {})[event] = row
        return rows

    @cached_property
    def labels(self) -> frozenset[str]:
        """The labels that the fleet has evidence or a classical boundary for."""
        return frozenset(self._rows).union(() if self.classical is None else self.classical.features)

    def rate(self, label: str, event: str, fold: int) -> float:
        """How often the event is a cause where label and event are present, as far as the other folds tell."""
        row = self._rows.get(label, {}).get(event)
        return self._class_mean(0, label, event, fold) if row is None else float(self.rates[row, fold])

    def read(self, label: str, index: EventIndex, fold: int) -> Read | None:
        """What observed labels of the other folds say in the one sequence of `index`; None = there is no reading."""
        return None if self.readings is None else self.readings.read(label, index, fold)

    def prior_here(self, label: str, event: str, fold: int, read: Read | None) -> float:
        """The chance that the event is a cause in this sequence, before its own evidence."""
        if read is None or self.readings is None:
            return self.rate(label, event, fold)
        row = self._rows.get(label, {}).get(event)
        rate = self._class_mean(1, label, event, fold) if row is None else float(self.outside[row, fold])
        return float(either(np.array(read.acted.get(event, 0.0)), np.array(rate * read.outside)))

    def ratios(self, label: str, events: list[str], cells: list[int], fold: int) -> Float64:
        """Log likelihood ratios of what was measured of these events (cells without words)."""
        found: Float64 = self.log_ratios[fold][[_group(self.readings, label, event) for event in events], cells]
        return found

    def q_values(self, posteriors: Float64, fold: int) -> Float64:
        """Expected share of non-causes among the fleet's events that are at least as probable."""
        found: Float64 = self.errors[fold][np.floor(100 * posteriors + 1e-9).astype(np.int64)]
        return found

    def _class_mean(self, kind: int, label: str, event: str, fold: int) -> float:
        word = 0 if self.classical is None else self.classical.word_on(label, event)
        if kind and self.readings is not None and label in self.readings.counts:
            word = 0
        return float(self.class_means[fold, kind, class_number(word, False, label in self.rare)])

    def sequences(self, label: str, event: str) -> int:
        """Sequences of the fleet with both, its own fold included."""
        row = self._rows.get(label, {}).get(event)
        return 0 if row is None else int(self.pairs["sequences"][row].as_py())

    def candidates(self, label: str, present: list[str], fold: int, read: Read | None) -> list[str]:
        """The present events that are likely causes of the label or in its classical boundary, likeliest here first."""
        chosen = [e for e in present if self.rate(label, e, fold) >= LIKELY or self.is_member(label, e)]
        here = {event: self.prior_here(label, event, fold, read) for event in chosen}
        return sorted(chosen, key=lambda event: (-here[event], event))

    def is_member(self, label: str, event: str) -> bool | None:
        """Is the event in the classical boundary? None = no such boundary."""
        if self.classical is None or label not in self.classical.features:
            return None
        return event in self.classical.members[label]

    def classical_saw(self, subject_id: str) -> bool:
        """Was the classical boundary learnt from this subject, or is that unknown?"""
        return self.classical is not None and _saw(self.classical.subjects, subject_id)

    def rule_saw(self, label: str, subject_id: str) -> bool:
        """Was a rule that is read for this label recovered from this subject, or is that unknown?"""
        if self.readings is None or label not in self.readings.counts or label not in (self.rules or {}):
            return False
        by_classical = self.classical is not None and bool(self.classical.features.get(label))
        return not by_classical and _saw(self.rule_subjects, subject_id)


def _saw(subjects: str | None, subject_id: str) -> bool:
    return subjects is None or bool(seen_subjects(pa.array([subject_id], pa.string()), [subjects])[0])


def subject_fold(subject_id: str) -> int:
    """The fold whose fit judges this subject."""
    return int(subject_groups(pa.array([subject_id], pa.string()))[0]) % FOLDS


def features_by_label(classical: Classical | None, rules: Mapping[str, Rule] | None = None) -> dict[str, Features]:
    """Label -> what is read: the features of its classical boundary; without any, the parts of its recovered rule."""
    found = {}
    if classical is not None:
        lowering = classical.lowering
        found = {label: Features(texts, lowering.get(label, ())) for label, texts in classical.features.items()}
    return found | {label: rule_features(rule) for label, rule in (rules or {}).items() if not found.get(label, NONE)}


def fit_prior(
    evidence: FleetEvidence, classical: Classical | None = None, rules: Mapping[str, Rule] | None = None
) -> FleetPrior:
    """Fit the two-groups model once per fold, each time without the fold."""
    control = pc.equal(evidence.cells["event"], CONTROL)
    looks, controls = evidence.cells.filter(pc.invert(control)), evidence.cells.filter(control)
    sums = pair_sums(evidence.pairs)
    rare = rare_labels(evidence)
    pairs = _all_pairs(evidence.pairs, sums, looks, classical)
    readings = readings_of(evidence.patterns, features_by_label(classical, rules))
    place = {key: row for row, key in enumerate(_keys(pairs))}
    of_look = np.array([place[key] for key in _keys(looks)], np.int64)
    of_sum = np.array([place[key] for key in zip(sums.labels, sums.events, strict=True)], np.int64)
    words = np.array([0 if classical is None else classical.word_on(*key) for key in place], np.int64)
    was_read = np.array([readings is not None and label in readings.counts for label, _ in place], bool)
    groups = np.array([_group(readings, *key) for key in place], np.int64)
    scarce = np.array([label in rare for label, _ in place], bool)
    fold, cell, count = _columns(looks)
    control_fold, control_cell, control_count = _columns(controls)
    found = []
    for k in range(FOLDS):
        pooled = np.zeros(len(pairs), bool)
        pooled[of_sum] = pooled_causes(sums.without_fold(k))
        kept, other = fold != k, control_fold != k
        null = np.bincount(control_cell[other] % CELLS, control_count[other], CELLS).astype(np.float64)
        classes: Int64 = class_number(words, pooled, scarce)
        said = None
        if readings is not None:
            beyond = pooled & (groups != MEMBER)  # what a member does on average, the boundary explains
            outer: Int64 = class_number(np.where(was_read, 0, words), beyond, scarce)
            said = _said(cell[kept] // CELLS, outer, groups)
        found.append(fit(PairCells(of_look[kept], cell[kept] % CELLS, count[kept], classes, null, said)))
    return FleetPrior(
        pairs,
        np.stack([part.rates for part in found], axis=1),
        np.stack([part.outside for part in found], axis=1),
        np.stack([part.log_ratios for part in found]),
        np.stack([np.stack([part.class_means, part.outside_means]) for part in found]),
        rare,
        np.stack([part.errors for part in found]),
        classical,
        readings,
        rules,
    )


def _said(word: Int64, outer: Int64, groups: Int64) -> Said:
    """The words of the rows as numbers; rows without a word were not read."""
    values = np.array([(0.0, 1.0), *(word_values(k) for k in range(1, int(word.max(initial=0)) + 1))])
    acted, outside = values[word].T
    return Said(acted, outside, outer, groups)


def pooled_causes(sums: PairSums) -> npt.NDArray[np.bool_]:
    """Pairs whose pooled interventions show a mean effect above `POOLED_DELTA`."""
    mean = sums.mean_effect()
    found: npt.NDArray[np.bool_] = (fleet_q_values(mean, POOLED_DELTA) <= POOLED_ALPHA) & (mean.mean > 0)
    return found


def rare_labels(evidence: FleetEvidence) -> frozenset[str]:
    """Labels met in fewer than `RARE` sequences."""
    met = evidence.labels.group_by("label").aggregate([("sequences", "sum")])
    counted = zip(met["label"].to_pylist(), met["sequences_sum"].to_pylist(), strict=True)
    return frozenset(label for label, number in counted if number < RARE)


def _keys(table: pa.Table) -> Iterator[tuple[str, str]]:
    return zip(table["label"].to_pylist(), table["event"].to_pylist(), strict=True)


def _columns(cells: pa.Table) -> tuple[Int64, Int64, Float64]:
    """Fold, cell and count of each row."""
    fold = cells["group"].to_numpy().astype(np.int64) % FOLDS
    return fold, cells["cell"].to_numpy().astype(np.int64), cells["count"].to_numpy().astype(np.float64)


def _all_pairs(pairs: pa.Table, sums: PairSums, looks: pa.Table, classical: Classical | None) -> pa.Table:
    """Every pair that was tested or looked at, or that the classical boundary names, with its number of sequences."""
    members = {} if classical is None else classical.members
    named = [(label, event) for label, events in members.items() for event in events]
    keys = sorted({*zip(sums.labels, sums.events, strict=True), *_keys(looks), *named})
    counted = pairs.group_by(["label", "event"], use_threads=False).aggregate([("present", "sum")])
    present = dict(zip(_keys(counted), counted["present_sum"].to_pylist(), strict=True))
    columns = {
        "label": pa.array([label for label, _ in keys], pa.string()),
        "event": pa.array([event for _, event in keys], pa.string()),
        "sequences": pa.array([present.get(key, 0) for key in keys], pa.int64()),
    }
    return pa.table(columns)
