"""A world's own probabilities as the label model: what an estimator can do when Tf_y is perfect, without any training.

P(label | the first k events) is the world's formula on these events, with the record ending at the last of them.
Replacements are drawn from the frequencies of the training events. Slopes are exact differences of log odds, averaged
over random removals of the other events (the share that a network's events have faded by).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from oscar_causal.data.sequences import Dataset
from oscar_causal.data.synthetic.worlds import SqlWorld, World
from oscar_causal.data.synthetic.worlds.mechanism import Mechanism as FormulaMechanism
from oscar_causal.data.synthetic.worlds.occurrences import NONE, Bool, Float, Int, Occurrences
from oscar_causal.data.synthetic.worlds.sql import SqlMechanism
from oscar_causal.data.vocabulary import Vocabulary
from oscar_causal.density.interface import Contexts
from oscar_causal.density.replacement import PlaceLaw

Mechanism = FormulaMechanism | SqlMechanism
REMOVALS = 128
"""Random sets of removed events over which a slope is averaged."""
LONGEST = 4096


@dataclass(frozen=True, eq=False)
class TrueModel:
    """Both densities of `density.interface`, and slopes, from the formulas of a world."""

    world: World | SqlWorld
    vocabulary: Vocabulary
    events: PlaceLaw
    sequences: Dataset
    """Whose static covariates are known; a sequence is told by its times."""
    max_length: int = LONGEST
    min_context: int = 1

    @property
    def channels(self) -> tuple[str, ...]:
        """Channels that the formulas read."""
        return ("value",) if self.world.has_values else ()

    def event_probs(self, sequence: Contexts) -> Tensor:
        """P(event i = v): (L, V)."""
        return self.events.event_probs(sequence)

    def label_probs(self, contexts: Contexts, labels: Tensor, positions: Tensor) -> Tensor:
        """P(label | the first `positions[p]` events): (N, P, Y')."""
        answers = [
            [self._mechanism(y).probs(self._seen(contexts, y, position)) for y in labels.tolist()]
            for position in positions.tolist()
        ]
        return torch.as_tensor(np.array(answers).transpose(2, 0, 1).copy(), dtype=torch.float32)

    def label_slopes(self, sequence: Contexts, labels: Tensor, law: Tensor, shares: Sequence[float]) -> Tensor:
        """How much log odds each event type brings, written at its first occurrence: (S, L, Y')."""
        length = sequence.event_ids.shape[1]
        slopes = torch.zeros(len(shares), length, len(labels))
        for j, y in enumerate(labels.tolist()):
            seen = self._seen(sequence, y, length)
            for t in np.unique(seen.types[seen.types != NONE]).tolist():
                first = int(np.argmax(seen.types[0] == t))
                for s, share in enumerate(shares):
                    slopes[s, first, j] = _mean_log_odds(self._mechanism(y), seen, t, share)
        return slopes

    def _mechanism(self, label: int) -> Mechanism:
        return self._by_name[self.vocabulary.labels[label]]

    def _seen(self, contexts: Contexts, label: int, length: int) -> Occurrences:
        mechanism = self._mechanism(label)
        number = np.full(self.vocabulary.size, NONE)
        for t, kind in enumerate(mechanism.types):
            number[self._ids[kind]] = t
        types = number[contexts.event_ids[:, :length].numpy()]
        values = contexts.channels[..., :length, 0].numpy() if self.channels else np.full(length, np.nan)
        times = contexts.times[:length].numpy()
        static = self._static[contexts.times.numpy().tobytes()]
        n = len(types)
        return Occurrences(
            types,
            np.broadcast_to(times, types.shape),
            np.broadcast_to(values.astype(float), types.shape),
            np.full(n, times[-1]),
            np.broadcast_to(static, (n, len(static))),
        )

    @cached_property
    def _by_name(self) -> dict[str, Mechanism]:
        return {mechanism.label: mechanism for mechanism in self.world.mechanisms}

    @cached_property
    def _ids(self) -> Int:
        """Model id of each event type of the world."""
        unknown = self.vocabulary.size - 1
        return np.array([self.vocabulary.event_ids.get(name, unknown) for name in self.world.event_names])

    @cached_property
    def _static(self) -> dict[bytes, Float]:
        data = self.sequences
        rows = [
            np.array([float(known["site"].split()[1]), float(known["age"])]) if known else np.zeros(2)
            for known in data.static()
        ]
        bounds = zip(data.events.offsets[:-1], data.events.offsets[1:], rows, strict=True)
        return {data.times[a:b].tobytes(): row for a, b, row in bounds}


def _mean_log_odds(mechanism: Mechanism, seen: Occurrences, kind: int, share: float) -> float:
    """Mean fall of the log odds without the type, over random removals of the other types."""
    rng = np.random.default_rng(REMOVALS)
    removed = rng.random((REMOVALS, len(mechanism.types))) < share
    removed[:, kind] = False
    with_it = _log_odds(mechanism, seen, removed)
    removed[:, kind] = True
    return float(np.mean(with_it - _log_odds(mechanism, seen, removed)))


def _log_odds(mechanism: Mechanism, seen: Occurrences, removed: Bool) -> Float:
    rows = np.zeros(len(removed), np.int64)
    padded = np.column_stack([removed, np.zeros(len(removed), bool)])  # NONE = -1 is the last column
    probs = np.clip(mechanism.probs(seen.rows(rows).keep(~padded[:, seen.types[0]])), 1e-6, 1 - 1e-6)
    return np.asarray(np.log(probs / (1 - probs)))
