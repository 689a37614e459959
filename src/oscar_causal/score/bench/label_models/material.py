"""What a label model learns from and is asked: the same sequences, split and labels for every one of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from oscar_causal.data.batches import Encoded, encode
from oscar_causal.data.sequences import Dataset, Float64
from oscar_causal.data.subjects import held_out
from oscar_causal.data.vocabulary import Vocabulary, build_vocabulary

Bool = npt.NDArray[np.bool_]
VALIDATION = 0.1
"""Share of the training subjects that choose settings and thresholds; the default of `oscar train`, with its split."""
MAX_LENGTH = 512
"""Older events of longer sequences are cut off; the default of `oscar train`."""


@dataclass(frozen=True)
class Material:
    """Training and test sequences of any two datasets; sequences whose labels nobody recorded are left out."""

    train: Dataset
    test: Dataset
    work: Path
    """Where a model folder may be written."""
    device: str = "cpu"
    seed: int = 0
    steps: int | None = None
    """Optimiser steps of networks; None: their defaults."""

    @cached_property
    def learn(self) -> Dataset:
        """Weights are fitted to these."""
        return self._part(~self._held)

    @cached_property
    def validation(self) -> Dataset:
        """Stops the fitting, chooses settings and thresholds."""
        return self._part(self._held)

    @cached_property
    def asked(self) -> Dataset:
        """Test sequences with recorded labels."""
        return self.test.take(self.test.labelled)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Event types and labels of `learn`."""
        return build_vocabulary(self.learn)

    def encoded(self, part: Dataset) -> Encoded:
        """Any part in ids of the vocabulary."""
        return encode(part, self.vocabulary, max_length=MAX_LENGTH, channels=self.train.channels)

    def outcomes(self, part: Dataset) -> Bool:
        """(n, Y): which labels of the vocabulary came."""
        return self.encoded(part).labels.indicator(len(self.vocabulary.labels))

    @property
    def _held(self) -> Bool:
        return held_out(self.train.subject_ids, VALIDATION, seed=self.seed)

    def _part(self, chosen: Bool) -> Dataset:
        return self.train.take(chosen & self.train.labelled)


@dataclass(frozen=True)
class Predicted:
    """P(label | whole sequence) by one label model."""

    validation: Float64
    """(n, Y)"""
    test: Float64
    """(n, Y)"""
    details: Mapping[str, float | str] = field(default_factory=dict)
    """What to keep beside the figures: weights, steps, chosen settings."""
