"""Worker processes that end with their parent, at once and without a word.

Ctrl-C in a terminal reaches every process of the command. Workers do not hear it, not even while they are being
started: the parent does, and ends them.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.context import BaseContext
from types import TracebackType
from typing import Any


class WorkerPool(ProcessPoolExecutor):
    """A pool whose block, left by an exception, ends the workers in the middle of what they do."""

    def __init__(self, workers: int, context: BaseContext, begin: Callable[..., None], *arguments: Any) -> None:
        """`begin` is called with the arguments in each worker, once."""
        super().__init__(workers, context, initializer=_begin, initargs=(begin, *arguments))

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Workers are started here, when there is work for them."""
        with deaf_to_ctrl_c():
            return super().submit(fn, *args, **kwargs)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.end()
        self.shutdown(wait=True, cancel_futures=True)

    def end(self) -> None:
        """End the workers now; what they were doing is lost."""
        for process in (self._processes or {}).values():
            process.terminate()


@contextmanager
def deaf_to_ctrl_c() -> Iterator[None]:
    """Processes started inside this block never hear Ctrl-C; this one hears it when the block is over."""
    resource_tracker.ensure_running()  # else it is started inside, and unblocks the signal here
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(begin: Callable[..., None], *arguments: Any) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    begin(*arguments)


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
