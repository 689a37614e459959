"""A client's sequence made ready for the model: checked, encoded, and sent to the fold that never saw its subject."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from oscar_causal.data.batches import Encoded, encode
from oscar_causal.data.sequences import Dataset, Ragged, from_records, ragged_offsets
from oscar_causal.data.vocabulary import UNKNOWN_ID
from oscar_causal.density.folds import MEAN, MeanModel, ModelSet
from oscar_causal.density.model import OscarModel
from oscar_causal.errors import DataError
from oscar_causal.serve.edits import event_times
from oscar_causal.serve.payloads import Sequence


@dataclass(frozen=True, eq=False)
class Prepared:
    """One sequence as the library takes it."""

    sequence: Sequence
    data: Dataset
    """This one sequence."""
    encoded: Encoded
    route: int
    """Index of the model that judges it, or `folds.MEAN`."""
    seen: bool
    """Was its subject seen in training by that model?"""

    @property
    def length(self) -> int:
        """Events the model reads."""
        return int(self.encoded.events.lengths[0])

    @property
    def flags(self) -> list[str]:
        """What the model does not see as it was sent."""
        strange = self.encoded.events.ids == UNKNOWN_ID
        shift = len(self.sequence.events) - self.length
        names = list(dict.fromkeys(self.sequence.events[shift + int(k)] for k in np.flatnonzero(strange)))
        flags = [f"{len(names)} event types the model does not know: {', '.join(names[:5])}"] if names else []
        return [*flags, f"the oldest {shift} events are not read"] if shift else flags


def prepare(models: ModelSet, sequence: Sequence) -> Prepared:
    """Check and encode a sequence; what is wrong with it is a DataError."""
    unknown = [name for name in sequence.channels if name not in models.channels]
    if unknown:
        known = ", ".join(models.channels) or "none"
        raise DataError(f"channels: the model reads {known}, got {unknown[0]!r}")
    data = from_records([_record(sequence)])
    encoded = encode(data, models.vocabulary, max_length=models.max_length, channels=models.channels)
    route = int(models.routes(data.subject_ids)[0])
    return Prepared(sequence, data, encoded, route, bool(models.seen_in_training(data.subject_ids)[0]))


def _record(sequence: Sequence) -> dict[str, Any]:
    # NaN = missing, as null is; a channel of nulls alone would have no type
    channels = {name: [math.nan if v is None else v for v in values] for name, values in sequence.channels.items()}
    return {
        "sequence_id": sequence.sequence_id,
        "subject_id": sequence.subject_id or sequence.sequence_id,
        "events": sequence.events,
        "times": event_times(sequence),
        "labels": sequence.labels,
        **channels,
    }


def judge(models: ModelSet, route: int) -> OscarModel | MeanModel:
    """The model of a route."""
    return models.mean if route == MEAN else models.models[route]


def join(parts: list[Encoded]) -> Encoded:
    """Several encoded sequences end to end, so that one forward pass answers them all."""
    return Encoded(
        _join_ragged([part.events for part in parts]),
        np.concatenate([part.times for part in parts]),
        np.concatenate([part.channels for part in parts]),
        _join_ragged([part.labels for part in parts]),
        np.concatenate([part.labelled for part in parts]),
        np.concatenate([part.outcome_times for part in parts]),
        np.concatenate([part.cut for part in parts]),
    )


def _join_ragged(parts: list[Ragged]) -> Ragged:
    return Ragged(
        ragged_offsets(np.concatenate([part.lengths for part in parts])), np.concatenate([part.ids for part in parts])
    )
