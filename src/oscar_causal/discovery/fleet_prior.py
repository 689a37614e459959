"""What the fleet says about an event before this sequence is looked at: the prior of `fused`, on disk and in memory.

Everything is fitted once per fold of subjects, with that fold left out; a sequence is judged with the fit of its own
subject's fold, so its prior never contains it, nor another sequence of the same car.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from oscar_causal.data.folders import check_format, read_json, write_json
from oscar_causal.data.rules import Event, EventIndex, Rule, event_names, parse, read_rules, reasons
from oscar_causal.data.subjects import seen_subjects
from oscar_causal.discovery.cells import CELLS, READ_CELLS, STANDS_BY, TAKES_PART
from oscar_causal.discovery.evidence import CONTROL, FOLDS, FleetEvidence, subject_groups
from oscar_causal.discovery.pooling import PairSums, fleet_q_values, pair_sums
from oscar_causal.discovery.two_groups import CLASSES, RARE, PairCells, fit
from oscar_causal.errors import FolderError

Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]
FORMAT_VERSION = 1
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

    def words_here(self, label: str, index: EventIndex) -> dict[str, int]:
        """For the members that are not members by presence alone: do they take part in the one sequence of `index`?"""
        rules = [parse(text) for text in self.features.get(label, ())]
        present = {rule.name for rule in rules if isinstance(rule, Event)}
        others = [rule for rule in rules if not isinstance(rule, Event)]
        part = {reason.event for rule in others for reason in reasons(rule, index, [0])[0]}
        asked = {name for rule in others for name in event_names(rule)} - present
        return {name: TAKES_PART if name in part else STANDS_BY for name in asked}


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
    log_ratios: Float64
    """(FOLDS, READ_CELLS)."""
    class_means: Float64
    """(FOLDS, classes)."""
    rare: frozenset[str]
    """Labels met in few sequences."""
    classical: Classical | None = None
    rules: Mapping[str, Rule] | None = None

    @cached_property
    def _rows(self) -> dict[str, dict[str, int]]:
        rows: dict[str, dict[str, int]] = {}
        for row, (label, event) in enumerate(_keys(self.pairs)):
            rows.setdefault(label, {})[event] = row
        return rows

    def rate(self, label: str, event: str, fold: int) -> float:
        """How often the event is a cause where label and event are present, as far as the other folds tell."""
        row = self._rows.get(label, {}).get(event)
        if row is not None:
            return float(self.rates[row, fold])
        word = 0 if self.classical is None else self.classical.word_on(label, event)
        return float(self.class_means[fold, class_number(word, False, label in self.rare)])

    def sequences(self, label: str, event: str) -> int:
        """Sequences of the fleet with both, its own fold included."""
        row = self._rows.get(label, {}).get(event)
        return 0 if row is None else int(self.pairs["sequences"][row].as_py())

    def candidates(self, label: str, present: list[str], fold: int) -> list[str]:
        """The present events that are likely causes of the label or in its classical boundary, likeliest first."""
        rates = {event: self.rate(label, event, fold) for event in present}
        chosen = [event for event in present if rates[event] >= LIKELY or self.is_member(label, event)]
        return sorted(chosen, key=lambda event: (-rates[event], event))

    def is_member(self, label: str, event: str) -> bool | None:
        """Is the event in the classical boundary? None = no such boundary."""
        if self.classical is None or label not in self.classical.features:
            return None
        return event in self.classical.members[label]

    def classical_saw(self, subject_id: str) -> bool:
        """Was the classical boundary learnt from this subject, or is that unknown?"""
        if self.classical is None:
            return False
        if self.classical.subjects is None:
            return True
        return bool(seen_subjects(pa.array([subject_id], pa.string()), [self.classical.subjects])[0])


def subject_fold(subject_id: str) -> int:
    """The fold whose fit judges this subject."""
    return int(subject_groups(pa.array([subject_id], pa.string()))[0]) % FOLDS


def fit_prior(evidence: FleetEvidence, classical: Classical | None = None) -> FleetPrior:
    """Fit the two-groups model once per fold, each time without the fold."""
    control = pc.equal(evidence.cells["event"], CONTROL)
    looks, controls = evidence.cells.filter(pc.invert(control)), evidence.cells.filter(control)
    sums = pair_sums(evidence.pairs)
    rare = rare_labels(evidence)
    pairs = _all_pairs(evidence.pairs, sums, looks, classical)
    place = {key: row for row, key in enumerate(_keys(pairs))}
    of_look = np.array([place[key] for key in _keys(looks)], np.int64)
    of_sum = np.array([place[key] for key in zip(sums.labels, sums.events, strict=True)], np.int64)
    words = np.array([0 if classical is None else classical.word_on(*key) for key in place], np.int64)
    scarce = np.array([label in rare for label, _ in place], bool)
    rates, ratios, means = np.zeros((len(pairs), FOLDS)), np.zeros((FOLDS, READ_CELLS)), np.zeros((FOLDS, len(CLASSES)))
    fold, cell, count = _columns(looks)
    control_fold, control_cell, control_count = _columns(controls)
    for k in range(FOLDS):
        pooled = np.zeros(len(pairs), bool)
        pooled[of_sum] = pooled_causes(sums.without_fold(k))
        kept, other = fold != k, control_fold != k
        null = np.bincount(control_cell[other] % CELLS, control_count[other], CELLS).astype(np.float64)
        classes: Int64 = class_number(words, pooled, scarce)
        found = fit(PairCells(of_look[kept], cell[kept], count[kept], classes, null))
        rates[:, k], ratios[k], means[k] = found.rates, found.log_ratios, found.class_means
    return FleetPrior(pairs, rates, ratios, means, rare, classical)


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


def write_prior(folder: Path, prior: FleetPrior) -> None:
    """Write `prior.parquet` and `prior.json` into a folder."""
    known = prior.classical
    columns = {
        **{name: prior.pairs[name] for name in ("label", "event", "sequences")},
        "rates": pa.FixedSizeListArray.from_arrays(pa.array(prior.rates.ravel()), FOLDS),
    }
    pq.write_table(pa.table(columns), folder / "prior.parquet", compression="zstd")
    classical = None
    if known is not None:
        classical = {
            "method": known.method,
            "features": {label: list(texts) for label, texts in known.features.items()},
            "positives": dict(known.positives),
            "subjects": known.subjects,
        }
    write_json(
        folder / "prior.json",
        {
            "kind": "prior",
            "format_version": FORMAT_VERSION,
            "log_ratios": prior.log_ratios.tolist(),
            "class_means": prior.class_means.tolist(),
            "rare": sorted(prior.rare),
            "classical": classical,
        },
    )


def prior_digest(population: Path | str) -> str:
    """A hash of the prior of a population folder."""
    digest = hashlib.sha256()
    for name in ("prior.json", "prior.parquet", "rules.json"):
        path = Path(population) / name
        if name != "rules.json" and not path.exists():
            raise FolderError(f"{path}: missing; expected a population folder made with a model (its prior)")
        digest.update(path.read_bytes() if path.exists() else b"")
    return digest.hexdigest()


@lru_cache(1)
def opened_prior(population: str) -> FleetPrior:
    """`read_prior`, kept open: every sequence of a run asks the same one."""
    return read_prior(population)


def read_prior(population: Path | str) -> FleetPrior:
    """The prior of a population folder, with its recovered rules where it has any."""
    folder = Path(population)
    path = folder / "prior.json"
    info = read_json(path)
    check_format(info, path, kind="prior", newest=FORMAT_VERSION)
    try:
        table = pq.read_table(folder / "prior.parquet")
        rates = pc.list_flatten(table["rates"]).to_numpy().reshape(-1, FOLDS)
        ratios, means = np.array(info["log_ratios"], float), np.array(info["class_means"], float)
        if ratios.shape != (FOLDS, READ_CELLS) or means.shape != (FOLDS, len(CLASSES)) or len(rates) != len(table):
            raise ValueError("sizes")
        classical, rare = _classical(info["classical"]), frozenset(info["rare"])
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        raise FolderError(f"{folder}: damaged population: {path.name} or prior.parquet cannot be read") from error
    rules = folder / "rules.json"
    published = read_rules(rules) if rules.exists() else {}
    return FleetPrior(
        table.select(["label", "event", "sequences"]),
        rates,
        ratios,
        means,
        rare,
        classical,
        {label: item.rule for label, item in published.items()},
    )


def _classical(info: Mapping[str, Any] | None) -> Classical | None:
    if info is None:
        return None
    features = {label: tuple(texts) for label, texts in info["features"].items()}
    return Classical(info["method"], features, info["positives"], info["subjects"])


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
