"""How do causes and other events answer a close look? Measured on sampled sequences of the fleet, as `fused` will do.

The counts go into the same tables as all other evidence; `two_groups` learns from them what an answer is worth.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from oscar_causal.data.batches import encode
from oscar_causal.data.sequences import Dataset
from oscar_causal.data.vocabulary import UNKNOWN_ID
from oscar_causal.density.folds import MEAN, MeanModel, ModelSet
from oscar_causal.density.model import sequence_contexts
from oscar_causal.discovery.batched import are_fast, by_length, explain_together, room_for
from oscar_causal.discovery.contexts import Int64
from oscar_causal.discovery.evidence import CONTROL, FOLDS, FleetEvidence, look_evidence, subject_groups
from oscar_causal.discovery.fleet_prior import FleetPrior
from oscar_causal.discovery.fused import FusedConfig, Own, event_index, measure, measured_cells, one_shot, with_words
from oscar_causal.discovery.intervention import InterventionConfig
from oscar_causal.discovery.subject import prepare

OnProgress = Callable[[int, int], None]
CONTROLS = 3
"""Events per sequence that are looked at although nothing speaks for them: they show what no cause looks like."""
Looked = tuple[str, str, int, int]
"""Label, event, group, cell."""


def choose_sequences(verdicts: pa.Table, per_label: int) -> dict[str, list[str]]:
    """Sequence id -> its explained labels: at most `per_label` sequences of each label, by a hash of the id.

    Those not seen in training come first. Labels recorded not to have come are left out.
    """
    rows = zip(
        *(verdicts[name].to_pylist() for name in ("label", "seen_in_training", "sequence_id", "observed")), strict=True
    )
    keyed = sorted(
        (label, bool(seen), _hash(name), name) for label, seen, name, observed in rows if observed is not False
    )
    chosen: set[str] = set()
    taken: dict[str, int] = {}
    for label, _, _, name in keyed:
        if taken.get(label, 0) < per_label:
            taken[label] = taken.get(label, 0) + 1
            chosen.add(name)
    labels: dict[str, list[str]] = {name: [] for name in sorted(chosen)}
    for label, _, _, name in keyed:
        if name in labels:
            labels[name].append(label)
    return labels


@dataclass(frozen=True)
class Calibration:
    """What looks at sampled sequences are made with."""

    prior: FleetPrior
    """A first fit, which says which events to look at."""
    settings: tuple[InterventionConfig, FusedConfig]
    """As `fused` will be run."""
    seed: int = 0
    own: Mapping[str, Own] = field(default_factory=dict)
    """Sequence id -> what `fused.one_shot` found there already, for the chosen labels in the order of their ids."""


def calibrate(
    models: ModelSet,
    dataset: Dataset,
    chosen: Mapping[str, Sequence[str]],
    how: Calibration,
    *,
    on_progress: OnProgress | None = None,
) -> FleetEvidence:
    """Look closely at the chosen labels of sequences; models that answer many sequences at once are asked so."""
    part = dataset.take(dataset.index_of(list(chosen)))
    encoded = encode(part, models.vocabulary, max_length=models.max_length, channels=models.channels)
    groups, routes = subject_groups(part.subject_ids), models.routes(part.subject_ids)
    numbers, wanted, done = models.vocabulary.label_ids, list(chosen.values()), 0

    def explain(met: Sequence[Any], row: int) -> list[Looked]:
        nonlocal done
        labels = np.array(sorted(numbers[label] for label in wanted[row] if label in numbers), np.int64)
        model = MeanModel(tuple(met)) if routes[row] == MEAN else met[routes[row]]
        name, sequence = part.sequence_ids[row].as_py(), sequence_contexts(encoded, row)
        found = _look(model, sequence, labels, int(groups[row]), name, how) if len(labels) else []
        done += 1
        if on_progress is not None:
            on_progress(done, len(part))
        return found

    if are_fast(models.models):
        room = room_for(int(part.lengths.max(initial=1)), models.vocabulary.size)
        every = explain_together(explain, models.models, by_length(part.lengths.tolist()), in_flight=room)
    else:
        every = [explain(models.models, row) for row in range(len(part))]
    looked = [row for rows in every for row in rows]
    label, event, group, cell = zip(*looked, strict=True) if looked else ((), (), (), ())
    return look_evidence(pa.array(label, pa.string()), pa.array(event, pa.string()), list(group), list(cell))


def _look(model: Any, sequence: Any, labels: Int64, group: int, sequence_id: str, how: Calibration) -> list[Looked]:
    """(label, event, group, cell) of every event of one sequence that was looked at."""
    prior, shuffle = how.prior, how.settings[0].shuffle_ties
    excluded = frozenset({UNKNOWN_ID})
    subject = prepare(model, sequence, sequence_id=sequence_id, seed=how.seed, shuffle=shuffle, excluded=excluded)
    if not subject.testable.any():
        return []
    names = [model.vocabulary.name(int(t)) for t in subject.types]
    label_names = [model.vocabulary.labels[int(label)] for label in labels]
    present = [name for t, name in enumerate(names) if subject.testable[t]]
    index, fold = event_index(subject, names), group % FOLDS
    reads = [prior.read(label, index, fold) for label in label_names]
    likely = [prior.candidates(label, present, fold, read) for label, read in zip(label_names, reads, strict=True)]
    own = how.own.get(sequence_id) or one_shot(model, subject, labels, names, how.settings)
    measured = measure(model, subject, labels, names, likely, own, looks=how.settings[1].looks, controls=CONTROLS)
    seen = {names[int(t)] for t in measured.look.candidates}
    controls = {names[int(t)] for t in measured.controls}
    looked = []
    for j, (label, read) in enumerate(zip(label_names, reads, strict=True)):
        cells = {event: cell for event, cell in measured_cells(measured, j, names).items() if event in seen}
        worded = with_words(cells, read)
        looked += [(label, CONTROL if event in controls else event, group, cell) for event, cell in worded.items()]
    return looked


def _hash(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=8).digest()
