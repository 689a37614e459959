"""The kinds of rows a benchmark is made of: a one-shot estimator, a classical method; each says what it measured."""

from __future__ import annotations

import resource
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from oscar_causal.data.subjects import folds as subject_folds
from oscar_causal.discovery.classical.learning import learn_boundaries
from oscar_causal.discovery.classical.methods import BaselineConfig
from oscar_causal.discovery.classical.reading import read_per_sequence
from oscar_causal.discovery.fused import FusedConfig
from oscar_causal.discovery.oneshot import DiscoveryConfig
from oscar_causal.score.bench.place import Place, model_figures, observed_pairs
from oscar_causal.score.breakdowns import spread
from oscar_causal.score.discoveries import Accepted
from oscar_causal.score.ground import Ground
from oscar_causal.score.matching import AVERAGES, match, summarise
from oscar_causal.score.scoring import Explained, explained_of

TRUTHS = ("rule_all", "rule_present", "why")


class Row(Protocol):
    """One line of a table, or one curve of a figure."""

    def measure(self, place: Place) -> dict[str, Any]:
        """The row's figures: `truth` (mean and sd of every average), `seconds`, `pairs`, and what else it has."""


@dataclass(frozen=True)
class OneShot:
    """`oscar discover` with some settings, on one model, over several seeds or over folds of the subjects."""

    config: DiscoveryConfig
    training: Mapping[str, Any] = field(default_factory=dict)
    """Changes to the model's training settings."""
    runs: int = 1
    folds: int | None = None
    small_sample: int | None = None
    """Also the spread over five disjoint samples of so many sequences."""

    def measure(self, place: Place) -> dict[str, Any]:
        """See `Row`."""
        model = place.model(**self.training)
        scored, seconds, samples = [], [], {}
        for run in range(self.runs):
            config = self.prepared(place, model, place.settings.seed + run)
            explained, took = place.explain(model, config)
            scored.append(place.score(explained, folds=self.folds))
            seconds.append(took)
        if self.small_sample is not None:
            samples = {"small_sample": small_samples(place, explained, self.small_sample)}
        return {
            **figures_of(scored),
            **samples,
            "sequences": len(place.part.data),
            "runs": self.runs,
            "seconds": {
                "mean": float(np.mean(seconds)),
                "sd": float(np.std(seconds, ddof=1)) if self.runs > 1 else None,
            },
            "model": model_figures(model),
            "settings": config_figures(config),
        }

    def prepared(self, place: Place, model: Path, seed: int) -> DiscoveryConfig:
        """The settings of one run."""
        return replace(self.config, seed=seed)


@dataclass(frozen=True)
class Fused(OneShot):
    """`fused`, with the prior that the held-out sequences give when `config` (of `intervention`) explains them."""

    def prepared(self, place: Place, model: Path, seed: int) -> DiscoveryConfig:
        """The settings of one run, after its population was made."""
        alone = replace(self.config, seed=seed)
        prior = FusedConfig(population=str(place.population(model, alone)))
        return replace(alone, estimator="fused", fused=prior)


@dataclass(frozen=True)
class Classical:
    """A classical method: boundaries learnt from all that training gets, read in the test sequences, without model."""

    config: BaselineConfig
    folds: int | None = None

    def measure(self, place: Place) -> dict[str, Any]:
        """See `Row`. `whole_boundary`: all events of the label's boundary, present or not, against the whole rule."""
        part, rows = place.part.data, place.training_rows
        begun, spent = time.monotonic(), _cpu_seconds()
        with place.show(self.config.method, "labels") as show:
            done = [0]

            def count(_: object) -> None:
                done[0] += 1
                show(done[0], len(place.data.label_names))

            config = replace(self.config, time_limit=place.settings.time_limit, label_time_limit=None)
            found = learn_boundaries(place.data.take(rows), config, workers=place.settings.workers, on_boundary=count)
        seconds, spent = time.monotonic() - begun, _cpu_seconds() - spent
        explained = explained_of(read_per_sequence(found, part))
        whole = {item.label: frozenset(item.events) for item in found}
        return {
            **figures_of([place.score(explained, folds=self.folds)]),
            "whole_boundary": _whole(explained, whole, place.part.ground),
            "sequences": len(part),
            "learnt_from": len(rows),
            "labels": len(found),
            "incomplete_labels": sum(not item.complete for item in found),
            "seconds": {"mean": seconds, "sd": None},
            "cpu_seconds": spent,
            "settings": {"alpha": config.tests.alpha, "correction": config.tests.correction},
        }


@dataclass(frozen=True)
class Presence:
    """No method: whoever knows the published rules names their positive events that are present."""

    folds: int | None = None

    def measure(self, place: Place) -> dict[str, Any]:
        """See `Row`."""
        known = place.part.ground.truths.get("rule_present", {})
        accepted = (Accepted(pair, event, "cause") for pair, events in known.items() for event in sorted(events))
        explained = Explained(tuple(observed_pairs(place.part.data)), tuple(accepted))
        return {
            **figures_of([place.score(explained, folds=self.folds)]),
            "sequences": len(place.part.data),
            "seconds": {"mean": 0.0, "sd": None},
            "settings": {},
        }


def figures_of(scored: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Per truth mean and sd of every average, over folds (one scored run) or over runs; breakdowns of the first run."""
    truths = [name for name in TRUTHS if name in scored[0]]
    first = scored[0]
    return {
        "truth": {name: _spread([part[name] for part in scored]) for name in truths},
        "by_size": {name: _short(first[name]["by_size"]) for name in truths},
        "by_causes": {name: _short(first[name]["by_causes"]) for name in truths},
        "by_frequency": {name: _short(first[name]["by_frequency"]) for name in truths},
        "pairs": first[truths[0]]["pairs"],
    }


def _spread(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Mean and sd; sd is None where there is one part alone."""
    if len(parts) == 1 and "over_folds" in parts[0]:
        folded = parts[0]["over_folds"]
        return {key: {average: folded[key][average] for average in AVERAGES} for key in ("mean", "sd")}
    found = spread([{average: part[average] for average in AVERAGES} for part in parts])
    return found if len(parts) > 1 else {**found, "sd": None}


def _short(groups: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("pairs", "sample", "weighted")
    return {group: {key: part[key] for key in kept} for group, part in groups.items()}


def small_samples(place: Place, explained: Explained, size: int, samples: int = 5) -> dict[str, Any]:
    """Mean and sd over disjoint samples of at most `size` held-out sequences; says how many there were in each."""
    part = place.part.data
    group = subject_folds(part.subject_ids, samples, seed=place.settings.seed)
    scored, sizes = [], []
    for k in range(samples):
        ids = set(part.sequence_ids.to_numpy(zero_copy_only=False)[group == k][:size].tolist())
        chosen = explained.restricted(ids)
        if chosen.pairs:
            scored.append(place.score(chosen))
            sizes.append(len(ids))
    return {"truth": figures_of(scored)["truth"], "sequences": sizes} if scored else {"truth": {}, "sequences": []}


def _cpu_seconds() -> float:
    """Of this process and of those it has waited for: what others do on the machine is not in it."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(part.ru_utime + part.ru_stime for part in used)


def config_figures(config: DiscoveryConfig) -> dict[str, Any]:
    """The estimator's own settings, without places."""
    own = config.to_json().get(config.estimator_name, {})
    return {"estimator": config.estimator_name, **{key: value for key, value in own.items() if key != "population"}}


def _whole(explained: Explained, boundaries: Mapping[str, frozenset[str]], ground: Ground) -> dict[str, Any]:
    found = {pair: boundaries[pair[1]] for pair in explained.pairs}
    return summarise(match(found, ground.truths.get("rule_all", {})))
