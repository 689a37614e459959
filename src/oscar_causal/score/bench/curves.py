"""`prefix` at many thresholds from one pass: the curves of a sequence are computed once and cut at every k."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from oscar_causal.data.sequences import read_dataset
from oscar_causal.density.folds import load_models
from oscar_causal.density.model import sequence_contexts
from oscar_causal.discovery import prefix
from oscar_causal.discovery.boundary import Boundary
from oscar_causal.discovery.local import one_thread_children
from oscar_causal.discovery.prefix import PrefixConfig
from oscar_causal.score.bench.place import Place
from oscar_causal.score.scoring import Explained, explained_of

SEQUENCES_AT_ONCE = 16
Found = dict[float, list[Boundary]]
Job = tuple[str, str, PrefixConfig, tuple[float, ...], int, str]


def explain_at_thresholds(
    place: Place, model: Path, config: PrefixConfig, thresholds: Sequence[float], *, seed: int
) -> tuple[dict[float, Explained], float]:
    """For every k what `discover` with that k would accept in the held-out part, and the seconds of the one pass."""
    part = place.part(model)
    job: Job = (str(model), str(part.folder), config, tuple(thresholds), seed, place.settings.device)
    pieces = np.array_split(np.arange(len(part.data)), -(-len(part.data) // SEQUENCES_AT_ONCE))
    begun = time.monotonic()
    found: Found = {k: [] for k in thresholds}
    with place.show("discovering (prefix, every k)", "sequences") as show:
        done = 0
        for piece, boundaries in zip(pieces, _explain_all(job, pieces, place.settings.workers), strict=True):
            for k, items in boundaries.items():
                found[k] += items
            done += len(piece)
            show(done, len(part.data))
    return {k: explained_of(items) for k, items in found.items()}, time.monotonic() - begun


def _explain_all(job: Job, pieces: list[Any], workers: int) -> Iterator[Found]:
    if workers == 1:
        worker = _Worker(job)
        yield from (worker(piece) for piece in pieces)
        return
    with (
        one_thread_children(),
        ProcessPoolExecutor(workers, get_context("spawn"), initializer=_begin, initargs=(job,)) as pool,
    ):
        yield from pool.map(_explain, pieces)


class _Worker:
    """Model and sequences, opened once."""

    def __init__(self, job: Job) -> None:
        import torch

        model, folder, self.config, self.thresholds, self.seed, device = job
        if device.startswith("cuda"):
            torch.set_float32_matmul_precision("high")
        self.models, self.data = load_models(model, device=device), read_dataset(folder)

    def __call__(self, rows: Any) -> Found:
        found: Found = {k: [] for k in self.thresholds}
        for row in rows.tolist():
            for k, items in self._sequence(row).items():
                found[k] += items
        return found

    def _sequence(self, row: int) -> Found:
        one = self.data.take([row])
        model = self.models.for_sequence(one.subject_ids[0].as_py())
        encoded = self.models.models[0].encode(one)
        sequence, sequence_id = sequence_contexts(encoded, 0), one.sequence_ids[0].as_py()
        labels = np.sort(encoded.labels[0]).astype(np.int64)
        names = [model.vocabulary.name(int(event)) for event in sequence.event_ids[0]]
        if not len(labels):
            return {k: [] for k in self.thresholds}
        if len(names) <= self.config.context:  # too short for any threshold
            empty = [_boundary(sequence_id, model.vocabulary.labels[int(j)], ()) for j in labels]
            return dict.fromkeys(self.thresholds, empty)
        pasts = prefix.sample_pasts(model, sequence, self.config, seed=self.seed, sequence_id=sequence_id)
        curves = prefix.prefix_curves(model, sequence, pasts, labels, self.config.context)
        times = sequence.times.cpu().numpy()
        return {
            k: [
                _boundary(
                    sequence_id,
                    model.vocabulary.labels[int(label)],
                    prefix.prefix_evidence(curves, column, names, times, replace(self.config, threshold=k)),
                )
                for column, label in enumerate(labels)
            ]
            for k in self.thresholds
        }


def _boundary(sequence_id: str, label: str, evidence: Any) -> Boundary:
    return Boundary(sequence_id, label, observed=True, probability=None, evidence=evidence)


_of_this_process: dict[str, _Worker] = {}


def _begin(job: Job) -> None:
    import torch

    torch.set_num_threads(1)
    _of_this_process["worker"] = _Worker(job)


def _explain(rows: Any) -> Found:
    return _of_this_process["worker"](rows)
