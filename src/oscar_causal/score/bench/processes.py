"""Worker processes that start once and serve every row; each keeps the models and sequences it was asked for last.

The networks are plain: to compile them in every process would take longer than a row of a table does.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache, partial
from typing import TypeVar

import numpy as np
import torch

from oscar_causal.data.rows import SequenceRows
from oscar_causal.data.sequences import Int64
from oscar_causal.data.worker_pool import WorkerPool
from oscar_causal.density.folds import ModelSet, load_models
from oscar_causal.density.precision import settle_on
from oscar_causal.discovery.jobs import Job
from oscar_causal.discovery.local import ShardExplainer, one_thread
from oscar_causal.discovery.workers import one_thread_children
from oscar_causal.errors import OscarError

Result = TypeVar("Result")


class Desk(ShardExplainer):
    """A model and the sequences to explain, opened once; `config` is that of the row at work."""

    def __init__(self, job: Job) -> None:
        settle_on(job.device)
        self.models, self.also = _models(job.model, job.device), []
        for model in self.models.models:
            model.pieces.tokens = job.tokens_per_pass
        self.data, self.config, self.background = _sequences(job.dataset), job.config, None


@lru_cache(2)
def _models(path: str, device: str) -> ModelSet:
    return load_models(path, device=device)


@lru_cache(2)
def _sequences(path: str) -> SequenceRows:
    return SequenceRows(path)


Work = Callable[[Desk, Int64], Result]
"""What is done with some of the sequences; a function of a module, or a `partial` of one."""


class Processes:
    """So many processes, started when first needed; one alone works in this process."""

    def __init__(self, workers: int, device: str) -> None:
        self.workers, self.device = workers, device
        self._pool: WorkerPool | None = None

    def start(self) -> None:
        """Let the processes start, without waiting for them."""
        if self.workers > 1 and self._pool is None:
            context = multiprocessing.get_context("spawn")
            self._pool = WorkerPool(self.workers, context, torch.set_num_threads, 1)
            with one_thread_children():
                for _ in range(self.workers):
                    self._pool.submit(os.getpid)

    def ready(self, job: Job) -> None:
        """Wait until every process has started and holds what the job needs, so that clocks do not count it."""
        seen: set[int] = set()
        while len(seen) < self.workers:
            seen |= set(self.each(_ready, job, [np.empty(0, np.int64)] * self.workers))

    def each(self, work: Work[Result], job: Job, pieces: Sequence[Int64]) -> Iterator[Result]:
        """`work` of every piece of the job's sequences, in order."""
        self.start()
        if self._pool is None:
            with one_thread(self.device):
                yield from (_do(job, work, piece) for piece in pieces)
            return
        try:
            with one_thread_children():
                yield from self._pool.map(partial(_do, job, work), pieces)
        except BrokenProcessPool as error:
            self._pool = None  # the next row may start new ones
            raise OscarError(
                "bench: a worker process died (killed, or out of memory?); finished rows are kept, call again to go on"
            ) from error

    def close(self) -> None:
        """End the processes."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None


def pieces_of(count: int) -> list[Int64]:
    """Row numbers in small pieces, always the same: enough for many processes, and a run cut short can go on with
    another number of them.

    >>> len(pieces_of(300)), len(pieces_of(10)), len(pieces_of(3072))
    (75, 10, 192)
    """
    size = max(1, min(16, count // 64))
    return np.array_split(np.arange(count), -(-count // size))


def _do(job: Job, work: Work[Result], rows: Int64) -> Result:
    return work(Desk(job), rows)


def _ready(desk: Desk, rows: Int64) -> int:
    time.sleep(0.02)  # leave some for the others
    return os.getpid()
