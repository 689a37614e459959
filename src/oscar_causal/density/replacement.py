"""Replacement laws for models without a Tf_x of their own: what may stand where an event is taken out.

Both are laws of events without regard to the events before. They make contexts that are less like real sequences than
those of a trained next-event model; effects are then effects under such contexts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from oscar_causal.data.sequences import Dataset
from oscar_causal.data.vocabulary import SPECIAL_IDS, Vocabulary, build_vocabulary
from oscar_causal.density.interface import Contexts
from oscar_causal.errors import UsageError

PARTS = 10
"""Donor laws tell this many parts of a sequence apart."""


@dataclass(frozen=True, eq=False)
class PlaceLaw:
    """P(event) by place: row `part` of `laws` for the events of that part of the sequence. An `EventDensity`."""

    vocabulary: Vocabulary
    laws: Tensor
    """(parts, V), rows summing to one, nothing on the special ids."""

    def event_probs(self, sequence: Contexts) -> Tensor:
        """The law of each position, whatever stands before it: (L, V)."""
        length = sequence.event_ids.shape[1]
        part = torch.arange(length) * len(self.laws) // max(length, 1)
        return self.laws[part].to(sequence.event_ids.device)


def marginal(dataset: Dataset, vocabulary: Vocabulary | None = None) -> PlaceLaw:
    """The frequency of each event in the dataset, at every position.

    >>> from oscar_causal.data.sequences import from_records
    >>> data = from_records([{"sequence_id": "1", "events": ["A", "B", "B", "B"], "times": [0, 1, 2, 3]}])
    >>> marginal(data).laws[0, 3:].tolist()
    [0.75, 0.25]
    """
    return _place_law(dataset, vocabulary or build_vocabulary(dataset), parts=1)


def donors(dataset: Dataset, vocabulary: Vocabulary | None = None) -> PlaceLaw:
    """Events that stand in the same tenth of other sequences: a replacement is lent by a random donor.

    A tenth of the sequences in which no known event stands takes the frequencies of the whole dataset.
    """
    return _place_law(dataset, vocabulary or build_vocabulary(dataset), parts=PARTS)


def _place_law(dataset: Dataset, vocabulary: Vocabulary, *, parts: int) -> PlaceLaw:
    ids = vocabulary.event_table(dataset.event_names)[dataset.events.ids].astype(np.int64)
    lengths, rows = dataset.lengths, dataset.events.rows()
    place = (np.arange(len(ids)) - dataset.events.offsets[:-1][rows]) * parts // lengths[rows]
    counts = np.bincount(place * vocabulary.size + ids, minlength=parts * vocabulary.size)
    counts = counts.reshape(parts, vocabulary.size).astype(np.float64)
    counts[:, :SPECIAL_IDS] = 0
    if not counts.any():
        raise UsageError("replacement law: expected a dataset with events of the vocabulary, found none")
    counts[counts.sum(1) == 0] = counts.sum(0)
    return PlaceLaw(vocabulary, torch.as_tensor(counts / counts.sum(1, keepdims=True), dtype=torch.float32))
