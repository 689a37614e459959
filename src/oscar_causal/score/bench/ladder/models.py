"""The label model of a part: trained once as `oscar train` does it, kept, and opened as `oscar discover` opens it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from oscar_causal import density
from oscar_causal.data.folders import exclusive
from oscar_causal.data.sequences import Dataset
from oscar_causal.data.vocabulary import build_vocabulary
from oscar_causal.density.fitting import train
from oscar_causal.density.folds import ModelSet, load_models
from oscar_causal.density.partial import unfinished
from oscar_causal.density.precision import settle_on, versions
from oscar_causal.density.replacement import marginal
from oscar_causal.density.settings import TrainConfig, preset_config
from oscar_causal.discovery.local import one_thread
from oscar_causal.discovery.results import fingerprint
from oscar_causal.errors import UsageError
from oscar_causal.score.bench.ladder.interface import Part
from oscar_causal.score.bench.true_model import TrueModel


@dataclass(frozen=True)
class ModelSettings:
    """How label models are trained and asked; the defaults are the product's."""

    preset: str = "tiny"
    steps: int | None = None
    """Optimiser steps; None: as many as `oscar train` takes (tiny: 1,000, about 3.5 passes over 20,000 sequences of 60
    events)."""
    judged: int = 300
    """Most sequences of `Part.judge` on which settings are chosen."""
    pool: int = 600
    """Most sequences, held out of training, that a population is made of."""
    rules: bool = True
    """Does a population recover rules? `oscar population` does, unless told `--no-rules`."""
    workers: int = 1
    """Processes that count; no figure depends on them."""

    def training(self, seed: int) -> TrainConfig:
        """Settings of `oscar train`."""
        return preset_config(self.preset, seed=seed, **({} if self.steps is None else {"steps": self.steps}))


QUICK = ModelSettings(steps=150, judged=60, pool=150, rules=False)


def model_of(part: Part, seed: int | None = None, settings: ModelSettings | None = None) -> Any:
    """The label model trained on `part.train`, as `discover` takes it; `seed` of training (default: the part's)."""
    return trained_on(part.train, part, part.seed if seed is None else seed, settings or ModelSettings()).models[0]


def trained_on(data: Dataset, part: Part, seed: int, settings: ModelSettings) -> ModelSet:
    """The model trained on some sequences of a part; a second process that wants it waits for the first."""
    config = settings.training(seed)
    what = {"config": config.to_json(), "versions": versions(), "program": _program()}
    folder = part.work / f"model-{data_digest(data)[:12]}-{config.preset}-seed{seed}-{fingerprint(what)[:8]}"
    part.work.mkdir(parents=True, exist_ok=True)
    with exclusive(folder.with_suffix(".lock"), what="training", wait=True):
        if not folder.exists():
            with one_thread("cpu"):  # of a CPU the number of threads decides the last bits
                train(data, folder, config, resume=unfinished(folder), workers=settings.workers)
    return _opened(folder, device())


def device() -> str:
    """The fastest there is."""
    return "cuda" if torch.cuda.is_available() else "cpu"


@lru_cache(maxsize=4)
def _opened(folder: Path, device: str) -> ModelSet:
    settle_on(device)
    models = load_models(folder, device=device)
    return models.compiled(torch.float32) if device == "cuda" else models


@cache
def _program() -> str:
    """A hash of the code that trains: a model that other code has trained is another model."""
    total = hashlib.sha256()
    for place in density.__path__:
        for file in sorted(Path(place).glob("*.py")):
            total.update(file.read_bytes())
    return total.hexdigest()


def data_digest(data: Dataset) -> str:
    """Of everything that training may look at, also where the sequences are part of a folder."""
    total = hashlib.sha256()
    names = [data.sequence_ids.to_pylist(), data.subject_ids.to_pylist(), data.event_names, data.label_names]
    total.update(json.dumps([*names, data.channels, data.static()]).encode())
    label_times = data.label_times()
    numbers = [data.events.offsets, data.events.ids, data.labels.offsets, data.labels.ids, data.labelled, data.times]
    numbers += [data.channel(name) for name in data.channels] + ([] if label_times is None else [label_times])
    for array in numbers:
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()


def true_model(part: Part, learnt: Dataset, asked: Dataset) -> TrueModel:
    """The world's own probabilities; names and replacements are those of the sequences that others learn from."""
    if part.world is None:
        raise UsageError("true probabilities: expected a world, got a set whose formula nobody knows")
    vocabulary = build_vocabulary(learnt)
    return TrueModel(part.world, vocabulary, marginal(learnt, vocabulary), asked)
