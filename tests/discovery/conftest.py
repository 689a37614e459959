"""Models whose every answer is known: solvable processes, and labels that are plain functions of the set of events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from oscar_causal.data.sequences import Dataset, from_records
from oscar_causal.data.solvable import EXAMPLES, Pull, SolvableProcess
from oscar_causal.data.vocabulary import SPECIAL_IDS, Vocabulary
from oscar_causal.density.exact import ExactDensity
from oscar_causal.density.interface import Contexts


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


Answer = Callable[[np.ndarray], np.ndarray]
"""Which event types stand in each prefix (M, types) -> P(label) (M, Y)."""


@dataclass(frozen=True)
class ResponseModel:
    """P(label) is any function of the set of events in the prefix; replacements are uniform over all event types."""

    vocabulary: Vocabulary
    answer: Answer
    max_length: int = 10_000
    min_context: int = 1
    asked: list[np.ndarray] = field(default_factory=list)
    """Event ids (N, L) of every request, in order."""

    def event_probs(self, sequence: Contexts) -> torch.Tensor:
        law = torch.full((sequence.event_ids.shape[1], self.vocabulary.size), 1.0)
        law[:, :SPECIAL_IDS] = 0.0
        return law / law.sum(-1, keepdim=True)

    def label_probs(self, contexts: Contexts, labels: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        ids = contexts.event_ids.numpy()
        self.asked.append(ids)
        answers = [self.answer(self._present(ids[:, :p]))[:, labels.numpy()] for p in positions.tolist()]
        return torch.as_tensor(np.stack(answers, axis=1)).float()

    def _present(self, ids: np.ndarray) -> np.ndarray:
        present = np.zeros((len(ids), self.vocabulary.size), bool)
        np.put_along_axis(present, ids, True, axis=1)
        return present[:, SPECIAL_IDS:]


@dataclass(frozen=True)
class Workshop:
    """What the tests of this folder build with."""

    def process(self, name: str, **changes: Any) -> SolvableProcess:
        """A ready-made process, with changes to its config."""
        return SolvableProcess(replace(EXAMPLES[name], **changes))

    def announced(self) -> tuple[SolvableProcess, np.ndarray]:
        """N brings A about and does nothing else; a sequence where it did. 16 events: room for mean + 2.75 sd."""
        pulls = (Pull("N", "A", 9.0), Pull("N", "A", 4.0, lag=2))
        process = self.process("announcer", length=16, weights=(-6.0, 0.0, -3.0), pulls=pulls)
        return process, np.array([10, 20, 30, 1, 40, 50, 60, 2, 0, 70, 11, 12, 13, 14, 15, 16])

    def exact(self, process: SolvableProcess) -> ExactDensity:
        return ExactDensity(process)

    def response(self, types: int, answer: Answer, labels: tuple[str, ...] = ("fault",)) -> ResponseModel:
        """Event types e0, e1, ...; the first `types` of them can be drawn."""
        return ResponseModel(Vocabulary(tuple(f"e{k}" for k in range(types)), labels), answer)

    def contexts(self, event_ids: list[int] | np.ndarray, times: list[float] | None = None) -> Contexts:
        """One sequence of process ids (0, 1, ...) as observed."""
        ids = torch.as_tensor(np.asarray(event_ids, np.int64))[None] + SPECIAL_IDS
        when = torch.arange(ids.shape[1], dtype=torch.float64) if times is None else torch.tensor(times).double()
        return Contexts(ids, when, torch.zeros(ids.shape[1], 0))

    def dataset(self, process: SolvableProcess, count: int, seed: int) -> Dataset:
        """Sequences drawn from a process, with their labels."""
        drawn = process.sample(count, np.random.default_rng(seed))
        return from_records(
            {
                "sequence_id": f"s{k}",
                "events": [process.event_names[e] for e in drawn.event_ids[k]],
                "times": drawn.times[k].tolist(),
                "labels": [name for name, on in zip(process.label_names, drawn.labels[k], strict=True) if on],
            }
            for k in range(count)
        )


@pytest.fixture(scope="session")
def workshop() -> Workshop:
    return Workshop()


def _decoy_garage(count: int, seed: int) -> Dataset:
    """`fault` comes by `(A then B within 600s & C | D >= 3) & !E`; A and B in time are hardly ever without C.

    Each scenario is a route, which brings the label, or decoys of both; F often comes with a scenario.
    """
    rng = np.random.default_rng(seed)
    records = []
    for k in range(count):
        at = [(float(t), f"n{e}") for t, e in zip(rng.uniform(0, 9000, 5), rng.integers(0, 30, 5), strict=True)]
        kind = rng.choice(["none", "order", "count", "decoys", "stray"], p=[0.7, 0.08, 0.08, 0.08, 0.06])
        begin = float(rng.uniform(0, 5000))
        if kind == "stray":
            at += [(float(rng.uniform(0, 9000)), str(e)) for e in rng.choice(list("ABCDEF"), 2)]
        elif kind != "none":
            gap = rng.uniform(1, 600) if kind == "order" else rng.uniform(601, 3000)
            if kind == "order" or rng.random() < 0.8:
                at += [(begin, "A"), (begin + gap, "B"), (float(rng.uniform(0, 9000)), "C")]
            times = 3 if kind == "count" else int(rng.integers(0, 3))
            at += [(float(t), "D") for t in rng.uniform(0, 9000, times)]
            at += [(begin, e) for e, share in (("E", 0.25), ("F", 0.7)) if rng.random() < share]
        events = [event for _, event in sorted(at)]
        came = kind in ("order", "count") and "E" not in events
        labels = ["fault"] if came else ["none"]
        records.append({"sequence_id": f"{seed} {k}", "subject_id": f"car {seed} {k // 2}", "events": events})
        records[-1] |= {"times": [time for time, _ in sorted(at)], "labels": labels}
    return from_records(records)


@pytest.fixture(scope="session")
def decoy_garage() -> Callable[[int, int], Dataset]:
    """A fleet of so many sequences and a seed."""
    return cache(_decoy_garage)
