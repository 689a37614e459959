"""Where a benchmark works: one fleet, its models, the held-out sequences and their results, each made once and kept.

Folders are named by a hash of all that decides their content, so rows and later calls find what is there already.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from oscar_causal import __version__
from oscar_causal.data.folders import read_json
from oscar_causal.data.select import Selection, select_sequences
from oscar_causal.data.sequences import Dataset, Int64, read_dataset
from oscar_causal.data.synthetic import preset, write_fleet
from oscar_causal.density.checkpoint import model_digest
from oscar_causal.density.fitting import train
from oscar_causal.density.partial import unfinished
from oscar_causal.density.settings import TrainConfig, preset_config
from oscar_causal.discovery.local import discover_folder, unseen_indices
from oscar_causal.discovery.oneshot import DiscoveryConfig
from oscar_causal.discovery.results import fingerprint, read_run
from oscar_causal.errors import UsageError
from oscar_causal.score.bench.settings import BenchSettings
from oscar_causal.score.breakdowns import training_counts
from oscar_causal.score.ground import Ground, ground_of
from oscar_causal.score.matching import Pair
from oscar_causal.score.scoring import Explained, read_explained, score_explained

OnProgress = Callable[[int, int], None]
ShowProgress = Callable[[str, str], AbstractContextManager[OnProgress]]
"""(what, unit) -> a context in which progress is shown."""
LARGE_FLEET = 50_000
"""From here on a smaller share of the subjects is enough to judge a model."""


def no_progress(what: str, unit: str) -> AbstractContextManager[OnProgress]:
    """Shows nothing."""
    return nullcontext(lambda done, total: None)


@dataclass(frozen=True)
class Part:
    """The held-out sequences that are explained: a dataset folder of their own."""

    folder: Path
    data: Dataset
    ground: Ground


class Place:
    """Fleet, models, held-out part and results of a benchmark, made when first asked for."""

    def __init__(self, settings: BenchSettings, show: ShowProgress = no_progress) -> None:
        self.settings, self.show = settings, show
        self._parts: dict[Path, Part] = {}

    @cached_property
    def fleet(self) -> Path:
        """The dataset folder."""
        settings = self.settings
        if settings.dataset is not None:
            return settings.dataset
        config = preset(settings.fleet, sequences=settings.sequences)
        folder = self._folder("fleet", {"config": config.to_json(), "seed": settings.seed})
        if not folder.exists():
            with self.show("making the fleet", "sequences") as show:
                write_fleet(config, settings.seed, folder, workers=settings.workers, on_progress=show)
        return folder

    @cached_property
    def data(self) -> Dataset:
        """The whole fleet."""
        return read_dataset(self.fleet)

    def model(self, **changes: Any) -> Path:
        """The model folder: the given one, or one trained with these changes to the settings of its preset."""
        if self.settings.model is not None:
            return self.settings.model
        config = self._training(changes)
        folder = self._folder("model", {"config": config.to_json(), "dataset": self.data.info.get("digest")})
        if not folder.exists():
            with self.show("training", "steps") as show:
                train(
                    self.data,
                    folder,
                    config,
                    resume=unfinished(folder),
                    on_step=lambda step, total, figures: show(step, total),
                )
        return folder

    def _training(self, changes: dict[str, Any]) -> TrainConfig:
        base: dict[str, Any] = {"steps": self.settings.steps, "seed": self.settings.seed}
        if len(self.data) > LARGE_FLEET:
            base |= {"validation": 0.03, "evaluations": 4}
        changes = {**base, **changes}
        return preset_config(changes.pop("preset", self.settings.preset), **changes)

    def held_out(self, model: Path) -> Int64:
        """The first `test` labelled sequences that the model has not seen."""
        unseen = unseen_indices(model, self.fleet)
        unseen = unseen[self.data.labels.lengths[unseen] > 0]
        if not len(unseen):
            raise UsageError(f"{self.fleet}: expected held-out sequences with a label, found none")
        return unseen[: self.settings.test]

    def training_rows(self, model: Path) -> Int64:
        """The sequences the model was trained on."""
        return np.setdiff1d(np.arange(len(self.data)), unseen_indices(model, self.fleet))

    def part(self, model: Path) -> Part:
        """The held-out sequences of a model as a dataset of their own: worker processes open these few only."""
        if model not in self._parts:
            ids = tuple(self.data.take(self.held_out(model)).sequence_ids.to_pylist())
            folder = self._folder("part", {"ids": ids, "dataset": self.data.info.get("digest")})
            if not folder.exists():
                select_sequences(self.fleet, folder, Selection(ids=ids))
            data, (counts, _) = read_dataset(folder), training_counts(self.data, model)
            self._parts[model] = Part(folder, data, ground_of(data, observed_pairs(data), counts))
        return self._parts[model]

    def explain(self, model: Path, config: DiscoveryConfig) -> tuple[Explained, float]:
        """Boundaries of the held-out part, and the seconds they took."""
        folder = self.results(model, config)
        return read_explained(folder), float(read_run(folder)["seconds"])

    def results(self, model: Path, config: DiscoveryConfig) -> Path:
        """The results folder of the held-out part."""
        part = self.part(model)
        what = {
            "model": model_digest(model),
            "dataset": part.data.info.get("digest"),
            "config": config.to_json(),
            "program": [__version__, self.settings.commit],
        }
        folder = self._folder("results", what)
        if not folder.exists():
            with self.show(f"discovering ({config.estimator_name})", "sequences") as show:
                discover_folder(
                    model,
                    part.folder,
                    folder,
                    config,
                    workers=self.settings.workers,
                    device=self.settings.device,
                    resume=folder.with_name(f"{folder.name}.partial").exists(),
                    on_progress=show,
                )
        return folder

    def population(self, model: Path, config: DiscoveryConfig) -> Path:
        """What the held-out part as a whole says, explained with this config: the prior of `fused`, which leaves each
        subject's own part out."""
        from oscar_causal.graph.assembling import AssemblyConfig, assemble, open_source
        from oscar_causal.graph.population_folder import write_population

        results = self.results(model, config)
        folder = self._folder("population", {"results": results.name})
        if not folder.exists():
            source = open_source(results, dataset=self.part(model).folder, model=model, device=self.settings.device)
            with self.show("making the population", "sequences") as show:
                assembly = AssemblyConfig(intervention=config.intervention, seed=config.seed)
                write_population(folder, assemble([source], assembly, on_progress=show))
        return folder

    def score(self, model: Path, explained: Explained, *, folds: int | None = None) -> dict[str, Any]:
        """Scores of explained held-out pairs against every truth."""
        return score_explained(explained, self.part(model).ground, folds=folds)

    def _folder(self, kind: str, what: dict[str, Any]) -> Path:
        return self.settings.work_folder / f"{kind}-{fingerprint(what)[:12]}"


def observed_pairs(data: Dataset) -> list[Pair]:
    """Every sequence with each of its labels."""
    ids = data.sequence_ids.to_pylist()
    return [(ids[row], label) for row in range(len(data)) for label in data.labels_of(row)]


def model_figures(model: Path) -> dict[str, Any]:
    """Label F1, weights, training tokens and smallest context of a model folder (of folds: means, tokens of all)."""
    parts = sorted(model.glob("fold-*")) if (model / "folds.json").exists() else [model]
    trained = [read_json(part / "training.json") for part in parts]
    f1 = [read_json(part / "quality.json")["labels"]["weighted"]["f1"] for part in parts]
    return {
        "label_f1": float(np.mean(f1)),
        "weights": _weights(parts[0] / "model.safetensors"),
        "tokens": int(sum(part["tokens"] for part in trained)),
        "preset": trained[0]["config"]["preset"],
        "min_context": int(trained[0]["config"]["min_context"]),
    }


def _weights(path: Path) -> int:
    from safetensors import safe_open

    with safe_open(path, framework="np") as tensors:
        return sum(int(np.prod(tensors.get_slice(name).get_shape())) for name in tensors.keys())  # noqa: SIM118
