"""The rows that know the fleet: boundaries read as patterns, and `fused`, with its network and without.

`fused` goes the way of `oscar discover`, `oscar population`, `oscar discover --population`: the pool are training
sequences that were held out of the model's training. Without the network the same way is gone with a label model that
knows the frequency of every label and nothing else, so all that is left is what boundaries and their patterns say.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor

from oscar_causal.data.rules import EventIndex
from oscar_causal.data.sequences import Dataset, Int64
from oscar_causal.data.subjects import held_out, pack_subjects
from oscar_causal.data.vocabulary import Vocabulary, build_vocabulary
from oscar_causal.density.folds import ModelSet
from oscar_causal.density.interface import Contexts
from oscar_causal.density.replacement import PlaceLaw, marginal
from oscar_causal.discovery.classical.features import FeatureConfig, FeatureKind
from oscar_causal.discovery.classical.learning import learn_boundaries
from oscar_causal.discovery.classical.methods import BaselineConfig
from oscar_causal.discovery.fleet_prior import Classical, features_by_label, subject_fold
from oscar_causal.discovery.fused import EVEN, FusedConfig
from oscar_causal.discovery.local import one_thread
from oscar_causal.discovery.oneshot import DiscoveryConfig, discover
from oscar_causal.discovery.reading import Readings, count_patterns, readings_of
from oscar_causal.discovery.refining import refined
from oscar_causal.discovery.results import ResultsWriter
from oscar_causal.graph.assembling import Source, assemble, classical_of, with_read_rules, with_rules
from oscar_causal.graph.population_folder import Population, candidates_by_label, write_population
from oscar_causal.graph.rule_recovery import recover_rules
from oscar_causal.graph.variants import with_variants
from oscar_causal.score.bench.ladder.interface import Answer, Explained, Method, Part
from oscar_causal.score.bench.ladder.models import ModelSettings, device, trained_on
from oscar_causal.score.bench.ladder.trained import explained
from oscar_causal.score.matching import Pair

KINDS: tuple[tuple[FeatureKind, ...], ...] = (("presence",), ("presence", "counts", "order"))
"""What boundaries are learnt from: IAMB by presence, and with counts and order."""
LONGEST = 4096


@dataclass(frozen=True, eq=False)
class BaseRates:
    """A label model without a network: P(label) is its frequency, whatever happened."""

    vocabulary: Vocabulary
    rates: Tensor
    """(Y,)"""
    events: PlaceLaw
    channels: tuple[str, ...] = ()
    max_length: int = LONGEST
    min_context: int = 1

    def label_probs(self, contexts: Contexts, labels: Tensor, positions: Tensor) -> Tensor:
        """The frequencies: (N, P, Y')."""
        return self.rates[labels].expand(len(contexts.event_ids), len(positions), -1)

    def event_probs(self, sequence: Contexts) -> Tensor:
        """P(event i = v): (L, V)."""
        return self.events.event_probs(sequence)


def fleet_rows(settings: ModelSettings | None = None) -> dict[str, Method]:
    """The rows, from the simplest on."""
    how = settings or ModelSettings()
    return {
        "pattern reading": lambda part: read_patterns(part, how),
        "fused without network": lambda part: fused(part, _without_network(part, how), how, boundaries=True),
        "fused": lambda part: fused(part, _network(part, how), how, boundaries=False),
        "fused with boundaries": lambda part: fused(part, _network(part, how), how, boundaries=True),
    }


def learnt_boundaries(train: Dataset, workers: int) -> Classical:
    """What raises and lowers each label, as `oscar population --classical` has it: IAMB's boundaries, refined."""
    subjects = pack_subjects(train.subject_ids)
    configs = [BaselineConfig(features=FeatureConfig(kinds), label_time_limit=None) for kinds in KINDS]
    found = [learn_boundaries(train, config, workers=workers) for config in configs]
    return refined([classical_of("iamb", items, subjects) for items in found], [train], workers=workers)


def read_patterns(part: Part, settings: ModelSettings) -> Explained:
    """An event is a cause where the boundary of the label, read in this sequence, says that it probably acted."""
    features = features_by_label(learnt_boundaries(part.train, settings.workers))
    readings = readings_of(count_patterns(part.train, features).patterns, features)
    return Explained({} if readings is None else dict(_readings(readings, part.test)))


def _readings(readings: Readings, test: Dataset) -> Iterator[tuple[Pair, Answer]]:
    ids = {name: number for number, name in enumerate(test.event_names)}
    offsets, subjects = test.events.offsets, test.subject_ids.to_pylist()
    for row, name in enumerate(test.sequence_ids.to_pylist()):
        mine = slice(int(offsets[row]), int(offsets[row + 1]))
        index = EventIndex(np.array([0, mine.stop - mine.start]), test.events.ids[mine], test.times[mine], ids)
        for label in test.labels_of(row):
            read = readings.read(label, index, subject_fold(subjects[row]))
            acted = {} if read is None else read.acted
            yield (name, label), Answer(frozenset(e for e, chance in acted.items() if chance >= EVEN), scores=acted)


def fused(part: Part, models: ModelSet, settings: ModelSettings, *, boundaries: bool) -> Explained:
    """`fused` with a population made of the pool; `boundaries`: it is given classical ones (`--classical`) too."""
    known = learnt_boundaries(part.train, settings.workers) if boundaries else None
    with TemporaryDirectory(prefix="oscar-ladder-") as name:
        pool = _pool(part, settings)
        source = _explained_pool(Path(name) / "pool", models, part.train, pool)
        population = with_variants(assemble([source], classical=known), [part.train])
        population = _with_rules(population, source, models) if settings.rules else population
        write_population(Path(name) / "population", population)
        config = DiscoveryConfig(estimator="fused", fused=FusedConfig(str(Path(name) / "population")))
        found = explained(models.models[0], part.test, config)
    return replace(found, extra={"pool": float(len(pool)), "rules": float(len(population.rules))})


def _pool(part: Part, settings: ModelSettings) -> Int64:
    """Labelled training sequences of the subjects that were held out of training."""
    config = settings.training(part.seed)
    outside = held_out(part.train.subject_ids, config.validation, seed=config.seed)
    return np.flatnonzero(outside & (part.train.labels.lengths > 0))[: settings.pool]


def _explained_pool(out: Path, models: ModelSet, train: Dataset, pool: Int64) -> Source:
    """The results folder of the pool, as `oscar discover` writes it."""
    run = {"fingerprint": "pool", "estimator": "intervention"}
    writer = ResultsWriter(out, run)
    with one_thread(device()):
        found = [item for items in discover(models.models[0], train, indices=pool) for item in items]
    writer.write_shard(0, found)
    writer.finish()
    return Source(out, run, train, models)


def _with_rules(population: Population, source: Source, models: ModelSet) -> Population:
    """With the rules that `oscar population` recovers, which the prior reads where a label has no boundary."""
    data, prior = source.dataset, population.prior
    unseen = ~models.seen_in_training(data.subject_ids)
    proposals = recover_rules(
        models,
        data,
        candidates_by_label(population.boundaries, prior),
        held_out=data.take(unseen) if unseen.any() and not unseen.all() else None,
        features={} if prior is None else features_by_label(prior.classical),
    )
    return with_read_rules(with_rules(population, proposals), [source])


def _network(part: Part, settings: ModelSettings) -> ModelSet:
    return trained_on(part.train, part, part.seed, settings)


def _without_network(part: Part, settings: ModelSettings) -> ModelSet:
    vocabulary = build_vocabulary(part.train)
    counts = np.bincount(part.train.labels.ids, minlength=len(part.train.label_names))
    named = dict(zip(part.train.label_names, counts / max(len(part.train), 1), strict=True))
    rates = torch.tensor([named[label] for label in vocabulary.labels], dtype=torch.float32)
    model: Any = BaseRates(vocabulary, rates, marginal(part.train, vocabulary), part.train.channels)
    return ModelSet((model,), (np.empty(0, np.uint64),))
