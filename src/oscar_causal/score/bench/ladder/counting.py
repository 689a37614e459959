"""Methods without a network, learnt from the training part alone: what any estimator must beat."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, hstack

from oscar_causal.data.extras import load_extra
from oscar_causal.data.sequences import Dataset
from oscar_causal.discovery.classical.ci_tests import CiConfig
from oscar_causal.discovery.classical.features import FeatureConfig
from oscar_causal.discovery.classical.learning import learn_boundaries
from oscar_causal.discovery.classical.methods import BaselineConfig
from oscar_causal.discovery.classical.reading import read_per_sequence
from oscar_causal.discovery.classical.sparse import narrow
from oscar_causal.score.bench.ladder.interface import Answer, Explained, Method, Part
from oscar_causal.score.bench.ladder.tuning import Cut, Rival, Scored
from oscar_causal.score.matching import Pair

Float = npt.NDArray[np.float64]


def pairs_of(test: Dataset) -> list[tuple[int, Pair, int]]:
    """(row, pair, label id) of every label of every sequence."""
    ids = test.sequence_ids.to_pylist()
    rows = test.labels.rows().tolist()
    return [(row, (ids[row], test.label_names[label]), label)
            for row, label in zip(rows, test.labels.ids.tolist(), strict=True)]  # fmt: skip


def _everything(train: Dataset, test: Dataset, setting: None) -> Scored:
    return Scored({pair: dict.fromkeys(test.events_of(row), 1.0) for row, pair, _ in pairs_of(test)})


def perfect_boundary(part: Part) -> Explained:
    """Each label's true causes, read where present: what no boundary read by presence can beat."""
    found = {}
    for row, pair, _ in pairs_of(part.test):
        boundary = part.boundaries.get(pair[1], frozenset())
        found[pair] = Answer(frozenset(event for event in part.test.events_of(row) if part.unit(event) in boundary))
    return Explained(found)


def counts_of(data: Dataset) -> csr_array:
    """How often each type occurs in each sequence: (sequences, types)."""
    shape = (len(data), len(data.event_names))
    ids = data.events.ids.copy()  # what follows sorts them in place
    table = csr_array((np.ones(len(ids)), ids, narrow(data.events.offsets)), shape=shape)
    table.sum_duplicates()
    return table


def _per_type(test: Dataset, weights: Float) -> Scored:
    """One strength for each (label, type), read where the type is present; NaN: not known."""
    scores = {}
    for row, pair, label in pairs_of(test):
        there = np.unique(test.events[row])
        told = weights[label, there]
        scores[pair] = {test.event_names[e]: float(w) for e, w in zip(there, told, strict=True) if not np.isnan(w)}
    return Scored(scores)


def frequent(train: Dataset) -> Float:
    """Share of the label's sequences that hold the type; NaN where the label was never seen: (labels, types)."""
    present, labels = _tables(train)
    positives = labels.sum(0)
    held = np.asarray((labels.T @ present).toarray(), float)
    return held / np.where(positives, positives, np.nan)[:, None]


def difference(train: Dataset) -> Float:
    """Share of the label's sequences that hold the type minus share of the others; NaN: label never seen."""
    present, labels = _tables(train)
    positives, totals = labels.sum(0), present.sum(0)
    held = np.asarray((labels.T @ present).toarray(), float)
    others = len(train) - positives
    told = held / np.where(positives, positives, np.nan)[:, None]
    return np.asarray(told - (totals - held) / np.where(others, others, np.nan)[:, None], float)


def lift(train: Dataset, support: int) -> Float:
    """ln P(label | type) / P(label), half a sequence added to either count; NaN below `support` sequences."""
    present, labels = _tables(train)
    positives, totals = labels.sum(0), present.sum(0)
    held = np.asarray((labels.T @ present).toarray(), float)
    found: Float = np.log((held + 0.5) / (totals + 1.0)) - np.log((positives + 0.5) / (len(train) + 1.0))[:, None]
    found[:, totals < support] = np.nan
    found[positives == 0] = np.nan
    return found


def _tables(data: Dataset) -> tuple[csr_array, csr_array]:
    """Presence of types and of labels."""
    shape = (len(data), len(data.label_names))
    labels = csr_array((np.ones(len(data.labels.ids)), data.labels.ids, narrow(data.labels.offsets)), shape=shape)
    return (counts_of(data) > 0).astype(float), labels


def logistic(train: Dataset, test: Dataset, strength: float) -> Scored:
    """L1 logistic regression on presence and log(1 + count) of every type; a type's part of the log odds here.

    `strength`: C of scikit-learn, whose default is 1.
    """
    linear = load_extra("sklearn.linear_model", "bench, L1 logistic")
    seen, asked = (_features(data) for data in (train, test))
    _, labels = _tables(train)
    width, scores = len(train.event_names), {}
    by_label: dict[int, list[tuple[int, Pair]]] = {}
    for row, pair, label in pairs_of(test):
        by_label.setdefault(label, []).append((row, pair))
    for label, pairs in by_label.items():
        target = labels[:, [label]].toarray().ravel() > 0
        if target.any() and not target.all():
            model = linear.LogisticRegression(C=strength, solver="liblinear", random_state=0, **l1_norm())
            weights = model.fit(seen, target).coef_[0]
            for row, pair in pairs:
                part = asked[[row]].multiply(weights).toarray().ravel()
                told = part[:width] + part[width:]
                scores[pair] = {test.event_names[e]: float(told[e]) for e in np.flatnonzero(told)}
    return Scored(scores)


def _features(data: Dataset) -> csr_array:
    counts = counts_of(data)
    return csr_array(hstack([(counts > 0).astype(float), counts.log1p()], format="csr"))


def l1_norm() -> dict[str, Any]:
    """How this version of scikit-learn is asked for the L1 norm."""
    version = load_extra("sklearn", "bench, L1 logistic").__version__
    return {"l1_ratio": 1.0} if tuple(map(int, version.split(".")[:2])) >= (1, 8) else {"penalty": "l1"}


def _iamb(train: Dataset, test: Dataset, tests: CiConfig, kinds: tuple[Any, ...]) -> Scored:
    """Global boundaries of the training part, read where present; strength: the statistic, with the effect's sign."""
    config = BaselineConfig("iamb", tests, FeatureConfig(kinds), label_time_limit=None)
    asked = sorted({label for _, (_, label), _ in pairs_of(test)})
    found = read_per_sequence(learn_boundaries(train, config, labels=asked), test)
    scores: dict[Pair, dict[str, float]] = {}
    positions: dict[Pair, dict[str, frozenset[int]]] = {}
    for item in found:
        pair = item.sequence_id, item.label
        sign = {"cause": 1.0, "inhibitor": -1.0}
        scores[pair] = {e.event: sign[e.verdict] * float(e.score or 0.0) for e in item.evidence}
        positions[pair] = {e.event: frozenset(e.positions) for e in item.evidence}
    return Scored(scores, positions)


TESTS = (CiConfig(), CiConfig(alpha=0.001), CiConfig(alpha=0.1))
"""By Bonferroni: uncorrected tests flood the boundaries of thousands of types; `bh` finds the same ones in ten times
the time (fault trees)."""
FEW = tuple(Cut(top=top) for top in (1, 2, 3, 5))
DIFFERENCES = tuple(Cut(least, top) for top in (1, 2, 3, None) for least in (0.0, 0.1, 0.25))
LIFTS = tuple(Cut(float(np.log(least)), top) for top in (1, 2, 3, None) for least in (1.0, 2.0, 5.0))
RIVALS = (
    Rival("nothing", lambda train, test, setting: Scored({})),
    Rival("everything present", _everything),
    Rival("most frequent", lambda train, test, setting: _per_type(test, frequent(train)), cuts=FEW),
    Rival("presence difference", lambda train, test, setting: _per_type(test, difference(train)), cuts=DIFFERENCES),
    Rival("lift", lambda train, test, support: _per_type(test, lift(train, support)), (5, 20), LIFTS),
    Rival("L1 logistic", logistic, (1.0, 0.1, 0.03, 0.01), tuple(Cut(least) for least in (0.0, 0.25, 0.5, 1.0))),
    Rival("iamb", lambda train, test, tests: _iamb(train, test, tests, ("presence",)), TESTS),
    Rival("iamb with order", lambda train, test, tests: _iamb(train, test, tests, ("counts", "order")), TESTS),
)
"""The rows without a network, simplest first."""
PERFECT = "perfect boundary by presence"
METHODS: dict[str, Method] = {
    PERFECT: perfect_boundary,
    **{k: m for rival in RIVALS for k, m in rival.methods().items()},
}
"""Row -> method."""
