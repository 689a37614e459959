"""The rows of `oscar bench labels`: each fits the training part and says P(label | whole sequence)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq
from scipy.sparse import csr_array

from oscar_causal.data.extras import load_extra
from oscar_causal.data.sequences import Dataset, Float64
from oscar_causal.density.fitting import train
from oscar_causal.density.folds import load_models
from oscar_causal.density.quality import calibrated, logits_at
from oscar_causal.density.reference import base_rates
from oscar_causal.density.settings import TrainConfig
from oscar_causal.score.bench.label_models.features import (
    TYPES,
    StaticTable,
    counts,
    last_values,
    recencies,
)
from oscar_causal.score.bench.label_models.material import Bool, Material, Predicted
from oscar_causal.score.bench.label_models.plain_transformer import plain_transformer
from oscar_causal.score.bench.label_models.scoring import log_losses
from oscar_causal.score.bench.ladder.counting import l1_norm

STRENGTHS = (0.03, 0.1, 0.3, 1.0)
"""C of the L1 logistic regression: for each label from the first on, while the log loss on validation falls."""
ROUNDS, MOST_ROUNDS = 50, 300
"""Boosting goes on by so many rounds while the validation log loss falls; its best round is kept, for each label."""
LEAVES = 8
"""Of a boosted tree."""


class Tables(NamedTuple):
    """The parts of the material as tables, a row for each sequence."""

    learn: Any
    validation: Any
    asked: Any


def base_rate(material: Material) -> Predicted:
    """Each label's share of the training sequences."""
    rates = base_rates(material.outcomes(material.learn))
    return Predicted(np.tile(rates, (len(material.validation), 1)), np.tile(rates, (len(material.asked), 1)))


def true_probabilities(material: Material) -> Predicted:
    """The world's own probabilities (Bayes): what a perfect label model would say."""
    return Predicted(_true(material.validation, material), _true(material.asked, material))


def _true(part: Dataset, material: Material) -> Float64:
    assert part.path is not None  # noqa: S101 - worlds are read from folders
    table = pq.read_table(part.path / "probabilities.parquet")
    place = {name: row for row, name in enumerate(table["sequence_id"].to_pylist())}
    rows = [place[name] for name in part.sequence_ids.to_pylist()]
    return np.stack([table[name].to_numpy()[rows] for name in material.vocabulary.labels], axis=1)


def has_truth(data: Dataset) -> bool:
    """Do the sequences come with the probabilities they were drawn with?"""
    return data.path is not None and (data.path / "probabilities.parquet").exists()


def logistic(material: Material) -> Predicted:
    """L1 logistic regression on presence and log(1 + count) of every event type, and static covariates."""
    linear = load_extra("sklearn.linear_model", "logistic regression")
    types, static = min(TYPES, len(material.vocabulary.events)), StaticTable.of(material.learn)

    def table(part: Dataset) -> Any:
        number = counts(material.encoded(part), types)
        return csr_array(np.concatenate([number > 0, np.log1p(number), static(part)], axis=1).astype(float))

    def fit(tables: Tables, came: Bool, judged: Bool) -> tuple[Float64, Float64]:
        best, kept = np.inf, (np.empty(0), np.empty(0))
        for strength in STRENGTHS:
            model = linear.LogisticRegression(C=strength, solver="liblinear", random_state=0, **l1_norm())
            model.fit(tables.learn, came)
            validation, asked = (model.predict_proba(part)[:, 1] for part in (tables.validation, tables.asked))
            loss = log_losses(validation, judged).sum()
            if loss >= best:
                break
            best, kept = loss, (validation, asked)
        return kept

    return _label_by_label(material, table, fit)


def trees(material: Material) -> Predicted:
    """Boosted trees on counts, time since the last occurrence and value there of every event type, and statics."""
    ensemble = load_extra("sklearn.ensemble", "boosted trees")
    types, static = min(TYPES, len(material.vocabulary.events)), StaticTable.of(material.learn)
    tells: Any = slice(None)

    def table(part: Dataset) -> Any:
        encoded = material.encoded(part)
        columns = [counts(encoded, types), recencies(encoded, types), last_values(encoded, types), static(part)]
        return np.concatenate(columns, axis=1)[:, tells]

    seen = table(material.learn)
    tells = np.fmax.reduce(seen) > np.fmin.reduce(seen)  # a column without any value is an error to scikit-learn

    def fit(tables: Tables, came: Bool, judged: Bool) -> tuple[Float64, Float64]:
        model = ensemble.HistGradientBoostingClassifier(
            max_leaf_nodes=LEAVES, early_stopping=False, warm_start=True, random_state=0
        )
        for rounds in range(ROUNDS, MOST_ROUNDS + 1, ROUNDS):
            model.set_params(max_iter=rounds).fit(tables.learn, came)
            staged = [probs[:, 1] for probs in model.staged_predict_proba(tables.validation)]
            best = int(np.argmin([log_losses(probs, judged).sum() for probs in staged]))
            if best < rounds - ROUNDS // 2:
                break
        asked = next(probs for k, probs in enumerate(model.staged_predict_proba(tables.asked)) if k == best)
        return staged[best], asked[:, 1]

    return _label_by_label(material, table, fit)


Fit = Callable[[Tables, Bool, Bool], tuple[Float64, Float64]]
"""Tables, what came in `learn` and in `validation` -> probabilities of `validation` and of `asked`."""


def _label_by_label(material: Material, table: Callable[[Dataset], Any], fit: Fit) -> Predicted:
    """A model of its own for each label; base rates where the label came in all training sequences."""
    tables = Tables(*(table(part) for part in (material.learn, material.validation, material.asked)))
    found = base_rate(material)
    came, judged = material.outcomes(material.learn), material.outcomes(material.validation)
    for y in np.flatnonzero(~came.all(0)):
        found.validation[:, y], found.test[:, y] = fit(tables, came[:, y], judged[:, y])
    return found


def ours(material: Material) -> Predicted:
    """`oscar train` at its defaults, read after the last event as `oscar check` does."""
    config = TrainConfig(seed=material.seed)
    config = config if material.steps is None else replace(config, steps=material.steps)
    folder = material.work / "model"
    train(material.train, folder, config, force=True)
    model = load_models(folder, device=material.device).models[0]
    columns = [model.vocabulary.label_ids[name] for name in material.vocabulary.labels]

    def probs(part: Dataset) -> Float64:
        encoded = model.encode(part)
        rows = np.arange(len(part))
        logits = logits_at(model, encoded, rows, encoded.events.lengths[:, None])[:, 0]
        return calibrated(logits, model.calibration)[:, columns]

    weights = sum(part.numel() for part in model.network.parameters())
    told = {"weights": weights, "steps": config.steps, "preset": config.preset}
    return Predicted(probs(material.validation), probs(material.asked), told)


@dataclass(frozen=True)
class Row:
    """One label model."""

    predict: Callable[[Material], Predicted]
    network: bool = False
    """Trained by steps, on a GPU where there is one."""
    needs: str | None = None
    """An optional package."""


ROWS: Mapping[str, Row] = {
    "base rate": Row(base_rate),
    "true P": Row(true_probabilities),
    "logistic regression": Row(logistic, needs="sklearn"),
    "boosted trees": Row(trees, needs="sklearn"),
    "plain Transformer": Row(plain_transformer, network=True),
    "ours": Row(ours, network=True),
}
"""In the order of the table."""
