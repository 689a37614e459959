"""Found boundaries against the truth: which events should have been found for each (sequence, label)?

Three truths: `rule_all`, every event of the label's rule, absent branches and NOT included (the paper's);
`rule_present`, the rule's positive events that are in the sequence; `why`, the causes the dataset itself names for this
sequence (`why_necessary`: those without which the label would not have come).

`match` counts, `summarise` divides; counts of parts add up to the counts of the whole.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from oscar_causal.data.metrics import Counts, averages, divide, harmonic
from oscar_causal.data.rules import event_names, positive_names, read_rules
from oscar_causal.data.sequences import Dataset
from oscar_causal.data.stream import stream_why
from oscar_causal.errors import UsageError

Pair = tuple[str, str]
"""(sequence id, label)."""
Sets = Mapping[Pair, frozenset[str]]
Truth = Sets
Float = npt.NDArray[np.float64]

AVERAGES = ("sample", "micro", "macro", "weighted")
FIGURES = ("precision", "recall", "f1", "f1_of_means")


@dataclass(frozen=True)
class PairScores:
    """Per pair the number of found, true and common events: the sufficient statistics of all averages."""

    pairs: tuple[Pair, ...]
    found: Float
    true: Float
    common: Float

    def __len__(self) -> int:
        return len(self.pairs)

    def __add__(self, other: PairScores) -> PairScores:
        """The counts of two parts without a common pair."""
        columns = (np.concatenate(part) for part in zip(self._columns, other._columns, strict=True))
        return PairScores(self.pairs + other.pairs, *columns)

    def take(self, indices: Sequence[int] | npt.NDArray[Any]) -> PairScores:
        """Some of the pairs, in the given order; a boolean mask chooses too."""
        chosen = np.asarray(indices)
        chosen = np.flatnonzero(chosen) if chosen.dtype == bool else chosen.astype(np.int64)
        return PairScores(tuple(self.pairs[i] for i in chosen), *(part[chosen] for part in self._columns))

    @property
    def _columns(self) -> tuple[Float, Float, Float]:
        return self.found, self.true, self.common

    @cached_property
    def labels(self) -> tuple[list[str], npt.NDArray[np.int64]]:
        """The labels that occur, sorted, and for each pair the number of its label."""
        names = sorted({label for _, label in self.pairs})
        number = {name: index for index, name in enumerate(names)}
        return names, np.array([number[label] for _, label in self.pairs], np.int64)


def match(found: Sets, truth: Truth) -> PairScores:
    """Count common events for every pair that was explained and has a truth (one that is not empty).

    >>> match({("car 1", "fault"): frozenset("AB")}, {("car 1", "fault"): frozenset("BC")}).common
    array([1.])
    """
    pairs = tuple(pair for pair in found if truth.get(pair))
    return PairScores(
        pairs,
        np.array([len(found[pair]) for pair in pairs], float),
        np.array([len(truth[pair]) for pair in pairs], float),
        np.array([len(found[pair] & truth[pair]) for pair in pairs], float),
    )


def summarise(scores: PairScores) -> dict[str, Any]:
    """Micro, macro and weighted averages over labels, and `sample`: precision and recall averaged over pairs.

    In `sample` an empty boundary has precision 0; `f1` is the mean of the pairs' F1.
    """
    names, index = scores.labels
    sums = [np.bincount(index, values, len(names)).astype(np.float64) for values in label_counts(scores)]
    return {
        "pairs": len(scores),
        "labels": len(names),
        **figures(Counts(*sums), pair_figures(scores).sum(1), float(len(scores))),
    }


def label_counts(scores: PairScores) -> tuple[Float, Float, Float]:
    """Each pair's hits, false alarms and misses; summed over the pairs of a label they are the label's `Counts`."""
    return scores.common, scores.found - scores.common, scores.true - scores.common


def pair_figures(scores: PairScores) -> Float:
    """Precision, recall and F1 of each pair: (3, pairs)."""
    precision, recall = divide(scores.common, scores.found), divide(scores.common, scores.true)
    return np.stack([precision, recall, divide(2 * scores.common, scores.found + scores.true)])


def figures(counts: Counts, pair_sums: Float, pairs: float) -> dict[str, dict[str, float]]:
    """All averages from sums: counts per label, and the sums over `pairs` of the pairs' precision, recall and F1."""
    precision, recall, f1 = (float(value) / pairs if pairs > 0 else 0.0 for value in pair_sums)
    sample = dict(zip(FIGURES, (precision, recall, f1, harmonic(precision, recall)), strict=True))
    return {"sample": sample, **averages(counts)}


def truth_of(dataset: Dataset, pairs: Iterable[Pair]) -> dict[str, Truth]:
    """Every truth the dataset folder carries, for these pairs."""
    if dataset.path is None:
        raise UsageError("score: expected a dataset on disk, which carries rules.json or why/")
    wanted = list(pairs)
    truths: dict[str, Truth] = {}
    if (dataset.path / "rules.json").exists():
        truths |= _rule_truths(dataset, wanted)
    roles = why_roles(dataset, wanted)
    if roles is not None:
        truths |= {
            "why": _causes(roles, only_necessary=False),
            "why_necessary": _causes(roles, only_necessary=True),
        }
    if not truths:
        raise UsageError(f"{dataset.path}: expected rules.json or why/ to score against, found neither")
    return truths


def _rule_truths(dataset: Dataset, pairs: list[Pair]) -> dict[str, Truth]:
    assert dataset.path is not None  # noqa: S101
    rules = read_rules(dataset.path / "rules.json")
    everything = {label: frozenset(event_names(published.rule)) for label, published in rules.items()}
    number = {name: index for index, name in enumerate(dataset.event_names)}
    positive = {
        label: [(name, number.get(name, -1)) for name in positive_names(published.rule)]
        for label, published in rules.items()
    }
    rows = dataset.index_of(sequence_id for sequence_id, _ in pairs)
    starts = dataset.start.take(pa.array(rows)).to_pylist()
    whole: dict[Pair, frozenset[str]] = {}
    present: dict[Pair, frozenset[str]] = {}
    for pair, row, start in zip(pairs, rows.tolist(), starts, strict=True):
        label = pair[1]
        if label in rules and rules[label].in_force(start):
            whole[pair] = everything[label]
            there = set(dataset.events[row].tolist())
            present[pair] = frozenset(name for name, event in positive[label] if event in there)
    return {"rule_all": whole, "rule_present": present}


Roles = Mapping[Pair, Mapping[str, tuple[str, bool]]]
"""Pair -> event -> (role: cause or blocker, necessary)."""


def why_roles(dataset: Dataset, pairs: Iterable[Pair]) -> Roles | None:
    """What the dataset says about these pairs in `why/`; None when it has no reasons at all."""
    if dataset.path is None or not (dataset.path / "why").is_dir():
        return None
    wanted = set(pairs)
    sequences = pa.array(sorted({sequence_id for sequence_id, _ in wanted}), pa.string())
    roles: dict[Pair, dict[str, tuple[str, bool]]] = defaultdict(dict)
    for table in stream_why(dataset.path):
        part = table.filter(pc.is_in(table["sequence_id"], sequences))
        columns = [part[name].to_pylist() for name in ("sequence_id", "label", "event", "role", "necessary")]
        for sequence_id, label, event, role, necessary in zip(*columns, strict=True):
            if (sequence_id, label) in wanted:
                roles[sequence_id, label][event] = (role, necessary)
    return dict(roles)


def _causes(roles: Roles, *, only_necessary: bool) -> Truth:
    found = {
        pair: frozenset(
            event
            for event, (role, necessary) in events.items()
            if role == "cause" and (necessary or not only_necessary)
        )
        for pair, events in roles.items()
    }
    return {pair: events for pair, events in found.items() if events}
