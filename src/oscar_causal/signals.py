"""Ctrl-C and SIGTERM: the command tidies up, says so in one line and ends with 128 + the number of the signal."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from oscar_causal.errors import OscarError

NAMES = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}
_received: list[int] = []


class Interrupted(OscarError):
    """A signal ended the verb before its end."""

    def __init__(self, number: int, *, resumable: bool) -> None:
        way_on = "; the same command with --resume goes on from what was kept" if resumable else ""
        super().__init__(f"stopped by {NAMES[signal.Signals(number)]}{way_on}")
        self.exit_code = 128 + number


def end_on_signals() -> None:
    """From now on a signal ends this process at once, with its line: nothing is begun, imports need no tidying up.

    A signal that is ignored (nohup, jobs in the background of a script) stays so.
    """
    _change_handlers(signal.default_int_handler, _end)
    _change_handlers(signal.SIG_DFL, _end)


@contextmanager
def interruptible(*, resumable: bool) -> Iterator[None]:
    """Inside, a signal is a KeyboardInterrupt, so that all that was begun is tidied up; it goes on as `Interrupted`.

    `resumable`: the verb has --resume.
    """
    _received.clear()
    _change_handlers(_end, _interrupt)
    try:
        yield
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and not _received:
            _received.append(signal.SIGINT)
        if not _received:
            raise
        raise Interrupted(_received[0], resumable=resumable) from error
    finally:
        if _received:
            signal.setitimer(signal.ITIMER_REAL, 0)
        _change_handlers(_interrupt, _end)


def _change_handlers(old: Any, new: Any) -> None:
    for number in NAMES:
        if signal.getsignal(number) == old:
            signal.signal(number, new)


class _Signal(KeyboardInterrupt):
    """CPython remembers a KeyboardInterrupt that passed through exec(), as in imports, and dies of it in the end."""


def _interrupt(number: int, frame: Any) -> None:
    _received.append(number)
    signal.signal(signal.SIGALRM, _insist)
    signal.setitimer(signal.ITIMER_REAL, 0.5, 0.5)
    _insist(number, frame)


def _insist(number: int, frame: Any) -> None:
    """Raise, unless what was raised before is just being tidied up after: some imports and callbacks swallow it."""
    error = sys.exc_info()[1]
    while error is not None and not isinstance(error, _Signal):
        error = error.__context__
    if error is None:
        raise _Signal


def _end(number: int, frame: Any) -> None:
    if not _received:
        os.write(2, f"oscar: stopped by {NAMES[signal.Signals(number)]}\n".encode())
    os._exit(128 + number)
