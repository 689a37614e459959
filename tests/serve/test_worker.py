"""One thread, two queues: small questions share a pass and get through long work; bounds, order and giving up hold."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from typing import Any

import numpy as np
import pytest

from oscar_causal.density.folds import ModelSet
from oscar_causal.serve import worker as worker_module
from oscar_causal.serve.explaining import OnPass
from oscar_causal.serve.limits import Limits
from oscar_causal.serve.payloads import Sequence
from oscar_causal.serve.predictions import Question, predict
from oscar_causal.serve.prepared import prepare
from oscar_causal.serve.worker import BATCH, Busy, ModelWorker, Stopped, Ticket

SOON = 10.0


@pytest.fixture
def worker(models: ModelSet) -> Iterator[ModelWorker]:
    started = ModelWorker(models, Limits(queue=3, quick_queue=6))
    started.start()
    yield started
    started.close()
    assert not started.alive


class Gate:
    """Long work that waits at its first pass until it is let through, then makes one more pass."""

    def __init__(self, name: str = "gate", order: list[str] | None = None) -> None:
        self.name, self.order = name, order if order is not None else []
        self.reached, self.opened = threading.Event(), threading.Event()

    def __call__(self, on_pass: OnPass) -> str:
        self.order.append(self.name)
        self.reached.set()
        assert self.opened.wait(SOON)
        on_pass(5)
        return self.name


@pytest.fixture
def question(models: ModelSet, draw_sequence: Callable[..., Sequence]) -> Callable[[int], Question]:
    return lambda length: Question(prepare(models, draw_sequence(length)))


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Number of questions of each pass."""
    found: list[int] = []

    def counted(models: ModelSet, questions: list[Question]) -> Any:
        found.append(len(questions))
        return predict(models, questions)

    monkeypatch.setattr(worker_module, "predict", counted)
    return found


def test_questions_that_wait_together_share_a_pass_inside_long_work(
    worker: ModelWorker, models: ModelSet, question: Callable[[int], Question], passes: list[int]
) -> None:
    gate = Gate()
    ticket = worker.submit(gate)
    assert gate.reached.wait(SOON)
    asked = [[question(4), question(9)], [question(7)], [question(9)]]
    futures = [worker.ask(questions) for questions in asked]
    gate.opened.set()
    answers = [future.result(SOON) for future in futures]
    assert ticket.future.result(SOON) == "gate"
    assert passes == [4]
    assert ticket.contexts == 5
    for questions, answer in zip(asked, answers, strict=True):
        for mine, wanted in zip(answer, predict(models, questions), strict=True):
            np.testing.assert_allclose(mine, wanted, atol=2e-6)


def test_answers_of_one_pass_are_bounded(
    worker: ModelWorker, models: ModelSet, question: Callable[[int], Question], passes: list[int], monkeypatch: Any
) -> None:
    monkeypatch.setattr(worker_module, "ROWS_PER_PASS", 15)
    gate = Gate()
    worker.submit(gate)
    assert gate.reached.wait(SOON)
    each = [Question(question(10).prepared, each_event=True) for _ in range(4)]
    futures = [worker.ask([item]) for item in each]
    gate.opened.set()
    assert [future.result(SOON)[0].shape for future in futures] == [(10, 2)] * 4
    assert passes == [2, 2]


def test_an_idle_worker_answers_at_once(worker: ModelWorker, question: Callable[[int], Question]) -> None:
    [probs] = worker.ask([question(3)]).result(SOON)
    assert probs.shape == (1, 2)


def test_somebody_who_waits_goes_first(worker: ModelWorker) -> None:
    order: list[str] = []
    first = Gate("first", order)
    tickets = [worker.submit(first)]
    assert first.reached.wait(SOON)
    for name, priority in (("job", BATCH), ("second", 0), ("third", 0)):
        gate = Gate(name, order)
        gate.opened.set()
        tickets.append(worker.submit(gate, priority))
    first.opened.set()
    assert [ticket.future.result(SOON) for ticket in tickets] == ["first", "job", "second", "third"]
    assert order == ["first", "second", "third", "job"]


def test_the_queue_is_bounded_and_jobs_do_not_count(worker: ModelWorker) -> None:
    gate = Gate()
    waiting: list[Ticket[Any]] = [worker.submit(gate)]
    assert gate.reached.wait(SOON)
    waiting += [worker.submit(lambda on_pass: None, BATCH) for _ in range(5)]
    waiting += [worker.submit(lambda on_pass: None) for _ in range(3)]
    with pytest.raises(Busy) as busy:
        worker.submit(lambda on_pass: None)
    assert 1 <= busy.value.seconds <= 60
    assert worker.waiting == 8
    worker.stop(waiting[-1])
    worker.submit(lambda on_pass: None)
    gate.opened.set()


def test_questions_are_bounded_too(worker: ModelWorker, question: Callable[[int], Question]) -> None:
    gate = Gate()
    worker.submit(gate)
    assert gate.reached.wait(SOON)
    futures = [worker.ask([question(3)]) for _ in range(6)]
    with pytest.raises(Busy):
        worker.ask([question(3)])
    gate.opened.set()
    assert len([future.result(SOON) for future in futures]) == 6


def test_waiting_work_can_be_given_up(worker: ModelWorker) -> None:
    gate, ran = Gate(), threading.Event()
    worker.submit(gate)
    assert gate.reached.wait(SOON)
    ticket = worker.submit(lambda on_pass: ran.set())
    worker.stop(ticket)
    gate.opened.set()
    with pytest.raises(CancelledError):
        ticket.future.result(SOON)
    assert worker.submit(lambda on_pass: "next").future.result(SOON) == "next"
    assert not ran.is_set()


def test_running_work_ends_before_its_next_pass(worker: ModelWorker) -> None:
    gate = Gate()
    ticket = worker.submit(gate)
    assert gate.reached.wait(SOON)
    worker.stop(ticket)
    gate.opened.set()
    with pytest.raises(Stopped):
        ticket.future.result(SOON)
    assert ticket.contexts == 0


def test_one_bad_question_does_not_spoil_the_others(
    worker: ModelWorker, question: Callable[[int], Question], monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = question(5)

    def fragile(models: ModelSet, questions: list[Question]) -> Any:
        if any(item is bad for item in questions):
            raise ZeroDivisionError
        return predict(models, questions)

    monkeypatch.setattr(worker_module, "predict", fragile)
    gate = Gate()
    worker.submit(gate)
    assert gate.reached.wait(SOON)
    good, spoilt = worker.ask([question(3)]), worker.ask([bad])
    gate.opened.set()
    assert good.result(SOON)[0].shape == (1, 2)
    with pytest.raises(ZeroDivisionError):
        spoilt.result(SOON)
    with pytest.raises(ZeroDivisionError):
        worker.ask([bad]).result(SOON)
    assert worker.alive


def test_failing_work_tells_the_one_who_asked(worker: ModelWorker) -> None:
    def broken(on_pass: OnPass) -> None:
        raise KeyError("defect")

    with pytest.raises(KeyError, match="defect"):
        worker.submit(broken).future.result(SOON)
    assert worker.submit(lambda on_pass: 1).future.result(SOON) == 1


def test_closing_gives_up_what_waits(models: ModelSet, question: Callable[[int], Question]) -> None:
    closing = ModelWorker(models, Limits())
    closing.start()
    gate = Gate()
    running = closing.submit(gate)
    assert gate.reached.wait(SOON)
    waiting, asked = closing.submit(lambda on_pass: 1), closing.ask([question(3)])
    threading.Timer(0.05, gate.opened.set).start()
    closing.close()
    with pytest.raises(Stopped):
        running.future.result(SOON)
    for future in (waiting.future, asked):
        with pytest.raises(CancelledError):
            future.result(SOON)
