"""A model whose P(label) is known, and parts of a world."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from oscar_causal.data.sequences import Dataset, from_records, read_dataset
from oscar_causal.data.synthetic.worlds import make_world
from oscar_causal.data.synthetic.worlds.write import write_world
from oscar_causal.data.vocabulary import SPECIAL_IDS, Vocabulary
from oscar_causal.density.interface import Contexts
from oscar_causal.score.bench.ladder.interface import Part
from oscar_causal.score.bench.ladder.worlds import read_reasons

NAMES = tuple(f"E{k:02d}" for k in range(30))


class Known:
    """P(y) = 0.2 + the weights of the first types that are there; slopes of its log odds by taking types out."""

    vocabulary = Vocabulary(NAMES, ("y",))
    max_length, min_context = 100, 1
    channels = ()

    def __init__(self, *weights: float) -> None:
        self.weights = np.array(weights)

    def event_probs(self, sequence: Contexts) -> torch.Tensor:
        """All types alike."""
        law = torch.ones(sequence.event_ids.shape[1], self.vocabulary.size)
        law[:, :SPECIAL_IDS] = 0
        return law / law.sum(-1, keepdim=True)

    def probs(self, ids: Any) -> Any:
        """P(y) of each row."""
        present = np.stack([(ids == SPECIAL_IDS + t).any(1) for t in range(len(self.weights))], axis=1)
        return 0.2 + present @ self.weights

    def label_probs(self, contexts: Contexts, labels: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """After each of the positions."""
        answers = [self.probs(contexts.event_ids[:, :position].numpy()) for position in positions.tolist()]
        return torch.as_tensor(np.stack(answers, axis=1))[:, :, None].float()

    def label_slopes(self, sequence: Contexts, labels: torch.Tensor, law: Any, shares: Any) -> torch.Tensor:
        """At every share the weight of the type, at its first occurrence."""
        ids = sequence.event_ids[0].numpy() - SPECIAL_IDS
        slopes = torch.zeros(len(shares), len(ids), 1)
        for t, weight in enumerate(self.weights):
            if (ids == t).any():
                slopes[:, int(np.argmax(ids == t)), 0] = weight
        return slopes


@pytest.fixture
def known() -> type[Known]:
    """The model."""
    return Known


@pytest.fixture
def night() -> Dataset:
    """One sequence of six types, one of them twice."""
    events = [NAMES[k] for k in (0, 1, 2, 1, 3, 4, 5)]
    return from_records([{"sequence_id": "night", "events": events, "times": list(range(7)), "labels": ["y"]}])


@pytest.fixture(scope="session")
def world_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A world in which a static covariate decides which event counts."""
    folder = tmp_path_factory.mktemp("worlds") / "static"
    write_world("static", 5, folder, train=160, test=60)
    return folder


@pytest.fixture
def part(world_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Part]:
    """Makes a part of the world: 40 sequences to explain, 20 to choose by."""
    work = tmp_path_factory.getbasetemp() / "models"

    def make(**given: Any) -> Part:
        train, test = (read_dataset(world_folder / name) for name in ("train", "test"))
        judge = test.take(np.arange(40, 60))
        usual = {"test": test.take(np.arange(40)), "learn": train, "judge": judge, "known": read_reasons(judge)}
        return Part(**{"train": train, **usual, "work": work, "world": make_world("static", 5), **given})

    return make
