"""One thread owns the model. Small questions that wait together share a forward pass; long work pauses for them.

Long work goes by priority, then by arrival. Between two of its forward passes the thread answers all small questions
that came meanwhile and looks whether the work is still wanted.
"""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from oscar_causal.data.sequences import Float64
from oscar_causal.density.folds import ModelSet
from oscar_causal.serve.explaining import OnPass
from oscar_causal.serve.limits import Limits
from oscar_causal.serve.predictions import ROWS_PER_PASS, Question, predict

T = TypeVar("T")
SINGLE, BATCH = 0, 1
"""Priorities: somebody waits for the answer; nobody does."""
QUESTIONS_PER_PASS = 256
"""Small questions answered together at most."""


class Stopped(Exception):
    """Nobody wants this work any more."""


class ShuttingDown(Exception):
    """The service is ending; what is asked now, or not yet answered, will have no answer."""

    def __init__(self) -> None:
        super().__init__("the service is shutting down")


class Busy(Exception):
    """Too much is waiting already; come back in `seconds`."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"the service is busy: try again in {seconds} s")
        self.seconds = seconds


@dataclass(eq=False)
class Ticket(Generic[T]):
    """Work that waits for the model: its answer, and a way to give it up."""

    work: Callable[[OnPass], T]
    future: Future[T] = field(default_factory=Future)
    stopped: threading.Event = field(default_factory=threading.Event)
    contexts: int = 0
    """Contexts answered so far."""


class ModelWorker:
    """The thread, its two queues and their bounds."""

    def __init__(self, models: ModelSet, limits: Limits) -> None:
        self._models = models
        self._limits = limits
        self._quick: deque[tuple[list[Question], Future[list[Float64]]]] = deque()
        self._slow: list[tuple[int, int, Ticket[Any]]] = []
        self._serial = itertools.count()
        self._changed = threading.Condition()
        self._closed = False
        self.working = False
        """Is long work being done now?"""
        self._seconds = 0.1  # a running mean of what one piece of long work takes
        self._thread = threading.Thread(target=self._run, name="model", daemon=True)

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def close(self) -> None:
        """End, and wait for it."""
        self.give_up()
        if self._thread.is_alive():
            self._thread.join(timeout=10)

    def give_up(self) -> None:
        """End after the current forward pass; what is worked on or still waits is told that the service ends."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    @property
    def alive(self) -> bool:
        """Is the thread there to answer?"""
        return self._thread.is_alive()

    @property
    def waiting(self) -> int:
        """Long work in the queue."""
        return len(self._slow)

    def ask(self, questions: list[Question]) -> Future[list[Float64]]:
        """Queue a small question; Busy when too many wait."""
        future: Future[list[Float64]] = Future()
        with self._changed:
            self._refuse_when_closed()
            if len(self._quick) >= self._limits.quick_queue:
                raise Busy(1)
            self._quick.append((questions, future))
            self._changed.notify()
        return future

    def submit(self, work: Callable[[OnPass], T], priority: int = SINGLE) -> Ticket[T]:
        """Queue long work; Busy when too much of that priority waits (jobs bound themselves)."""
        ticket = Ticket(work)
        with self._changed:
            self._refuse_when_closed()
            if priority == SINGLE and sum(entry[0] == SINGLE for entry in self._slow) >= self._limits.queue:
                raise Busy(max(1, min(60, round(self._seconds * len(self._slow)))))
            heapq.heappush(self._slow, (priority, next(self._serial), ticket))
            self._changed.notify()
        return ticket

    def stop(self, ticket: Ticket[Any]) -> None:
        """Give work up: it leaves the queue now, or ends before its next forward pass."""
        ticket.stopped.set()
        with self._changed:
            left = [entry for entry in self._slow if entry[2] is not ticket]
            waited = len(left) < len(self._slow)
            heapq.heapify(left)
            self._slow = left
        if waited:
            ticket.future.cancel()

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise ShuttingDown

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._quick or self._slow)
                if self._closed:
                    break
            self._answer_questions()
            with self._changed:
                ticket = heapq.heappop(self._slow)[2] if self._slow else None
            if ticket is not None:
                self.working = True
                self._work_on(ticket)
                self.working = False
        self._give_up()

    def _work_on(self, ticket: Ticket[Any]) -> None:
        if not ticket.future.set_running_or_notify_cancel():
            return
        begun = time.monotonic()
        try:
            self._pause(ticket, 0)
            result = ticket.work(lambda contexts: self._pause(ticket, contexts))
        except BaseException as error:  # noqa: BLE001 - it belongs to the one who asked
            ticket.future.set_exception(error)
            return
        self._seconds += 0.1 * (time.monotonic() - begun - self._seconds)
        ticket.future.set_result(result)

    def _pause(self, ticket: Ticket[Any], contexts: int) -> None:
        """Between two forward passes of long work."""
        if ticket.stopped.is_set() or self._closed:
            raise Stopped
        ticket.contexts += contexts
        self._answer_questions()

    def _answer_questions(self) -> None:
        taken = self._take_questions()
        if not taken:
            return
        try:
            answers = iter(predict(self._models, [question for questions, _ in taken for question in questions]))
        except BaseException as error:  # noqa: BLE001 - it belongs to those who asked
            self._answer_one_by_one(taken, error)
            return
        for questions, future in taken:
            future.set_result([next(answers) for _ in questions])

    def _take_questions(self) -> list[tuple[list[Question], Future[list[Float64]]]]:
        """What waits now, as far as its answers fit into memory; the rest has its turn next."""
        taken: list[tuple[list[Question], Future[list[Float64]]]] = []
        rows = 0
        with self._changed:
            while self._quick and len(taken) < QUESTIONS_PER_PASS and rows < ROWS_PER_PASS:
                questions, future = self._quick.popleft()
                rows += sum(question.rows for question in questions)
                if future.set_running_or_notify_cancel():
                    taken.append((questions, future))
        return taken

    def _answer_one_by_one(
        self, taken: list[tuple[list[Question], Future[list[Float64]]]], error: BaseException
    ) -> None:
        """After a failed pass: one client's bad question must not spoil the others' answers."""
        for questions, future in taken:
            try:
                future.set_result(predict(self._models, questions) if len(taken) > 1 else _raise(error))
            except BaseException as own:  # noqa: BLE001
                future.set_exception(own)

    def _give_up(self) -> None:
        for _, _, ticket in self._slow:
            ticket.future.cancel()
        for _, future in self._quick:
            future.cancel()


def _raise(error: BaseException) -> Any:
    raise error
