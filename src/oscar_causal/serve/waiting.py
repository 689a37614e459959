"""A request waits for the model: until the answer comes, its deadline passes, or the client goes away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from starlette.requests import Request

from oscar_causal.serve.worker import ShuttingDown, Stopped

T = TypeVar("T")


class DeadlinePassed(Exception):
    """The answer did not come in time."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no answer within {seconds:g} s: ask for fewer contexts, or later")
        self.seconds = max(1, round(seconds / 4))


class ClientGone(Exception):
    """Nobody is left to answer."""


async def wait_for_answer(request: Request, future: Future[T], seconds: float, give_up: Callable[[], None]) -> T:
    """The answer; `give_up` is called when it is not waited for any longer."""
    answer = asyncio.wrap_future(future)
    gone = asyncio.ensure_future(_until_gone(request))
    both: set[asyncio.Future[Any]] = {answer, gone}
    try:
        await asyncio.wait(both, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if answer.done():
            return _result(answer)
        raise ClientGone if gone.done() else DeadlinePassed(seconds)
    finally:
        gone.cancel()
        if not answer.done():
            give_up()
            answer.cancel()


def _result(answer: asyncio.Future[T]) -> T:
    try:
        return answer.result()
    except (asyncio.CancelledError, Stopped) as error:
        raise ShuttingDown from error


async def _until_gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
