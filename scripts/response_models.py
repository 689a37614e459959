"""Perfect models for measuring: P(label) is a known function of which events are present, replacements are uniform."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from oscar_causal.data.vocabulary import SPECIAL_IDS, Vocabulary
from oscar_causal.density.interface import Contexts
from oscar_causal.discovery.boundary import EventEvidence
from oscar_causal.discovery.intervention import InterventionConfig, explain
from oscar_causal.discovery.subject import prepare

Answer = Callable[[np.ndarray], np.ndarray]
"""Presence of event types (M, V) -> P(label) (M,)."""

HIGH, LOW = 0.95, 0.02


@dataclass(frozen=True)
class ResponseModel:
    """One label over `types` event types e0, e1, ...; implements both protocols of `density.interface`."""

    types: int
    answer: Answer
    max_length: int = 1 << 20
    min_context: int = 1

    @property
    def vocabulary(self) -> Vocabulary:
        """e0, e1, ... and the label `fault`."""
        return Vocabulary(tuple(f"e{k}" for k in range(self.types)), ("fault",))

    def event_probs(self, sequence: Contexts) -> torch.Tensor:
        """Every event type is equally likely everywhere: (L, V)."""
        law = torch.full((sequence.event_ids.shape[1], SPECIAL_IDS + self.types), 1.0 / self.types)
        law[:, :SPECIAL_IDS] = 0.0
        return law

    def label_probs(self, contexts: Contexts, labels: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """P(label | the first events): (N, P, 1)."""
        ids = contexts.event_ids.numpy()
        columns = []
        for position in positions.tolist():
            present = np.zeros((len(ids), SPECIAL_IDS + self.types), bool)
            np.put_along_axis(present, ids[:, :position], True, axis=1)
            columns.append(self.answer(present[:, SPECIAL_IDS:]))
        return torch.as_tensor(np.stack(columns, axis=1)[:, :, None].astype(np.float32))


def all_of(*types: int) -> Answer:
    """High where all of these are present."""
    return lambda present: np.where(present[:, list(types)].all(1), HIGH, LOW)


def any_of(*types: int) -> Answer:
    """High where one of these is present."""
    return lambda present: np.where(present[:, list(types)].any(1), HIGH, LOW)


def any_and(either: tuple[int, ...], needed: tuple[int, ...]) -> Answer:
    """High where one of `either` and all of `needed` are present."""
    return lambda present: np.where(present[:, list(either)].any(1) & present[:, list(needed)].all(1), HIGH, LOW)


def additive(base: float, **sizes: float) -> Answer:
    """base + the sizes of the types present; additive(0.1, e0=0.3)."""
    columns, steps = [int(name[1:]) for name in sizes], np.array(list(sizes.values()))
    return lambda present: base + present[:, columns] @ steps


def ignoring(rng: np.random.Generator) -> Answer:
    """A coin that no event can move."""
    return lambda present: (rng.random(len(present)) < 0.5).astype(float)


def one_sequence(ids: np.ndarray) -> Contexts:
    """A sequence of type numbers 0, 1, ..., one event per second."""
    tokens = torch.as_tensor(np.asarray(ids, np.int64))[None] + SPECIAL_IDS
    return Contexts(tokens, torch.arange(len(ids), dtype=torch.float64), torch.zeros(len(ids), 0))


def evidence_of(
    model: object, ids: np.ndarray, name: str, config: InterventionConfig, label: int = 0
) -> tuple[EventEvidence, ...]:
    """Everything the intervention estimator says about one label of one sequence."""
    subject = prepare(model, one_sequence(ids), sequence_id=name, seed=0, shuffle=False)  # type: ignore[arg-type]
    names = [model.vocabulary.name(int(t)) for t in subject.types]  # type: ignore[attr-defined]
    (found,), _ = explain(model, subject, np.array([label]), names, config)  # type: ignore[arg-type]
    return found.evidence
