"""How do causes and other events answer a close look? Measured on sampled sequences of the fleet, as `fused` will do.

The counts go into the same tables as all other evidence; `two_groups` learns from them what an answer is worth.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from oscar_causal.data.batches import encode
from oscar_causal.data.sequences import Dataset
from oscar_causal.data.vocabulary import UNKNOWN_ID
from oscar_causal.density.folds import ModelSet
from oscar_causal.density.model import sequence_contexts
from oscar_causal.discovery.evidence import CONTROL, FOLDS, FleetEvidence, look_evidence, subject_groups
from oscar_causal.discovery.fleet_prior import FleetPrior
from oscar_causal.discovery.fused import FusedConfig, event_index, measure, measured_cells, with_words
from oscar_causal.discovery.intervention import InterventionConfig
from oscar_causal.discovery.subject import prepare

OnProgress = Callable[[int, int], None]
CONTROLS = 3
"""Events per sequence that are looked at although nothing speaks for them: they show what no cause looks like."""
Looked = tuple[str, str, int, int]
"""Label, event, group, cell."""


def choose_sequences(verdicts: pa.Table, per_label: int) -> list[str]:
    """Ids of at most `per_label` sequences of each label, those not seen in training first, by a hash of the id."""
    rows = zip(
        *(verdicts[name].to_pylist() for name in ("label", "seen_in_training", "sequence_id", "observed")), strict=True
    )
    keyed = sorted(
        (label, bool(seen), _hash(name), name) for label, seen, name, observed in rows if observed is not False
    )
    chosen: dict[str, None] = {}
    taken: dict[str, int] = {}
    for label, _, _, name in keyed:
        if taken.get(label, 0) < per_label:
            taken[label] = taken.get(label, 0) + 1
            chosen[name] = None
    return sorted(chosen)


def calibrate(  # noqa: PLR0913 - what fused will be told, and what to measure
    models: ModelSet,
    dataset: Dataset,
    sequence_ids: Sequence[str],
    prior: FleetPrior,
    settings: tuple[InterventionConfig, FusedConfig],
    *,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> FleetEvidence:
    """Look closely at the recorded labels of these sequences; `prior` (a first fit) says which events to look at."""
    part = dataset.take(dataset.index_of(sequence_ids))
    encoded = encode(part, models.vocabulary, max_length=models.max_length, channels=models.channels)
    groups = subject_groups(part.subject_ids)
    looked: list[Looked] = []
    for row in range(len(part)):
        labels = np.sort(encoded.labels[row]).astype(np.int64)
        if len(labels):
            model = models.for_sequence(part.subject_ids[row].as_py())
            name = part.sequence_ids[row].as_py()
            sequence = sequence_contexts(encoded, row)
            looked += _look(model, sequence, labels, prior, int(groups[row]), name, settings, seed)
        if on_progress is not None:
            on_progress(row + 1, len(part))
    label, event, group, cell = zip(*looked, strict=True) if looked else ((), (), (), ())
    return look_evidence(pa.array(label, pa.string()), pa.array(event, pa.string()), list(group), list(cell))


def _look(
    model: Any,
    sequence: Any,
    labels: Any,
    prior: FleetPrior,
    group: int,
    sequence_id: str,
    settings: tuple[InterventionConfig, FusedConfig],
    seed: int,
) -> list[Looked]:
    """(label, event, group, cell) of every event of one sequence that was looked at."""
    shuffle = settings[0].shuffle_ties
    excluded = frozenset({UNKNOWN_ID})
    subject = prepare(model, sequence, sequence_id=sequence_id, seed=seed, shuffle=shuffle, excluded=excluded)
    if not subject.testable.any():
        return []
    names = [model.vocabulary.name(int(t)) for t in subject.types]
    label_names = [model.vocabulary.labels[int(label)] for label in labels]
    present = [name for t, name in enumerate(names) if subject.testable[t]]
    likely = [prior.candidates(label, present, group % FOLDS) for label in label_names]
    measured = measure(model, subject, labels, names, likely, settings, controls=CONTROLS)
    seen = {names[int(t)] for t in measured.look.candidates}
    controls = {names[int(t)] for t in measured.controls}
    index, looked = event_index(subject, names), []
    for j, label in enumerate(label_names):
        read = prior.read(label, index, group % FOLDS)
        cells = {event: cell for event, cell in measured_cells(measured, j, names).items() if event in seen}
        worded = with_words(cells, read)
        looked += [(label, CONTROL if event in controls else event, group, cell) for event, cell in worded.items()]
    return looked


def _hash(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=8).digest()
