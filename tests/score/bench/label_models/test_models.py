"""Label models on material whose answer is known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from oscar_causal.data.metrics import average_precision
from oscar_causal.data.sequences import Dataset, from_records
from oscar_causal.density.folds import load_models
from oscar_causal.density.model import sequence_contexts
from oscar_causal.score.bench.label_models.features import StaticTable
from oscar_causal.score.bench.label_models.material import Material, Predicted
from oscar_causal.score.bench.label_models.measuring import label_figures
from oscar_causal.score.bench.label_models.models import logistic, ours, trees
from oscar_causal.score.bench.label_models.plain_transformer import (
    PlainConfig,
    PlainTransformer,
    Reader,
    plain_transformer,
    predict,
)
from oscar_causal.score.bench.label_models.scoring import figures

AddUp = Callable[[int, str], tuple[Dataset, list[float]]]
SMALL = PlainConfig(width=16, layers=1, heads=2, waves=4, steps=60, batch=64, learning_rate=1e-2, dropout=0.0)


@pytest.mark.parametrize(("model", "least"), [(logistic, 0.97), (trees, 0.85)])
def test_log_odds_that_add_up_are_learnt(
    model: Callable[[Material], Predicted], least: float, add_up: AddUp, tmp_path: Path
) -> None:
    pytest.importorskip("sklearn")
    (train, _), (test, probs) = add_up(4000, "train"), add_up(2000, "test")
    material = Material(train, test, tmp_path)
    learnt, *came = (material.outcomes(part) for part in (material.learn, material.validation, material.asked))
    true = Predicted(np.zeros(came[0].shape), np.array(probs)[:, None])
    found = figures(model(material), (came[0], came[1]), learnt, ["y"], true)
    assert least < found["skill"] < 1.01


def test_trees_read_values_also_where_some_types_never_have_one(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(0)
    records = [
        {
            "sequence_id": str(i),
            "events": ["A", "END"],
            "times": [0, 1],
            "labels": ["high"] if x > 0 else [],
            "value": [x, np.nan],
        }
        for i, x in enumerate(rng.normal(size=400))
    ]
    material = Material(from_records(records[:300]), from_records(records[300:]), tmp_path)
    assert average_precision(trees(material).test, material.outcomes(material.asked))[0] > 0.98


def test_the_plain_transformer_hears_order_and_presence_does_not(order_material: Material) -> None:
    truth = order_material.outcomes(order_material.asked)
    found = plain_transformer(order_material, SMALL)
    assert average_precision(found.test, truth)[0] > 0.99
    assert found.details["ran"] <= 60
    again = plain_transformer(order_material, SMALL)
    np.testing.assert_allclose(again.test, found.test, atol=1e-5)
    pytest.importorskip("sklearn")
    assert abs(label_figures("logistic regression", *_pair(order_material))["gain"]) < 0.05


def _pair(material: Material) -> tuple[object, object, Path]:
    return material.train, material.test, material.work


def test_neither_padding_nor_neighbours_change_a_prediction(add_up: AddUp, tmp_path: Path) -> None:
    data, _ = add_up(40, "train")  # lengths from 1 to 6
    encoded = Material(data, data, tmp_path).encoded(data)
    read = Reader(encoded, StaticTable.of(data), torch.device("cpu"))
    batch = read(encoded, read.static(data))
    torch.manual_seed(0)
    sizes = (9, batch.numbers.shape[2], batch.static.shape[1], 1)
    model = PlainTransformer(SMALL, sizes, read.wavelengths(SMALL.waves))
    alone = torch.stack([predict(model, batch.rows(torch.tensor([i]), int(batch.lengths[i])))[0] for i in range(40)])
    torch.testing.assert_close(predict(model, batch), alone, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(predict(model, batch, size=7), alone, rtol=1e-4, atol=1e-5)


def test_ours_is_what_the_trained_model_says_of_whole_sequences(add_up: AddUp, tmp_path: Path) -> None:
    (train, _), (test, _) = add_up(200, "train"), add_up(30, "test")
    material = Material(train, test, tmp_path, steps=3)
    found = ours(material)
    assert found.details["steps"] == 3
    model = load_models(tmp_path / "model").models[0]
    encoded = model.encode(test)
    for i in range(30):
        sequence = sequence_contexts(encoded, i)
        whole = torch.tensor([sequence.event_ids.shape[1]])
        expected = float(model.label_probs(sequence, torch.tensor([0]), whole))
        assert found.test[i, 0] == pytest.approx(expected, abs=1e-4)
