"""Processes that share the work of `discover`: how they start.

Importing what a worker needs takes longer than explaining dozens of sequences. On Linux one process imports it once
and is copied for every worker, and it may begin while the process that wants them still imports the same. Processes
for a GPU, and those of other systems, start afresh.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.context import BaseContext
from typing import Any

from oscar_causal.data.worker_pool import deaf_to_ctrl_c

NEEDED = ["oscar_causal.discovery.local"]
"""What every worker imports. It starts no thread and asks for no device: else it must not be copied."""


def begin_early(workers: int | None, device: str | None) -> None:
    """Let the import begin, where workers on a CPU will be wanted; called before anything heavy is imported here.

    Whether there is a GPU only torch can tell: without a device the import begins, and on a GPU nobody needs it.
    """
    if workers is not None and workers > 1 and device in (None, "cpu") and sys.platform == "linux":
        from multiprocessing import forkserver  # not every system has it

        forkserver.set_forkserver_preload(NEEDED)
        with one_thread_children(), deaf_to_ctrl_c():
            forkserver.ensure_running()
        atexit.register(_end_server, forkserver)


def _end_server(forkserver: Any) -> None:
    """It ends by itself, but only when it has imported everything."""
    pid = getattr(forkserver._forkserver, "_forkserver_pid", None)
    if pid is not None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)


def worker_context(device: str) -> BaseContext:
    """How workers for a device are started."""
    if device != "cpu" or sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(NEEDED)
    return context


@contextmanager
def one_thread_children() -> Iterator[None]:
    """Processes started inside this block use one thread each: several libraries with all cores each would thrash.

    On a GPU each compiles by itself, too: left alone it starts a process for every core to do so.
    """
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "TORCHINDUCTOR_COMPILE_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
