"""How to train: one frozen dataclass, validated at birth, and the presets of network sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from oscar_causal.density.transformer import NetworkConfig
from oscar_causal.errors import UsageError

SIZES: dict[str, dict[str, int]] = {
    "tiny": {"width": 64, "heads": 4, "layers": 2, "label_layers": 1, "hidden": 160, "shortlist": 24},
    "base": {
        "width": 512,
        "heads": 8,
        "layers": 6,
        "label_layers": 1,
        "hidden": 1408,
        "label_hidden": 4096,
        "bag_width": 256,
        "shortlist": 24,
    },
    "paper": {
        "width": 768,
        "heads": 12,
        "layers": 10,
        "label_layers": 1,
        "hidden": 1920,
        "label_hidden": 1024,
        "bag_width": 128,
        "shortlist": 24,
    },
}
"""tiny: for a CPU. base: about 34 M (Tf_x) + 24 M (Tf_y) weights at 29,100 event types. paper: about 90 M + 18 M."""


WHOLE = ("steps", "batch_tokens", "min_context", "max_length", "min_count", "evaluations", "patience", "seed")
"""Settings that are whole numbers."""


PAPER_CONTEXT = 15
"""The paper's c."""


@dataclass(frozen=True)
class TrainConfig:
    """Settings of `oscar train`."""

    preset: Literal["tiny", "base", "paper"] = "tiny"
    """Size of the network."""
    label_form: Literal["shared", "cross"] = "shared"
    """Where Tf_y reads: on top of the backbone (shared) or beside it with cross-attention (cross, the paper's)."""
    scheme: Literal["joint", "two-stage"] = "joint"
    """Train both densities together, or Tf_x first and then Tf_y on the frozen backbone (the paper's)."""
    steps: int = 1000
    """Optimiser steps (two-stage: split in halves)."""
    batch_tokens: int = 4096
    """Tokens of one global batch."""
    learning_rate: float = 6e-3
    """Peak learning rate of AdamW."""
    warmup: float = 0.05
    """Share of the steps with rising learning rate; a cosine to 2 % of the peak follows."""
    weight_decay: float = 0.1
    """Decay of weight matrices (not of embeddings, norms and biases)."""
    clip: float = 1.0
    """Largest gradient norm."""
    min_context: int = 0
    """Labels are predicted from prefixes of at least this many events (the paper's c), and from the whole sequence.
    0 = fitted to the data: a quarter of the median length, at least 1, at most the paper's 15."""
    max_length: int = 512
    """Longest sequence in events; older events of longer ones are cut off."""
    label_weight: float = 4.0
    """Weight of the label loss against the next-event loss."""
    prefix_weight: float = 0.25
    """Weight of all proper prefixes together against the whole sequence inside the label loss."""
    sparsity: float = 1.0
    """How fast events (in the running sum) and pairs of events (in shortlists) that tell nothing lose their voice."""
    hidden: float = 0.0
    """Share of the sequences met with up to 30 % of their event types hidden (as `unknown`), anew each time."""
    lost_labels: float = 0.0
    """Share of positive labels known to be missing from the data."""
    balance: float = 0.0
    """How far rare labels are weighted up: a positive counts (negatives / positives) ** balance times, at most 1,000;
    probabilities stay those of the data."""
    min_count: int = 1
    """Events seen less often share the id `unknown`."""
    validation: float = 0.1
    """Share of subjects held out to choose, calibrate and judge the model."""
    evaluations: int = 10
    """How often the held-out loss is looked at, at least; small data is looked at once in each pass over it."""
    patience: int = 4
    """Stop after this many such looks' worth of steps without improvement; the best weights are kept."""
    checkpoint_seconds: float = 60.0
    """Time between checkpoints."""
    seed: int = 0
    """Decides initial weights, split and order."""

    def __post_init__(self) -> None:
        if self.preset not in SIZES:
            raise UsageError(f"preset: expected one of {', '.join(SIZES)}, got {self.preset!r}")
        _choose("scheme", self.scheme, ("joint", "two-stage"))
        _choose("label_form", self.label_form, ("shared", "cross"))
        for name in WHOLE:
            if type(getattr(self, name)) is not int:
                raise UsageError(f"{name}: expected a whole number, got {getattr(self, name)!r}")
        _between(self, "steps", 1, 10**9)
        _between(self, "batch_tokens", 16, 2**26)
        _between(self, "learning_rate", 0.0, 1.0)
        _between(self, "warmup", 0.0, 0.9)
        _between(self, "min_context", 0, 10**6)
        _between(self, "max_length", 2, 2**20)
        _between(self, "hidden", 0.0, 1.0)
        _between(self, "lost_labels", 0.0, 0.9)
        _between(self, "balance", 0.0, 1.0)
        if self.balance and self.lost_labels:
            raise UsageError("balance: not together with lost_labels, which has a likelihood of its own")
        _between(self, "validation", 0.0, 0.5)
        _between(self, "min_count", 1, 10**9)
        _between(self, "evaluations", 1, 10**6)
        _between(self, "patience", 1, 10**6)
        _between(self, "seed", 0, 2**63 - 1)
        for name in ("weight_decay", "clip", "sparsity", "label_weight", "prefix_weight", "checkpoint_seconds"):
            _between(self, name, 0.0, 10**9)

    def fitted(self, lengths: npt.NDArray[np.int64]) -> TrainConfig:
        """The same settings with c chosen by the lengths of the sequences, unless it was given.

        >>> [TrainConfig().fitted(np.array([1, n, 900])).min_context for n in (2, 19, 64)]
        [1, 4, 15]
        """
        if self.min_context or not len(lengths):
            return self
        return replace(self, min_context=int(np.clip(np.median(lengths) // 4, 1, PAPER_CONTEXT)))

    def network(self, *, events: int, labels: int, channels: int) -> NetworkConfig:
        """The network of this preset for a vocabulary."""
        return NetworkConfig(
            events=events, labels=labels, channels=channels, label_form=self.label_form, **SIZES[self.preset]
        )

    def to_json(self) -> dict[str, Any]:
        """All settings."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> TrainConfig:
        """Read settings; unknown keys are errors."""
        unknown = set(value) - {field.name for field in fields(cls)}
        if unknown:
            raise UsageError(f"training settings: unknown key {sorted(unknown)[0]!r}")
        return cls(**value)


PRESET_TRAINING: dict[str, dict[str, Any]] = {
    "tiny": {},
    "base": {"steps": 3000, "batch_tokens": 1 << 16, "learning_rate": 1e-3},
    "paper": {"steps": 6000, "batch_tokens": 1 << 17, "learning_rate": 6e-4},
}
"""Training settings that go with each size."""


def preset_config(preset: str, **changes: Any) -> TrainConfig:
    """The settings of a preset with some of them changed.

    >>> preset_config("tiny", steps=10).steps
    10
    """
    if preset not in SIZES:
        raise UsageError(f"preset: expected one of {', '.join(SIZES)}, got {preset!r}")
    return TrainConfig.from_json({"preset": preset, **PRESET_TRAINING[preset], **changes})


def _choose(name: str, value: str, options: tuple[str, ...]) -> None:
    if value not in options:
        raise UsageError(f"{name}: expected one of {', '.join(options)}, got {value!r}")


def _between(config: TrainConfig, name: str, low: float, high: float) -> None:
    value = getattr(config, name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UsageError(f"{name}: expected a number, got {value!r}")
    if not low <= value <= high:
        raise UsageError(f"{name}: expected {low} to {high}, got {value}")
