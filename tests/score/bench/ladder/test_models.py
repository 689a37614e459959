"""The label model of a part: named by all that decides it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from oscar_causal.data.batches import encode
from oscar_causal.data.sequences import from_records
from oscar_causal.density.fitting import train
from oscar_causal.density.folds import load_models
from oscar_causal.density.settings import TrainConfig
from oscar_causal.discovery.local import one_thread
from oscar_causal.errors import UsageError
from oscar_causal.score.bench.ladder.interface import Part
from oscar_causal.score.bench.ladder.models import ModelSettings, data_digest, model_of, true_model

FEW = ModelSettings(steps=3)


def test_the_model_is_what_train_makes(part: Callable[..., Part], tmp_path_factory: pytest.TempPathFactory) -> None:
    given, folder = part(), tmp_path_factory.mktemp("model") / "model"
    with one_thread("cpu"):
        train(given.train, folder, FEW.training(0))
    expected, found = load_models(folder).models[0], model_of(given, 0, FEW)
    encoded = encode(given.test, expected.vocabulary, max_length=expected.max_length, channels=expected.channels)
    rows = np.arange(4)
    np.testing.assert_allclose(
        found.last_label_logits(encoded, rows), expected.last_label_logits(encoded, rows), atol=1e-4
    )


def test_defaults_are_those_of_the_product() -> None:
    assert ModelSettings().training(3).to_json() == TrainConfig(seed=3).to_json()


def test_the_digest_tells_sequences_apart() -> None:
    one = {"sequence_id": "1", "events": ["A", "B"], "times": [0, 1], "labels": ["y"]}
    changes = [{"times": [0, 2]}, {"events": ["B", "A"]}, {"labels": []}, {"sequence_id": "2"}, {"value": [1.0, 2.0]}]
    found = {data_digest(from_records([{**one, **change}])) for change in ({}, *changes)}
    assert len(found) == 6
    two = from_records([one, {**one, "sequence_id": "2"}])
    assert data_digest(two.take([0])) == data_digest(from_records([one])) != data_digest(two)


def test_sets_from_elsewhere_have_no_true_probabilities(part: Callable[..., Part]) -> None:
    given = part(world=None)
    with pytest.raises(UsageError, match="expected a world"):
        true_model(given, given.train, given.test)
