"""Where a benchmark works: one fleet, its models, the test sequences and their results, each made once and kept.

Test subjects are taken out of the fleet before anything is trained: they neither train, stop nor calibrate a model.

Folders are named by a hash of all that decides their content, so rows and later calls find what is there already.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from oscar_causal import __version__
from oscar_causal.data.folders import read_json, write_json
from oscar_causal.data.select import Selection, select_sequences
from oscar_causal.data.sequences import Dataset, Int64, read_dataset
from oscar_causal.data.subjects import held_out
from oscar_causal.data.synthetic import preset, write_fleet
from oscar_causal.density.checkpoint import model_digest
from oscar_causal.density.fitting import train
from oscar_causal.density.partial import unfinished
from oscar_causal.density.settings import TrainConfig, preset_config
from oscar_causal.discovery.local import unseen_indices
from oscar_causal.discovery.oneshot import DiscoveryConfig
from oscar_causal.discovery.results import fingerprint, read_run, read_table
from oscar_causal.errors import UsageError
from oscar_causal.score.bench.curves import PrefixPass, prefix_pass
from oscar_causal.score.bench.estimators import SMALLEST_CONTEXT, THRESHOLDS
from oscar_causal.score.bench.explaining import explain_folder, job_of
from oscar_causal.score.bench.processes import Processes
from oscar_causal.score.bench.settings import BenchSettings
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
        self.processes = Processes(settings.workers, settings.device)

    def close(self) -> None:
        """End the worker processes."""
        self.processes.close()

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
        if self.settings.model is not None and not changes:
            return self.settings.model
        config = self._training(changes)
        if not np.array_equal(self.unseen, self._test_rows(config)):
            raise UsageError(
                "--model: this row trains a model of its own; expected one that a benchmark of these settings trained "
                f"(validation {config.validation}, seed {config.seed}), so that both are tested on the same subjects"
            )
        data = read_dataset(self.selected(self.training_rows))
        folder = self._folder("model", {"config": config.to_json(), "dataset": data.info.get("digest")})
        if not folder.exists():
            self.processes.start()  # meanwhile
            with self.show("training", "steps") as show:
                train(
                    data,
                    folder,
                    config,
                    resume=unfinished(folder),
                    on_step=lambda step, total, figures: show(step, total),
                )
            if self.settings.device.startswith("cuda"):
                torch.cuda.empty_cache()  # for the processes
        return folder

    def _training(self, changes: Mapping[str, Any]) -> TrainConfig:
        settings = self.settings
        given = {"steps": settings.steps, "seed": settings.seed, "min_context": SMALLEST_CONTEXT, **changes}
        if len(self.data) > LARGE_FLEET:
            given |= {"validation": 0.03, "evaluations": 4}
        return preset_config(given.pop("preset", settings.preset), **given)

    @cached_property
    def unseen(self) -> Int64:
        """Sequences of the test subjects: no training here meets them in any role. No model is needed to know them."""
        if self.settings.model is None:
            return self._test_rows(self._training({}))
        held = set(unseen_indices(self.settings.model, self.fleet).tolist())
        found = np.array(sorted(held - self._stopping(self.settings.model)), np.int64)
        if not len(found):
            raise UsageError(
                f"{self.settings.model}: stopped and calibrated on all held-out subjects of {self.fleet}; expected a "
                "model trained on part of it (oscar select), so that other subjects can test it"
            )
        return found

    def _test_rows(self, config: TrainConfig) -> Int64:
        """As many subjects again as stop and calibrate the training, by another hash, none of those among them."""
        ids = self.data.subject_ids
        stopping, chosen = (held_out(ids, config.validation, seed=seed) for seed in (config.seed, config.seed + 1))
        return np.flatnonzero(chosen & ~stopping)

    def _stopping(self, model: Path) -> set[int]:
        """Sequences of the subjects that stopped and calibrated a model, where it was trained on this fleet."""
        if (model / "folds.json").exists():  # each fold was stopped by the subjects that it is to explain
            return set(range(len(self.data)))
        trained = read_json(model / "training.json")["config"]
        marks = held_out(self.data.subject_ids, trained["validation"], seed=trained["seed"])
        return set(np.flatnonzero(marks).tolist())

    @cached_property
    def unseen_labelled(self) -> Int64:
        """Those of them that have a label."""
        found = self.unseen[self.data.labels.lengths[self.unseen] > 0]
        if not len(found):
            raise UsageError(f"{self.fleet}: expected held-out sequences with a label, found none")
        return found

    @cached_property
    def training_rows(self) -> Int64:
        """The sequences that training gets, those that stop and calibrate it among them; classical methods get the
        same."""
        return np.setdiff1d(np.arange(len(self.data)), self.unseen)

    @property
    def explained_digest(self) -> str:
        """Of the content of the held-out part: rows with the same one were measured on the same sequences."""
        return str(self.part.data.info.get("digest"))

    @cached_property
    def part(self) -> Part:
        """The first `test` labelled unseen sequences as a dataset of their own: workers open these few only."""
        rows = self.unseen_labelled[: self.settings.test]
        folder = self.selected(rows)
        data = read_dataset(folder)
        return Part(folder, data, ground_of(data, observed_pairs(data), self._label_counts()))

    def selected(self, rows: Int64) -> Path:
        """Some sequences of the fleet as a dataset folder of their own."""
        ids = tuple(self.data.take(rows).sequence_ids.to_pylist())
        folder = self._folder("part", {"ids": ids, "dataset": self.data.info.get("digest")})
        if not folder.exists():
            select_sequences(self.fleet, folder, Selection(ids=ids))
        return folder

    def _label_counts(self) -> dict[str, int]:
        names = self.data.label_names
        counts = np.bincount(self.data.labels.take(self.training_rows).ids, minlength=len(names))
        return dict(zip(names, counts.tolist(), strict=True))

    def explain(self, model: Path, config: DiscoveryConfig) -> tuple[Explained, float]:
        """Boundaries of the held-out part, and the seconds they took."""
        if config.estimator_name == "prefix":
            found = self.prefix_pass(model, config)
            return found.at(config.prefix.threshold), found.seconds
        folder = self.results(model, config)
        return read_explained(folder), float(read_run(folder)["seconds"])

    def passes(self, model: Path, config: DiscoveryConfig) -> float:
        """Forward passes per sequence that explaining the held-out part took."""
        if config.estimator_name == "prefix":
            return float(np.mean(self.prefix_pass(model, config).passes))
        verdicts = read_table(self.results(model, config), "verdicts")
        spent = dict(zip(verdicts["sequence_id"].to_pylist(), verdicts["contexts"].to_pylist(), strict=True))
        return float(np.mean(list(spent.values())))

    def prefix_pass(self, model: Path, config: DiscoveryConfig) -> PrefixPass:
        """The pass of `prefix` over the held-out part that every k shares."""
        thresholds = tuple(sorted({*THRESHOLDS, config.prefix.threshold}))
        every = replace(config, prefix=replace(config.prefix, threshold=thresholds[-1]))
        what = self._what(model, every) | {"thresholds": thresholds}
        path = self._folder("prefix", what).with_suffix(".json")
        if not path.exists():
            job = job_of(self.processes, model, self.part.folder, every)
            self.processes.ready(job)
            begun = time.monotonic()
            with self.show("discovering (prefix, every k)", "sequences") as show:
                found = prefix_pass(self.processes, job, len(self.part.data), thresholds, show)
            write_json(path, replace(found, seconds=time.monotonic() - begun).to_json())
        return PrefixPass.from_json(read_json(path))

    def results(self, model: Path, config: DiscoveryConfig) -> Path:
        """The results folder of the held-out part."""
        folder = self._folder("results", self._what(model, config))
        if not folder.exists():
            with self.show(f"discovering ({config.estimator_name})", "sequences") as show:
                explain_folder(self.processes, model, self.part.folder, folder, config, show)
        return folder

    def _what(self, model: Path, config: DiscoveryConfig) -> dict[str, Any]:
        return {
            "model": model_digest(model),
            "dataset": self.part.data.info.get("digest"),
            "config": config.to_json(),
            "program": [__version__, self.settings.commit],
        }

    def population(self, model: Path, config: DiscoveryConfig) -> Path:
        """What the held-out part as a whole says, explained with this config: the prior of `fused`, which leaves each
        subject's own part out."""
        from oscar_causal.graph.assembling import AssemblyConfig, assemble, open_source
        from oscar_causal.graph.population_folder import write_population

        results = self.results(model, config)
        folder = self._folder("population", {"results": results.name})
        if not folder.exists():
            source = open_source(results, dataset=self.part.folder, model=model, device=self.settings.device)
            with self.show("making the population", "sequences") as show:
                assembly = AssemblyConfig(intervention=config.intervention, seed=config.seed)
                write_population(folder, assemble([source], assembly, on_progress=show))
        return folder

    def score(self, explained: Explained, *, folds: int | None = None) -> dict[str, Any]:
        """Scores of explained held-out pairs against every truth."""
        return score_explained(explained, self.part.ground, folds=folds)

    def _folder(self, kind: str, what: Mapping[str, Any]) -> Path:
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
