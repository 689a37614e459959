"""Scores by boundary size, by number of present causes, by how often a label was seen in training; and over folds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from oscar_causal.data.folders import read_json
from oscar_causal.data.metrics import Counts, label_scores
from oscar_causal.data.sequences import Dataset
from oscar_causal.data.subjects import folds, seen_subjects
from oscar_causal.errors import FolderError
from oscar_causal.score.matching import FIGURES, Pair, PairScores, Truth, label_counts, summarise

MANY_CAUSES = 6
"""`by_causes` puts this many and more into one group."""
FREQUENCIES = (10, 100, 1000)
"""Borders of `by_frequency`: sequences with the label in training."""


def by_group(scores: PairScores, groups: Mapping[Pair, str]) -> dict[str, Any]:
    """A summary for each group of pairs; pairs without a group are left out. Groups are in the order of their numbers.

    >>> scores = PairScores((("1", "x"), ("2", "x")), np.ones(2), np.array([1.0, 2.0]), np.array([1.0, 0.0]))
    >>> parts = by_group(scores, {("1", "x"): "1", ("2", "x"): "2"})
    >>> {name: part["sample"]["recall"] for name, part in parts.items()}
    {'1': 1.0, '2': 0.0}
    """
    names = np.array([groups.get(pair, "") for pair in scores.pairs], dtype=str)
    return {name: summarise(scores.take(names == name)) for name in sorted(set(names.tolist()) - {""}, key=_first)}


def _first(name: str) -> float:
    """The number a group's name begins with: `<10` comes before `10-99`, `>=1000` last."""
    if name.startswith("<"):
        return -1.0
    return float(name.strip(">=+").split("-")[0])


def per_label(scores: PairScores) -> dict[str, dict[str, float]]:
    """Label -> its pairs, true events, and precision, recall and F1 of their counts added up; `macro` averages these.

    >>> scores = PairScores((("1", "x"), ("2", "x")), np.ones(2), np.array([1.0, 2.0]), np.array([1.0, 0.0]))
    >>> per_label(scores)["x"]["precision"]
    0.5
    """
    names, index = scores.labels
    counts = Counts(*(np.bincount(index, part, len(names)).astype(float) for part in label_counts(scores)))
    figures = zip(np.bincount(index, minlength=len(names)), counts.support, *label_scores(counts), strict=True)
    return {
        name: {"pairs": int(pairs), "events": int(events), **dict(zip(FIGURES, map(float, scored), strict=False))}
        for name, (pairs, events, *scored) in zip(names, figures, strict=True)
    }


def size_groups(truth: Truth) -> dict[Pair, str]:
    """Pairs by the number of events of their true set."""
    return {pair: str(len(events)) for pair, events in truth.items() if events}


def cause_groups(truth: Truth) -> dict[Pair, str]:
    """Likewise, with `MANY_CAUSES` and more in one group."""
    return {
        pair: str(len(events)) if len(events) < MANY_CAUSES else f"{MANY_CAUSES}+"
        for pair, events in truth.items()
        if events
    }


def frequency_groups(pairs: Sequence[Pair], counts: Mapping[str, int]) -> dict[Pair, str]:
    """Pairs by the number of training sequences with their label."""
    return {pair: _frequency(counts.get(pair[1], 0)) for pair in pairs}


def _frequency(count: int) -> str:
    if count < FREQUENCIES[0]:
        return f"<{FREQUENCIES[0]}"
    for low, high in zip(FREQUENCIES, FREQUENCIES[1:], strict=False):
        if count < high:
            return f"{low}-{high - 1}"
    return f">={FREQUENCIES[-1]}"


def training_counts(dataset: Dataset, model: Path | None) -> tuple[dict[str, int], str]:
    """Sequences with each label among those the model was trained on (without a model: among all), and in words where.

    With folds every sequence was seen by all models but one.
    """
    rows, told = np.ones(len(dataset), bool), "all sequences of the dataset"
    if model is not None:
        parts = sorted(model.glob("fold-*")) if (model / "folds.json").exists() else [model]
        packed = [_subjects(part / "training.json") for part in parts]
        rows, told = seen_subjects(dataset.subject_ids, packed), "the model's training sequences"
    counts = np.bincount(dataset.labels.take(np.flatnonzero(rows)).ids, minlength=len(dataset.label_names))
    return dict(zip(dataset.label_names, counts.tolist(), strict=True)), told


def _subjects(path: Path) -> str:
    subjects = read_json(path).get("subjects")
    if not isinstance(subjects, str):
        raise FolderError(f"{path}: expected 'subjects', the subjects seen in training, got {subjects!r}")
    return subjects


def subjects_of(dataset: Dataset, pairs: Sequence[Pair]) -> list[str]:
    """The subject of each pair's sequence."""
    rows = dataset.index_of(sequence_id for sequence_id, _ in pairs)
    subjects: list[str] = dataset.subject_ids.take(pa.array(rows)).to_pylist()
    return subjects


def over_folds(scores: PairScores, subjects: Sequence[str], count: int, *, seed: int = 0) -> dict[str, Any]:
    """Mean and standard deviation of every figure over `count` parts of the subjects (those that are not empty)."""
    fold = folds(pa.array(list(subjects), pa.string()), count, seed=seed)
    parts = [summarise(scores.take(fold == k)) for k in range(count) if (fold == k).any()]
    return {"folds": len(parts), **spread(parts)}


def spread(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Mean and sample standard deviation (0 for one part) of the figures all parts share, in the parts' own nesting.

    >>> spread([{"micro": {"f1": 0.5}}, {"micro": {"f1": 0.7}}])["mean"]
    {'micro': {'f1': 0.6}}
    """
    return {"mean": _each(parts, np.mean), "sd": _each(parts, _deviation)}


def _deviation(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def _each(parts: Sequence[Mapping[str, Any]], reduce: Any) -> dict[str, Any]:
    if not parts:
        return {}
    shared = [key for key in parts[0] if all(key in part for part in parts)]
    result: dict[str, Any] = {}
    for key in shared:
        values = [part[key] for part in parts]
        if all(isinstance(value, Mapping) for value in values):
            result[key] = _each(values, reduce)
        elif all(isinstance(value, int | float) for value in values):
            result[key] = float(reduce(values))
    return result
