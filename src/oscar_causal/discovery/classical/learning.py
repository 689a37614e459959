"""All labels of a dataset through one method, on all cores: the table is shared through plain files, never copied."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from oscar_causal.data.sequences import Dataset
from oscar_causal.data.worker_pool import WorkerPool
from oscar_causal.discovery.classical.boundaries import GlobalBoundary
from oscar_causal.discovery.classical.features import occurrences_of, presence_table
from oscar_causal.discovery.classical.methods import BaselineConfig, learn_label
from oscar_causal.discovery.classical.occurrences import Occurrences
from oscar_causal.discovery.classical.sparse import SparseTable
from oscar_causal.errors import UsageError

_opened: list[_Job] = []
"""What this process learns from, the last one now."""


def learn_boundaries(
    dataset: Dataset,
    config: BaselineConfig | None = None,
    *,
    labels: Sequence[str] | None = None,
    workers: int = 1,
    on_boundary: Callable[[GlobalBoundary], None] | None = None,
) -> list[GlobalBoundary]:
    """The global boundaries of the labels (default: all), in the order asked for.

    The answer does not depend on `workers`. When the time limit is over, labels not finished come back incomplete.
    `on_boundary` hears of each as it is finished. With several workers, a script that calls this needs the usual
    `if __name__ == "__main__"`.
    """
    config = config or BaselineConfig()
    if workers < 1:
        raise UsageError(f"workers: expected at least 1, got {workers}")
    ids = label_ids(dataset, labels)
    end = None if config.time_limit is None else time.time() + config.time_limit
    found: dict[int, GlobalBoundary] = {}
    for label, boundary in _learn(dataset, config, ids, workers, end):
        found[label] = boundary
        if on_boundary is not None:
            on_boundary(boundary)
    return [found[label] for label in ids]


def label_ids(dataset: Dataset, labels: Sequence[str] | None) -> list[int]:
    """Ids of the named labels; an unknown one, or a dataset without labels, is a UsageError."""
    known = {name: index for index, name in enumerate(dataset.label_names)}
    if not known:
        raise UsageError(f"baseline: expected sequences with labels, found none in {dataset.path or 'this dataset'}")
    for name in labels or ():
        if name not in known:
            raise UsageError(f"label {name!r}: not among the {len(known):,} labels of this dataset")
    return list(range(len(known))) if labels is None else [known[name] for name in dict.fromkeys(labels)]


def _learn(
    dataset: Dataset, config: BaselineConfig, ids: list[int], workers: int, end: float | None
) -> Iterator[tuple[int, GlobalBoundary]]:
    table = presence_table(dataset)
    index = None if config.features.only_presence else occurrences_of(dataset)
    positives = table.totals[table.n_events :]
    order = sorted(ids, key=lambda label: (-int(positives[label]), label))  # frequent labels take longest
    if workers == 1 or len(order) <= 1:
        _opened.append(_Job(table, index, config, end))
        try:
            yield from ((label, _learn_one(label)) for label in order)
        finally:
            _opened.pop()
        return
    with TemporaryDirectory(prefix="oscar-baseline-") as name:
        folder = Path(name)
        table.save(folder)
        if index is not None:
            index.save(folder)
        del table, index
        context = multiprocessing.get_context("spawn")
        with WorkerPool(min(workers, len(order)), context, _open, folder, config, end) as pool:
            futures = {pool.submit(_learn_one, label): label for label in order}
            yield from ((futures[future], future.result()) for future in as_completed(futures))


@dataclass(frozen=True)
class _Job:
    """What every label is learnt from."""

    table: SparseTable
    index: Occurrences | None
    config: BaselineConfig
    end: float | None


def _open(folder: Path, config: BaselineConfig, end: float | None) -> None:
    """Map the shared table (once per process)."""
    table = SparseTable.open(folder)
    index = None if config.features.only_presence else Occurrences.open(folder, table.names[: table.n_events])
    _opened.append(_Job(table, index, config, end))


def _learn_one(label: int) -> GlobalBoundary:
    job = _opened[-1]
    left = None if job.end is None else max(job.end - time.time(), 0.0)
    return learn_label(job.table, label, job.config, index=job.index, seconds_left=left)
