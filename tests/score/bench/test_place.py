"""Where benchmarks work: test subjects play no part in training; a given model stands in for one of the same split."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from oscar_causal.data.sequences import Dataset
from oscar_causal.data.subjects import held_out
from oscar_causal.density.fitting import train
from oscar_causal.density.folds import load_models
from oscar_causal.density.settings import preset_config
from oscar_causal.errors import UsageError
from oscar_causal.score.bench import place as place_module
from oscar_causal.score.bench.place import Place
from oscar_causal.score.bench.settings import BenchSettings, bench_settings


def test_a_given_model_is_not_taken_for_one_with_other_settings(
    settings: Callable[..., BenchSettings], tmp_path: Path
) -> None:
    known = settings()
    given = Place(replace(known, work=tmp_path, seed=known.seed + 1))
    assert given.model() == known.model
    with pytest.raises(UsageError, match="trains a model of its own"):
        given.model(steps=2)


def test_training_meets_no_test_subject_in_any_role(
    ready: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    met: list[Dataset] = []
    monkeypatch.setattr(place_module, "train", lambda data, *args, **how: met.append(data))
    place = Place(bench_settings(tmp_path, quick=True, dataset=ready.fleet))
    place.model()
    tested = set(place.data.take(place.unseen).subject_ids.to_pylist())
    assert len(tested) > 5
    assert set(met[0].subject_ids.to_pylist()) == set(place.data.subject_ids.to_pylist()) - tested
    assert met[0].path != place.fleet  # what the model folder names holds no test subject either


def test_a_given_model_is_tested_on_subjects_that_did_not_stop_it(
    settings: Callable[..., BenchSettings], ready: Any, tmp_path: Path
) -> None:
    known = settings()
    assert known.model is not None
    place = Place(known)
    ids = place.data.subject_ids
    stopping = held_out(ids, 0.1, seed=0)  # as `train` chooses them
    assert stopping.any()
    assert not stopping[place.unseen].any()
    assert not load_models(known.model).seen_in_training(ids)[place.unseen].any()
    train(place.data, tmp_path / "whole", preset_config("tiny", steps=1, batch_tokens=512))
    with pytest.raises(UsageError, match="stopped and calibrated on all held-out subjects"):
        _ = Place(replace(known, model=tmp_path / "whole")).unseen
