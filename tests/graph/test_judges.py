"""With folds every sequence is put to the model that has not seen its subject: the models note what they are asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch

from oscar_causal.data.sequences import Dataset
from oscar_causal.data.subjects import folds, subject_hashes
from oscar_causal.density.folds import ModelSet
from oscar_causal.density.interface import Contexts
from oscar_causal.graph.interplay import InterplayConfig, label_interplay
from oscar_causal.graph.judges import judge_of
from oscar_causal.graph.rule_recovery import RuleRecoveryConfig, recover_rules
from oscar_causal.graph.world_test import HeldOut

RULES = {"y": "A & B & !D", "z": "A then C"}
QUICK = RuleRecoveryConfig(backgrounds=8, probes=6, arrangements=8, judged=6)


@dataclass(frozen=True)
class Witness:
    """A model that notes the times of every sequence it is asked about; times tell sequences apart."""

    model: Any
    asked: set[tuple[float, ...]] = field(default_factory=set)
    channels: tuple[str, ...] = ()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def event_probs(self, sequence: Contexts) -> torch.Tensor:
        self.asked.add(tuple(sequence.times.tolist()))
        return self.model.event_probs(sequence)

    def label_probs(self, contexts: Contexts, labels: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        self.asked.add(tuple(contexts.times.tolist()))
        return self.model.label_probs(contexts, labels, positions)


@pytest.fixture
def folded(garage: Any) -> tuple[Dataset, ModelSet]:
    data = garage.fleet(RULES, count=240)
    models = tuple(Witness(garage.model(data, RULES)) for _ in range(2))
    fold = folds(data.subject_ids, 2, seed=5)
    hashes = subject_hashes(data.subject_ids)
    subjects = tuple(np.unique(hashes[fold != k]) for k in range(2))  # model k never saw fold k
    return data, ModelSet(models, subjects, 5)  # type: ignore[arg-type]


def check(data: Dataset, models: ModelSet) -> None:
    fold = folds(data.subject_ids, 2, seed=5)
    bounds = data.events.offsets
    owner = {tuple(data.times[bounds[k] : bounds[k + 1]].tolist()): int(fold[k]) for k in range(len(data))}
    for k, model in enumerate(models.models):
        asked = model.asked  # type: ignore[attr-defined]
        assert asked
        assert {owner[times] for times in asked} == {k}


def test_rules_ask_the_fold_that_has_not_seen_the_sequence(folded: tuple[Dataset, ModelSet]) -> None:
    data, models = folded
    found = recover_rules(models, data, {"y": ["A", "B", "D"], "z": ["A", "C"]}, QUICK)
    assert [proposal.rule for proposal in found] == ["A & B & !D", "A then C"]
    check(data, models)


def test_so_does_the_interplay_of_labels(folded: tuple[Dataset, ModelSet]) -> None:
    data, models = folded
    label_interplay(models, data, {"y": ["A", "B"], "z": ["A", "C"]}, InterplayConfig())
    check(data, models)


def test_so_does_the_test_about_the_world(folded: tuple[Dataset, ModelSet]) -> None:
    data, models = folded
    assert HeldOut.of(models, data).p_value(("y", "A"), 0) is not None
    check(data, models)


def test_a_plain_model_judges_all(folded: tuple[Dataset, ModelSet]) -> None:
    model = folded[1].models[0]
    assert judge_of(model, "car 1") is model
    assert judge_of(folded[1], "nobody knows").models == folded[1].models  # the mean over folds
