"""Classical boundaries of a fleet, learnt in the background: IAMB needs cores while training and looks need a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from fleet_truth import causes_of, fired_last_routes, true_rules

from oscar_causal.data.sequences import Dataset, read_dataset
from oscar_causal.data.subjects import held_out, pack_subjects
from oscar_causal.discovery.classical.boundaries import GlobalBoundary
from oscar_causal.discovery.classical.features import FeatureConfig, FeatureKind
from oscar_causal.discovery.classical.learning import learn_boundaries
from oscar_causal.discovery.classical.methods import BaselineConfig
from oscar_causal.discovery.evidence import FleetEvidence
from oscar_causal.discovery.fleet_prior import Classical, features_by_label
from oscar_causal.discovery.reading import count_patterns
from oscar_causal.discovery.refining import refined
from oscar_causal.graph.assembling import classical_of

Kinds = tuple[FeatureKind, ...]
PRESENCE: Kinds = ("presence",)
ORDER: Kinds = ("presence", "counts", "order")


@dataclass(frozen=True)
class Learnt:
    """What the training cars say without a model."""

    boundaries: dict[Kinds, list[GlobalBoundary]]
    """IAMB's, for each choice of features."""
    classical: Classical
    """Each label's boundary refined from them, as `fused` takes it."""
    patterns: FleetEvidence
    """How often each pattern of those boundaries came with the label."""
    sequences: int


@dataclass(frozen=True)
class Plan:
    """What to learn from: the cars that the model is trained on too."""

    fleet: str
    held_out: float
    seed: int
    workers: int


def training_rows(plan: Plan, data: Dataset) -> np.ndarray:
    """The sequences that a model with this split learns from."""
    return np.flatnonzero(~held_out(data.subject_ids, plan.held_out, seed=plan.seed))


def learn(plan: Plan, features: Sequence[Kinds], off_map: bool) -> Learnt:
    """Boundaries of the training cars; off the map without the sequences in which a last route fired."""
    data = read_dataset(plan.fleet)
    training = data.take(training_rows(plan, data))
    if off_map:
        fired = fired_last_routes(true_rules(Path(plan.fleet)), causes_of(data))
        names = training.sequence_ids.to_pylist()
        training = training.take([k for k, name in enumerate(names) if name not in fired])
    return learn_from(training, features, plan.workers)


def learn_from(training: Dataset, features: Sequence[Kinds], workers: int) -> Learnt:
    """IAMB's boundaries of these sequences, the refined ones, and the counts of their patterns."""
    found = {
        kinds: learn_boundaries(training, BaselineConfig(features=FeatureConfig(kinds)), workers=workers)
        for kinds in features
    }
    subjects = pack_subjects(training.subject_ids)
    sources = [classical_of("iamb", items, subjects) for items in found.values()]
    classical = refined(sources, [training], workers=workers)
    patterns = count_patterns(training, features_by_label(classical))
    return Learnt(found, classical, patterns, len(training))


class Background:
    """Learns one after the other, in the order asked for; `result()` of what is returned waits."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.process = plan, ProcessPoolExecutor(1, get_context("spawn"))

    def ask(self, *features: Kinds, off_map: bool = False) -> Future[Learnt]:
        """Begin, or wait in line."""
        return self.process.submit(learn, self.plan, features, off_map)

    def __enter__(self) -> Background:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.shutdown(wait=True, cancel_futures=True)
