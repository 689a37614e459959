"""Which model is asked about a sequence: with folds, the one that has not seen its subject."""

from __future__ import annotations

from typing import Any

from oscar_causal.density.folds import ModelSet


def judge_of(model: Any, subject_id: str) -> Any:
    """The model itself, or of a `ModelSet` the fold that never saw this subject (the mean, where no fold knows it)."""
    return model.for_sequence(subject_id) if isinstance(model, ModelSet) else model
