"""The oracle as a model: both densities of an exactly solvable process, exact or wrong by a known bit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from oscar_causal.data.sequences import Int64
from oscar_causal.data.solvable import ExactOracle, SolvableProcess
from oscar_causal.data.vocabulary import SPECIAL_IDS, Vocabulary
from oscar_causal.density.interface import Contexts
from oscar_causal.errors import UsageError


@dataclass(frozen=True)
class ExactDensity:
    """Implements both protocols of `density.interface` over a process; times and channels are not looked at.

    Model id of type t is `SPECIAL_IDS + t`, label ids are the process's. Contexts may be shorter than the process's
    sequences: they are prefixes then, with all futures summed out. With `error` > 0 every log-odds is off by at most
    that much, by a fixed function of the prefix and `seed`.

    >>> from oscar_causal.data.solvable import example
    >>> density = ExactDensity(example("and"))
    >>> density.vocabulary.events[:3], density.vocabulary.labels, density.max_length
    (('A', 'B', 'C'), ('fault',), 6)
    """

    process: SolvableProcess
    error: float = 0.0
    seed: int = 0

    @cached_property
    def oracle(self) -> ExactOracle:
        """Who answers: the process itself, or its perturbed twin."""
        return self.process.perturbed(self.error, self.seed) if self.error else self.process

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The process's events and labels, in its own order."""
        return Vocabulary(self.process.event_names, self.process.label_names)

    @property
    def max_length(self) -> int:
        """Length of the process's sequences."""
        return self.process.length

    @property
    def min_context(self) -> int:
        """The oracle knows the labels' probabilities before the first event."""
        return 0

    def label_probs(self, contexts: Contexts, labels: Tensor, positions: Tensor) -> Tensor:
        """P(label | the first `positions[p]` events), futures summed out: (N, P, Y')."""
        types, chosen = self._types(contexts), labels.cpu().numpy()
        where = positions.cpu().numpy()
        if len(where) == 1:
            probs = self.oracle.label_probs_prefix(types[:, : int(where[0])])[:, None]
        else:
            probs = self.oracle.label_probs_along(types)[:, where]
        return torch.as_tensor(probs[..., chosen], dtype=torch.float32, device=contexts.event_ids.device)

    def event_probs(self, sequence: Contexts) -> Tensor:
        """P(event i = v | events before i): (L, V), nothing on the special ids."""
        types = self._types(sequence)
        if len(types) != 1:
            raise UsageError(f"event_probs: expected one sequence, got {len(types)}")
        law = np.pad(self.oracle.next_event_probs_along(types[0]), ((0, 0), (SPECIAL_IDS, 0)))
        return torch.as_tensor(law, dtype=torch.float32, device=sequence.event_ids.device)

    def _types(self, contexts: Contexts) -> Int64:
        """Contexts as type ids of the process (N, L)."""
        ids = contexts.event_ids.cpu().numpy()
        if ids.size and ids.min() < SPECIAL_IDS:
            raise UsageError(
                f"exact density: expected events of the process, got {self.vocabulary.name(int(ids.min()))}"
            )
        types: Int64 = ids - SPECIAL_IDS
        return types
