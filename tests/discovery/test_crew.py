"""Jobs that ask: the same results for any number at a time; one awake at a time; nobody is left behind."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from oscar_causal.discovery.crew import Ask, Ticket, work_together


def doubling(seen: list[list[Any]]) -> Callable[[list[Ticket]], Callable[[], None]]:
    """Answers arrive only when they are asked for."""

    def answer(tickets: list[Ticket]) -> Callable[[], None]:
        seen.append([ticket.question for ticket in tickets])

        def arrive() -> None:
            for ticket in tickets:
                ticket.answer = 2 * ticket.question

        return arrive

    return answer


def chain(ask: Ask, item: int) -> list[int]:
    """Asks item times, each time about the answer before."""
    said = [1]
    for _ in range(item):
        said.append(ask(said[-1]))
    return said


@pytest.mark.bits
@pytest.mark.parametrize("in_flight", [1, 2, 3, 7, 50])
def test_results_do_not_depend_on_how_many_work_at_a_time(in_flight: int) -> None:
    items = [3, 0, 5, 1, 1, 4, 0, 2]
    seen: list[list[Any]] = []
    got = work_together(chain, items, doubling(seen), in_flight=in_flight)
    assert got == [[2**k for k in range(item + 1)] for item in items]
    assert sum(map(len, seen)) == sum(items)
    assert max(map(len, seen)) <= -(-min(in_flight, len(items)) // 2)  # a team is half of them
    again: list[list[Any]] = []
    work_together(chain, items, doubling(again), in_flight=in_flight)
    assert again == seen  # in the same order, too


def test_while_one_team_is_answered_the_other_works() -> None:
    happened: list[str] = []

    def job(ask: Ask, item: str) -> None:
        happened.append(f"{item} works")
        ask(item)

    def answer(tickets: list[Ticket]) -> Callable[[], None]:
        (name,) = (ticket.question for ticket in tickets)
        happened.append(f"{name} begun")
        return lambda: happened.append(f"{name} there")

    work_together(job, ["a", "b"], answer, in_flight=2)
    assert happened == ["a works", "a begun", "b works", "b begun", "a there", "b there"]


def test_one_is_awake_at_a_time() -> None:
    awake = threading.Lock()

    def job(ask: Ask, item: int) -> None:
        for _ in range(20):
            assert awake.acquire(blocking=False)
            sum(range(1000))
            awake.release()
            ask(0)

    work_together(job, range(8), doubling([]), in_flight=8)


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()])
def test_nobody_is_left_behind_when_answering_fails(error: BaseException) -> None:
    before = threading.active_count()
    ended: list[int] = []

    def job(ask: Ask, item: int) -> None:
        try:
            ask(item)
        finally:
            ended.append(item)

    def answer(tickets: list[Ticket]) -> Callable[[], None]:
        raise error

    with pytest.raises(type(error)):
        work_together(job, range(9), answer, in_flight=6)
    assert threading.active_count() == before
    assert sorted(ended) == [0, 1, 2]  # the second team never began


@pytest.mark.parametrize("asked_before", [0, 1])
def test_a_signal_while_a_helper_works(asked_before: int) -> None:
    """It is heard by the thread that waits for the helper; the helper asks once more and is dismissed."""
    before = threading.active_count()
    noise: list[object] = []

    def job(ask: Ask, item: int) -> None:
        for _ in range(asked_before):
            ask(item)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)
        ask(item)

    hook, threading.excepthook = threading.excepthook, noise.append
    try:
        with pytest.raises(KeyboardInterrupt):
            work_together(job, range(3), doubling([]), in_flight=2)
    finally:
        threading.excepthook = hook
    assert threading.active_count() == before
    assert noise == []


def test_an_error_for_one_ticket_is_raised_where_it_was_asked() -> None:
    def answer(tickets: list[Ticket]) -> Callable[[], None]:
        for ticket in tickets:
            ticket.answer, ticket.error = 0, ValueError("three") if ticket.question == 3 else None
        return lambda: None

    def careful(ask: Ask, item: int) -> str:
        try:
            return f"{ask(item)}"
        except ValueError as error:
            return str(error)

    assert work_together(careful, range(5), answer, in_flight=4) == ["0", "0", "0", "three", "0"]
    with pytest.raises(ValueError, match="three"):
        work_together(lambda ask, item: ask(item), range(5), answer, in_flight=4)
