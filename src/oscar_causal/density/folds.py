"""A model folder or a folder of folds, opened as one: each subject meets a model that never saw it, if there is one."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch
from torch import Tensor

from oscar_causal.data.folders import check_format, read_json
from oscar_causal.data.sequences import Int64
from oscar_causal.data.subjects import folds as subject_folds
from oscar_causal.data.subjects import subject_hashes
from oscar_causal.data.vocabulary import Vocabulary
from oscar_causal.density.checkpoint import load_model
from oscar_causal.density.interface import Contexts
from oscar_causal.density.model import OscarModel
from oscar_causal.errors import FolderError, UsageError

MEAN = -1
"""The route of a subject that no fold knows: the mean over all folds."""


@dataclass(frozen=True)
class MeanModel:
    """The mean of several models over one vocabulary. Implements both protocols of `density.interface`."""

    models: tuple[OscarModel, ...]

    @property
    def vocabulary(self) -> Vocabulary:
        """Names of events and labels."""
        return self.models[0].vocabulary

    @property
    def channels(self) -> tuple[str, ...]:
        """Numeric channels the models read."""
        return self.models[0].channels

    @property
    def max_length(self) -> int:
        """Longest sequence (in events) the models take."""
        return min(model.max_length for model in self.models)

    @property
    def min_context(self) -> int:
        """Fewest events after which label probabilities mean something."""
        return max(model.min_context for model in self.models)

    def label_probs(self, contexts: Contexts, labels: Tensor, positions: Tensor) -> Tensor:
        """The models' mean P(label | the first `positions[p]` events): (N, P, Y')."""
        return torch.stack([model.label_probs(contexts, labels, positions) for model in self.models]).mean(0)

    def label_slopes(self, sequence: Contexts, labels: Tensor, law: Tensor, shares: Sequence[float]) -> Tensor:
        """The models' mean slopes of the log odds: (S, L, Y')."""
        return torch.stack([model.label_slopes(sequence, labels, law, shares) for model in self.models]).mean(0)

    def event_probs(self, sequence: Contexts) -> Tensor:
        """The models' mean P(event i = v | events before i): (L, V)."""
        return torch.stack([model.event_probs(sequence) for model in self.models]).mean(0)

    def observed_probs(self, sequence: Contexts) -> Tensor:
        """The models' mean P(the event that stands at position i | events before i): (L,)."""
        return torch.stack([model.observed_probs(sequence) for model in self.models]).mean(0)


@dataclass(frozen=True, eq=False)
class ModelSet:
    """One model, or K folds of which model k never saw the subjects with hash(subject, seed) mod K = k."""

    models: tuple[OscarModel, ...]
    subjects: tuple[npt.NDArray[np.uint64], ...]
    """Sorted hashes of the subjects each model was trained on."""
    seed: int | None = None
    """Of the fold hash; None = a plain model."""

    @property
    def vocabulary(self) -> Vocabulary:
        """Names of events and labels, the same in all folds."""
        return self.models[0].vocabulary

    @property
    def channels(self) -> tuple[str, ...]:
        """Numeric channels the models read."""
        return self.models[0].channels

    @property
    def max_length(self) -> int:
        """Longest sequence (in events) the models take."""
        return self.mean.max_length

    @property
    def min_context(self) -> int:
        """Fewest events after which label probabilities mean something."""
        return self.mean.min_context

    @cached_property
    def mean(self) -> MeanModel:
        """The mean over all models."""
        return MeanModel(self.models)

    def compiled(self, dtype: torch.dtype) -> ModelSet:
        """The same models for many sequences at once (`OscarModel.compiled`)."""
        return replace(self, models=tuple(model.compiled(dtype) for model in self.models))

    @cached_property
    def _known(self) -> npt.NDArray[np.uint64]:
        return np.unique(np.concatenate(self.subjects))

    def routes(self, subject_ids: pa.Array) -> Int64:
        """For each subject the index of the model that judges it, or `MEAN`. A plain model judges all."""
        if self.seed is None:
            return np.zeros(len(subject_ids), np.int64)
        fold = subject_folds(subject_ids, len(self.models), seed=self.seed)
        return np.where(_among(subject_hashes(subject_ids), self._known), fold, MEAN)

    def for_sequence(self, subject_id: str) -> OscarModel | MeanModel:
        """The model that judges this subject's sequences: its own fold's, or the mean over folds for a new subject."""
        route = int(self.routes(pa.array([subject_id], pa.string()))[0])
        return self.mean if route == MEAN else self.models[route]

    def seen_in_training(self, subject_ids: pa.Array) -> npt.NDArray[np.bool_]:
        """Mark the subjects that were seen in training by the very model that judges them; true for no sound fold."""
        routes, hashes = self.routes(subject_ids), subject_hashes(subject_ids)
        seen = np.zeros(len(routes), bool)
        for index, subjects in enumerate(self.subjects):
            seen |= (routes == index) & _among(hashes, subjects)
        return seen

    def trusted(self, label: str) -> bool:
        """May verdicts on this label be trusted? With folds: when more than half of them say so.

        Each fold is judged on its own share of the subjects, so a label that is rare in the data can fail everywhere.
        """
        if label not in self.vocabulary.label_ids:
            raise UsageError(f"label: the model does not know {label!r}")
        votes = [_is_trusted(model.info["quality"], label) for model in self.models]
        return 2 * sum(votes) > len(votes)


def load_models(path: Path | str, *, device: str | torch.device = "cpu") -> ModelSet:
    """Open a model folder, or a folder with `folds.json` and `fold-0`, `fold-1`, ... inside."""
    path = Path(path)
    if not path.is_dir():
        raise FolderError(f"{path}: expected a model folder, found {'a file' if path.exists() else 'nothing'}")
    if not (path / "folds.json").exists():
        return ModelSet((load_model(path, device=device),), (read_subjects(path),))
    count, seed = _read_plan(path / "folds.json")
    parts = [path / f"fold-{k}" for k in range(count)]
    models = tuple(load_model(part, device=device) for part in parts)
    for part, model in zip(parts, models, strict=True):
        if (model.vocabulary, model.channels) != (models[0].vocabulary, models[0].channels):
            raise FolderError(f"{part}: damaged model: expected the vocabulary and channels of {parts[0].name}")
    return ModelSet(models, tuple(read_subjects(part) for part in parts), seed)


def read_subjects(folder: Path) -> npt.NDArray[np.uint64]:
    """Sorted hashes of the subjects a model was trained on, from its `training.json`."""
    packed: Any = read_json(folder / "training.json").get("subjects")
    try:
        return np.unique(np.frombuffer(base64.b64decode(packed, validate=True), "<u8").astype(np.uint64))
    except (TypeError, ValueError, binascii.Error) as error:
        raise FolderError(f"{folder / 'training.json'}: expected 'subjects' as base64 of 64-bit hashes") from error


def _read_plan(path: Path) -> tuple[int, int]:
    plan = read_json(path)
    check_format(plan, path, kind="folds", newest=1)
    count, seed = plan.get("folds"), plan.get("seed")
    if not isinstance(count, int) or not isinstance(seed, int) or isinstance(count, bool) or count < 2:
        raise FolderError(f"{path}: expected whole numbers 'folds' (from 2) and 'seed', got {count!r} and {seed!r}")
    found = sum(1 for _ in path.parent.glob("fold-*"))
    if count > found:
        raise FolderError(f"{path}: expected as many folders fold-0, fold-1, ... as 'folds' says, found {found}")
    return count, seed


def _among(hashes: npt.NDArray[np.uint64], known: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Which hashes are in the sorted array."""
    if not len(known):
        return np.zeros(len(hashes), bool)
    at = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
    found: npt.NDArray[np.bool_] = known[at] == hashes
    return found


def _is_trusted(quality: dict[str, Any], label: str) -> bool:
    return bool(quality.get("per_label", {}).get(label, {}).get("trusted", False))
