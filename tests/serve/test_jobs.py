"""Jobs take turns, can be cancelled, are bounded in number and age, and tell listeners everything once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from oscar_causal.density.folds import ModelSet
from oscar_causal.errors import UsageError
from oscar_causal.serve.jobs import Job, Jobs, job_events
from oscar_causal.serve.limits import Limits
from oscar_causal.serve.payloads import Sequence, Settings
from oscar_causal.serve.worker import Busy, ModelWorker

FAST = Settings(contexts=16, labels=["common"])


@pytest.fixture
def sequences(draw_sequence: Callable[..., Sequence]) -> Callable[[int], list[Sequence]]:
    return lambda count: [draw_sequence(5 + k, k) for k in range(count)]


@pytest.fixture
def start(models: ModelSet) -> Iterator[Callable[..., Jobs]]:
    workers: list[ModelWorker] = []

    def started(run: bool = True, **limits: Any) -> Jobs:
        worker = ModelWorker(models, Limits(**limits))
        workers.append(worker)
        if run:
            worker.start()
        return Jobs(models, worker, Limits(**limits))

    yield started
    for worker in workers:
        worker.close()


def wait_until_over(job: Job) -> None:
    limit = time.monotonic() + 20
    while not job.over:
        assert time.monotonic() < limit
        time.sleep(0.005)


def test_a_job_explains_every_sequence_in_order(
    start: Callable[..., Jobs], sequences: Callable[[int], list[Sequence]]
) -> None:
    parts = sequences(3)
    job = start().begin(parts, FAST)
    wait_until_over(job)
    assert job.state == "done"
    assert [item.sequence_id for item in job.found] == [part.sequence_id for part in parts]
    status = job.status()
    assert (status.sequences_done, status.sequences) == (3, 3)
    assert job.sequences == []
    assert status.contexts_done == status.contexts == 48


def test_two_jobs_take_turns(start: Callable[..., Jobs], sequences: Callable[[int], list[Sequence]]) -> None:
    jobs = start(run=False)
    first, second = jobs.begin(sequences(1) * 200, FAST), jobs.begin(sequences(2), FAST)
    jobs._worker.start()
    wait_until_over(second)
    assert second.state == "done"
    assert not first.over
    jobs.cancel(first)


def test_cancelled_jobs_stop_and_keep_what_they_found(
    start: Callable[..., Jobs], sequences: Callable[[int], list[Sequence]]
) -> None:
    jobs = start()
    job = jobs.begin(sequences(1) * 200, FAST)
    while not job.found:
        time.sleep(0.005)
    jobs.cancel(job)
    found = len(job.found)
    assert job.state == "cancelled"
    time.sleep(0.1)
    assert found <= len(job.found) <= found + 1 < 200
    jobs.cancel(job)
    other = jobs.begin(sequences(1), FAST)
    wait_until_over(other)
    assert other.state == "done"
    jobs.cancel(other)
    assert other.state == "done"


def test_too_many_jobs_are_refused_and_finished_ones_make_room(
    start: Callable[..., Jobs], sequences: Callable[[int], list[Sequence]]
) -> None:
    jobs = start(run=False, jobs=2)
    first, second = jobs.begin(sequences(1), FAST), jobs.begin(sequences(1), FAST)
    with pytest.raises(Busy):
        jobs.begin(sequences(1), FAST)
    jobs.cancel(first)
    third = jobs.begin(sequences(1), FAST)
    assert jobs.get(first.job_id) is None
    assert jobs.get(second.job_id) is second
    assert jobs.get(third.job_id) is third


def test_old_jobs_are_forgotten_and_endless_ones_ended(
    start: Callable[..., Jobs], sequences: Callable[[int], list[Sequence]]
) -> None:
    jobs = start(job_seconds=0.05)
    job = jobs.begin(sequences(1) * 500, FAST)
    wait_until_over(job)
    assert job.state == "failed"
    assert "0.05 s" in (job.error or "")
    time.sleep(0.1)
    assert jobs.get(job.job_id) is None


def test_what_cannot_be_ends_the_job_with_a_line(
    start: Callable[..., Jobs], sequences: Callable[[int], list[Sequence]], monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = start()
    unknown = jobs.begin(sequences(1), Settings(contexts=16, labels=["no such label"]))
    wait_until_over(unknown)
    assert unknown.state == "failed"
    assert "no such label" in (unknown.error or "")

    def broken(*words: Any) -> Any:
        raise ZeroDivisionError("a secret")

    monkeypatch.setattr("oscar_causal.serve.jobs.explain", broken)
    job = jobs.begin(sequences(1), FAST)
    wait_until_over(job)
    assert job.error == "the service failed; the reason is in its log"


def test_listeners_hear_each_explanation_once(
    start: Callable[..., Jobs], sequences: Callable[[int], list[Sequence]]
) -> None:
    job = start().begin(sequences(3), FAST)
    wait_until_over(job)
    assert [kind for kind, _ in job_events(job, 0)] == ["explanation"] * 3 + ["end"]
    assert [kind for kind, _ in job_events(job, 2)] == ["explanation", "end"]


def test_limits_are_checked_at_birth() -> None:
    for wrong in ({"queue": 0}, {"deadline": 0.0}, {"jobs": -1}, {"job_seconds": float("inf")}):
        with pytest.raises(UsageError):
            Limits(**wrong)  # type: ignore[arg-type]
