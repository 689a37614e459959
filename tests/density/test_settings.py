"""Settings are checked at birth, one line each."""

from __future__ import annotations

import math
from typing import Any

import pytest

from oscar_causal.density.settings import SIZES, TrainConfig, preset_config
from oscar_causal.errors import UsageError


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("preset", "huge"),
        ("scheme", "three-stage"),
        ("label_form", ""),
        ("steps", 0),
        ("steps", 1.5),
        ("steps", True),
        ("batch_tokens", 3),
        ("learning_rate", -1e-3),
        ("learning_rate", math.nan),
        ("learning_rate", "fast"),
        ("warmup", 1.0),
        ("min_context", -1),
        ("max_length", 1),
        ("lost_labels", 1.0),
        ("validation", 0.9),
        ("min_count", 0),
        ("evaluations", 0),
        ("patience", 0),
        ("seed", -1),
        ("weight_decay", -1.0),
        ("clip", math.inf),
        ("label_weight", math.nan),
        ("prefix_weight", -0.1),
        ("checkpoint_seconds", -1),
    ],
)
def test_what_cannot_be_is_named(name: str, value: Any) -> None:
    with pytest.raises(UsageError, match=name) as caught:
        TrainConfig(**{name: value})
    assert "\n" not in str(caught.value)


def test_presets_and_round_trip() -> None:
    for preset in SIZES:
        config = preset_config(preset, seed=5)
        assert config.seed == 5
        assert TrainConfig.from_json(config.to_json()) == config
    with pytest.raises(UsageError, match="'colour'"):
        TrainConfig.from_json({"colour": "red"})
    with pytest.raises(UsageError, match="preset"):
        preset_config("giant")
