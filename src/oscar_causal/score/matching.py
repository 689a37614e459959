"""Found boundaries against the truth: which events should have been found for each (sequence, label)?

Three truths: `rule_all`, every event of the label's rule, absent branches and NOT included (the paper's);
`rule_present`, the rule's positive events that are in the sequence; `why`, the causes the dataset itself names for this
sequence (`why_necessary`: those without which the label would not have come).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from oscar_causal.data.metrics import Counts, averages, divide, harmonic
from oscar_causal.data.rules import event_names, positive_names, read_rules
from oscar_causal.data.sequences import Dataset
from oscar_causal.errors import UsageError

Pair = tuple[str, str]
"""(sequence id, label)."""
Truth = Mapping[Pair, frozenset[str]]


@dataclass(frozen=True)
class PairScores:
    """Per pair: label, number of found, true and common events; the sufficient statistics of all averages."""

    labels: tuple[str, ...]
    found: np.ndarray[Any, np.dtype[np.float64]]
    true: np.ndarray[Any, np.dtype[np.float64]]
    common: np.ndarray[Any, np.dtype[np.float64]]


def match(found: Mapping[Pair, frozenset[str]], truth: Truth) -> PairScores:
    """Count common events for every pair that has a truth and was explained."""
    pairs = [pair for pair in found if truth.get(pair)]
    return PairScores(
        tuple(label for _, label in pairs),
        np.array([len(found[pair]) for pair in pairs], float),
        np.array([len(truth[pair]) for pair in pairs], float),
        np.array([len(found[pair] & truth[pair]) for pair in pairs], float),
    )


def summarise(scores: PairScores) -> dict[str, Any]:
    """Micro, macro and weighted averages over labels, and `sample`: precision and recall averaged over pairs.

    In `sample` an empty boundary has precision 0; `f1` is the mean of the pairs' F1.
    """
    names, index = np.unique(np.array(scores.labels, dtype=object).astype(str), return_inverse=True)
    sums = [
        np.bincount(index, values, len(names)).astype(np.float64)
        for values in (scores.common, scores.found - scores.common, scores.true - scores.common)
    ]
    precision, recall = divide(scores.common, scores.found), divide(scores.common, scores.true)
    f1 = divide(2 * scores.common, scores.found + scores.true)
    mean = [float(values.mean()) if len(values) else 0.0 for values in (precision, recall, f1)]
    return {
        "pairs": len(scores.labels),
        "labels": len(names),
        **averages(Counts(*sums)),
        "sample": {"precision": mean[0], "recall": mean[1], "f1": mean[2], "f1_of_means": harmonic(mean[0], mean[1])},
    }


def truth_of(dataset: Dataset, pairs: Iterable[Pair]) -> dict[str, Truth]:
    """Every truth the dataset folder carries, for these pairs."""
    if dataset.path is None:
        raise UsageError("score: expected a dataset on disk, which carries rules.json or why/")
    wanted = list(pairs)
    truths: dict[str, Truth] = {}
    if (dataset.path / "rules.json").exists():
        truths |= _rule_truths(dataset, wanted)
    if (dataset.path / "why").exists():
        truths |= _why_truths(dataset.path / "why", set(wanted))
    if not truths:
        raise UsageError(f"{dataset.path}: expected rules.json or why/ to score against, found neither")
    return truths


def _rule_truths(dataset: Dataset, pairs: list[Pair]) -> dict[str, Truth]:
    assert dataset.path is not None  # noqa: S101
    rules = read_rules(dataset.path / "rules.json")
    rows = dict(zip((pair[0] for pair in pairs), dataset.index_of(pair[0] for pair in pairs), strict=True))
    everything: dict[Pair, frozenset[str]] = {}
    present: dict[Pair, frozenset[str]] = {}
    for sequence_id, label in pairs:
        row = int(rows[sequence_id])
        published = rules.get(label)
        if published is None or not published.in_force(dataset.start[row].as_py()):
            continue
        everything[sequence_id, label] = frozenset(event_names(published.rule))
        present[sequence_id, label] = frozenset(positive_names(published.rule)) & frozenset(dataset.events_of(row))
    return {"rule_all": everything, "rule_present": present}


def _why_truths(folder: Path, pairs: set[Pair]) -> dict[str, Truth]:
    causes: dict[Pair, set[str]] = defaultdict(set)
    necessary: dict[Pair, set[str]] = defaultdict(set)
    for path in sorted(folder.glob("*.parquet")):
        table = pq.read_table(path, columns=["sequence_id", "label", "event", "role", "necessary"]).to_pydict()
        for sequence_id, label, event, role, needed in zip(*table.values(), strict=True):
            if role == "cause" and (sequence_id, label) in pairs:
                causes[sequence_id, label].add(event)
                if needed:
                    necessary[sequence_id, label].add(event)
    return {
        "why": {pair: frozenset(events) for pair, events in causes.items()},
        "why_necessary": {pair: frozenset(events) for pair, events in necessary.items()},
    }
