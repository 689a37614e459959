"""A model that has learned given rules exactly, and fleets whose labels follow given rules."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pytest
import torch

from oscar_causal.data.rules import EventIndex, Rule, evaluate, parse
from oscar_causal.data.sequences import Dataset, from_records
from oscar_causal.data.vocabulary import Vocabulary, build_vocabulary
from oscar_causal.density.interface import Contexts


@dataclass(frozen=True)
class RuleModel:
    """P(label) = `high` where its rule holds in the context, else `low`, off by up to `error` either way.

    Events are replaced evenly by the `fillers`.
    """

    vocabulary: Vocabulary
    rules: dict[str, Rule]
    high: float = 0.95
    low: float = 0.02
    error: float = 0.0
    fillers: tuple[str, ...] = ()
    max_length: int = 10_000
    min_context: int = 1

    @cached_property
    def _ids(self) -> dict[str, int]:
        return dict(self.vocabulary.event_ids)

    def event_probs(self, sequence: Contexts) -> torch.Tensor:
        law = torch.zeros(sequence.event_ids.shape[1], self.vocabulary.size)
        law[:, [self._ids[name] for name in self.fillers]] = 1.0
        return law / law.sum(-1, keepdim=True)

    def label_probs(self, contexts: Contexts, labels: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        ids, times = contexts.event_ids.numpy(), contexts.times.numpy()
        found = np.empty((len(ids), len(positions), len(labels)))
        for p, length in enumerate(positions.tolist()):
            offsets = np.arange(len(ids) + 1) * length
            index = EventIndex(offsets, ids[:, :length].reshape(-1), np.tile(times[:length], len(ids)), self._ids)
            for column, label in enumerate(labels.tolist()):
                holds = evaluate(self.rules[self.vocabulary.labels[label]], index)
                found[:, p, column] = np.where(holds, self.high, self.low) + self._wobble(ids[:, :length], label)
        return torch.as_tensor(found.clip(0, 1)).float()

    def _wobble(self, ids: np.ndarray, label: int) -> np.ndarray:
        if not self.error:
            return np.zeros(len(ids))
        mixed = (ids * np.arange(1, ids.shape[1] + 1) * 2_654_435_761 + label * 97).sum(1) % 10_007
        return self.error * (2 * mixed / 10_007 - 1)


@dataclass(frozen=True)
class Garage:
    """What the tests of this folder build with."""

    def fleet(
        self, rules: dict[str, str], *, count: int = 600, seed: int = 0, filler: int = 20, length: int = 16
    ) -> Dataset:
        """Sequences of `length` events; each event of a rule comes in about a third of them, often twice; noise-free.

        Gaps are a minute to three hours. Two sequences belong to one subject.
        """
        rng = np.random.default_rng(seed)
        parsed = {label: parse(text) for label, text in rules.items()}
        names = sorted({name for text in rules.values() for name in _names(text)})
        records: list[dict[str, Any]] = []
        for number in range(count):
            events = [f"f{rng.integers(filler):02d}" for _ in range(length)]
            for name in names:
                for _ in range(int(rng.choice([0, 0, 1, 2, 3], p=[0.3, 0.25, 0.2, 0.15, 0.1]))):
                    events[rng.integers(length)] = name
            gaps = np.exp(rng.uniform(np.log(60), np.log(10_800), length - 1)).astype(int)
            times = [0.0, *np.cumsum(gaps).astype(float)]
            index = EventIndex([0, length], _ids(events), times, _table(events))
            labels = [label for label, rule in parsed.items() if evaluate(rule, index)[0]]
            records.append(
                {
                    "sequence_id": f"s{number}",
                    "subject_id": f"car {number // 2}",
                    "events": events,
                    "times": times,
                    "labels": labels,
                }
            )
        return from_records(records)

    def model(self, dataset: Dataset, rules: dict[str, str], **changes: Any) -> RuleModel:
        """A model that knows the rules."""
        known = {label: parse(text) for label, text in rules.items()}
        return RuleModel(
            build_vocabulary(dataset), known, fillers=tuple(n for n in dataset.event_names if n[0] == "f"), **changes
        )


def _names(text: str) -> tuple[str, ...]:
    from oscar_causal.data.rules import event_names

    return event_names(parse(text))


def _table(events: list[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(sorted(set(events)))}


def _ids(events: list[str]) -> list[int]:
    table = _table(events)
    return [table[name] for name in events]


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def garage() -> Garage:
    return Garage()
