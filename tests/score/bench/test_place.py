"""Where benchmarks work: a given model stands in for the base model only, and only beside models of the same split."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from oscar_causal.errors import UsageError
from oscar_causal.score.bench.place import Place
from oscar_causal.score.bench.settings import BenchSettings


def test_a_given_model_is_not_taken_for_one_with_other_settings(
    settings: Callable[..., BenchSettings], tmp_path: Path
) -> None:
    known = settings()
    given = Place(replace(known, work=tmp_path, seed=known.seed + 1))
    assert given.model() == known.model
    with pytest.raises(UsageError, match="trains a model of its own"):
        given.model(steps=2)
