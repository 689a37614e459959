"""Many jobs at once, of which one works at a time: each has a thread that sleeps while its question is answered.

A job is plain code that asks in the middle of what it does. The loop wakes one helper after the other; each works until
it asks or has no job left. Only one thread is ever awake, so nothing is locked, nobody waits for the interpreter, and
the order of all work is fixed. Two teams take turns: while a device answers one, the host works for the other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

TEAMS = 2

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(eq=False)
class Ticket:
    """One question of one helper."""

    question: Any
    answer: Any = None
    error: BaseException | None = None
    """Raised where the question was asked."""


Ask = Callable[[Any], Any]
"""Question -> answer; the job sleeps in between."""
Answer = Callable[[list[Ticket]], Callable[[], None]]
"""Begins to answer some tickets; what it returns is called when the answers are needed."""


class Dismissed(Exception):  # noqa: N818 - a word to helpers, nobody else sees it
    """The work is over before its end."""


def work_together(
    job: Callable[[Ask, Item], Result], items: Sequence[Item], answer: Answer, *, in_flight: int
) -> list[Result]:
    """`[job(ask, item) for item in items]`, `in_flight` of them at a time; questions of a team are answered together.

    The first item that fails, by its place, ends the work with its error.

    >>> def double(tickets):
    ...     for ticket in tickets:
    ...         ticket.answer = 2 * ticket.question
    ...     return lambda: None
    >>> work_together(lambda ask, item: ask(item) + 1, [1, 2, 3], double, in_flight=2)
    [3, 5, 7]
    """
    work = _Work(job, items)
    helpers = [_Helper(work.run) for _ in range(min(in_flight, len(items)))]
    half = -(-len(helpers) // TEAMS) or 1
    teams = [helpers[begin : begin + half] for begin in range(0, len(helpers), half)]
    arrive: list[Callable[[], None]] = [_nothing] * len(teams)
    try:
        while any(teams):
            for k, team in enumerate(teams):
                arrive[k]()
                tickets = [ticket for helper in team if (ticket := helper.advance()) is not None]
                teams[k] = [helper for helper in team if helper.ticket is not None]
                arrive[k] = answer(tickets) if tickets else _nothing
    finally:
        work.stopped = True
        for helper in helpers:
            helper.dismiss()
    if work.errors:
        raise work.errors[min(work.errors)]
    return [work.results[k] for k in range(len(items))]


def _nothing() -> None:
    """Nothing was asked."""


class _Helper:
    """A thread that is awake only inside `advance`."""

    def __init__(self, work: Callable[[Ask], None]) -> None:
        self.ticket: Ticket | None = None
        """What it waits for; None = it has ended."""
        self._work, self._begun, self._dismissed = work, False, False
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._wake, self._asleep = threading.Lock(), threading.Lock()  # taken here, released by the other side
        self._wake.acquire()
        self._asleep.acquire()

    def advance(self) -> Ticket | None:
        """Let it work on until it asks; None = it has ended."""
        if not self._begun:
            self._begun = True
            self._thread.start()
        self._wake.release()
        self._asleep.acquire()
        return self.ticket

    def dismiss(self) -> None:
        """Let it end: what it waits for will not come. A signal may have cut `advance` short, anywhere."""
        self._dismissed = True
        with suppress(RuntimeError):  # it was woken already
            self._wake.release()
        if self._begun:
            self._thread.join()

    def _ask(self, question: Any) -> Any:
        """Called on its own thread, by the job."""
        ticket = self.ticket = Ticket(question)
        if not self._dismissed:
            self._asleep.release()
            self._wake.acquire()
        if self._dismissed:
            raise Dismissed
        if ticket.error is not None:
            raise ticket.error
        return ticket.answer

    def _live(self) -> None:
        self._wake.acquire()
        try:
            self._work(self._ask)
        finally:
            self.ticket = None
            if not self._dismissed:
                self._asleep.release()


class _Work(Generic[Item, Result]):
    """Items that helpers take one after the other."""

    def __init__(self, job: Callable[[Ask, Item], Result], items: Sequence[Item]) -> None:
        self.job = job
        self.results: dict[int, Result] = {}
        self.errors: dict[int, BaseException] = {}
        self.stopped = False
        self._left: Iterator[tuple[int, Item]] = iter(enumerate(items))

    def run(self, ask: Ask) -> None:
        """Take items until none is left (a helper's whole life)."""
        while not self.stopped and (taken := next(self._left, None)) is not None:
            k, item = taken
            try:
                self.results[k] = self.job(ask, item)
            except BaseException as error:  # told to the caller, who raises it
                self.errors[k] = error
                self.stopped = True
