"""All labels of a dataset through one method, on all cores: the table is shared through plain files, never copied."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from oscar_causal.data.sequences import Dataset
from oscar_causal.discovery.classical.boundaries import GlobalBoundary
from oscar_causal.discovery.classical.features import open_events, presence_table, save_events
from oscar_causal.discovery.classical.methods import BaselineConfig, learn_label
from oscar_causal.discovery.classical.sparse import SparseTable
from oscar_causal.errors import UsageError

_shared: dict[str, Any] = {}
"""What a worker process has opened."""


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
    """Ids of the named labels; an unknown one is a UsageError."""
    known = {name: index for index, name in enumerate(dataset.label_names)}
    for name in labels or ():
        if name not in known:
            raise UsageError(f"label {name!r}: not among the {len(known):,} labels of this dataset")
    return list(range(len(known))) if labels is None else [known[name] for name in dict.fromkeys(labels)]


def _learn(
    dataset: Dataset, config: BaselineConfig, ids: list[int], workers: int, end: float | None
) -> Iterator[tuple[int, GlobalBoundary]]:
    table = presence_table(dataset)
    positives = table.totals[table.n_events :]
    order = sorted(ids, key=lambda label: (-int(positives[label]), label))  # frequent labels take longest
    with TemporaryDirectory(prefix="oscar-baseline-") as name:
        folder = Path(name)
        table.save(folder)
        if not config.features.only_presence:
            save_events(dataset, folder)
        job = (folder, table.names, table.n_events, config, end)
        del table
        if workers == 1 or len(order) <= 1:
            _open(*job)
            yield from ((label, _learn_one(label)) for label in order)
            _shared.clear()  # unmap the files before they are removed
            return
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(min(workers, len(order)), context, initializer=_open, initargs=job) as pool:
            try:
                futures = {pool.submit(_learn_one, label): label for label in order}
                yield from ((futures[future], future.result()) for future in as_completed(futures))
            finally:
                pool.shutdown(wait=True, cancel_futures=True)


def _open(folder: Path, names: tuple[str, ...], n_events: int, config: BaselineConfig, end: float | None) -> None:
    """Map the shared table (once per process)."""
    table = SparseTable.open(folder, names, n_events)
    index = None if config.features.only_presence else open_events(folder, names[:n_events])
    _shared.update(table=table, index=index, config=config, end=end)


def _learn_one(label: int) -> GlobalBoundary:
    end = _shared["end"]
    left = None if end is None else max(end - time.time(), 0.0)
    return learn_label(_shared["table"], label, _shared["config"], index=_shared["index"], seconds_left=left)
