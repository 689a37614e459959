"""Boosted trees on how often and how recently each type came; strength: a type's share of the log odds (TreeSHAP).

Counts and recencies are all it sees: no order, no values, no static covariates.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, csr_matrix, hstack

from oscar_causal.data.extras import load_extra
from oscar_causal.data.sequences import Dataset
from oscar_causal.score.bench.ladder.counting import counts_of, pairs_of
from oscar_causal.score.bench.ladder.interface import Method
from oscar_causal.score.bench.ladder.tuning import Cut, Rival, Scored
from oscar_causal.score.matching import Pair

ROUNDS = (100,)
"""Trees of a label: LightGBM's default."""
CUTS = tuple(Cut(least, top) for top in (None, 1, 2, 3) for least in (0.0, 0.1, 0.25, 0.5, 1.0))


def features(data: Dataset) -> csr_array:
    """For each type its count and 1 / (1 + seconds from its last occurrence to the end); 0 = absent."""
    return csr_array(hstack([counts_of(data), recencies(data)], format="csr"))


def recencies(data: Dataset) -> csr_array:
    """1 / (1 + seconds from the last occurrence of the type to the last event): (sequences, types)."""
    rows, types = data.events.rows(), data.events.ids
    ends = np.maximum.reduceat(data.times, data.events.offsets[:-1]) if len(types) else np.empty(0)
    near = 1.0 / (1.0 + ends[rows] - data.times)
    order = np.lexsort((near, types, rows))
    last = np.append(np.diff(rows[order] * np.int64(len(data.event_names)) + types[order]) != 0, True)
    chosen = order[last]
    return csr_array((near[chosen], (rows[chosen], types[chosen])), shape=(len(data), len(data.event_names)))


def boosted(train: Dataset, test: Dataset, rounds: int) -> Scored:
    """What trees of the training part say of the labels that came in the test part."""
    seen, asked = features(train), features(test)
    scores: dict[Pair, dict[str, float]] = {}
    by_label: dict[str, list[tuple[int, Pair]]] = {}
    for row, pair, _ in pairs_of(test):
        by_label.setdefault(pair[1], []).append((row, pair))
    for label, pairs in by_label.items():
        target = _holds(train, label)
        if 0 < target.sum() < len(target):
            shares = contributions(fit(seen, target, rounds), asked[[row for row, _ in pairs]])
            for (row, pair), told in zip(pairs, shares, strict=True):
                there = np.unique(test.events[row])
                scores[pair] = {test.event_names[e]: float(told[e]) for e in there if told[e]}
    return Scored(scores)


def fit(seen: csr_array, target: npt.NDArray[np.bool_], rounds: int) -> Any:
    """One label's trees; the same on every run."""
    trees = load_extra("lightgbm", "bench, boosted trees")
    settings = {"objective": "binary", "num_threads": 1, "seed": 0, "deterministic": True, "verbosity": -1}
    data = trees.Dataset(csr_matrix(seen), target.astype(float), free_raw_data=False)
    return trees.train(settings, data, num_boost_round=rounds)


def contributions(model: Any, asked: csr_array) -> npt.NDArray[np.float64]:
    """Share of each type in the log odds, its count and its recency together: (rows, types)."""
    dense = np.asarray(model.predict(csr_matrix(asked), pred_contrib=True).todense())
    width = asked.shape[1] // 2
    return np.asarray(dense[:, :width] + dense[:, width : 2 * width])


def _holds(data: Dataset, label: str) -> npt.NDArray[np.bool_]:
    held = np.zeros(len(data), bool)
    if label in data.label_names:
        held[data.labels.rows()[data.labels.ids == data.label_names.index(label)]] = True
    return held


RIVAL = Rival("boosted trees with TreeSHAP", boosted, ROUNDS, CUTS)
METHODS: dict[str, Method] = RIVAL.methods()
