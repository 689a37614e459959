"""Batch jobs: sequences explained one after the other when nobody waits for something shorter.

A job has at most one sequence in the worker's queue, so several jobs take turns and none can flood it.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field
from typing import Any, Literal

from oscar_causal.density.folds import ModelSet
from oscar_causal.errors import OscarError
from oscar_causal.serve.answers import Explanation, JobStatus, explanation_of
from oscar_causal.serve.explaining import OnPass, discovery_config, explain
from oscar_causal.serve.limits import Limits
from oscar_causal.serve.payloads import Sequence, Settings
from oscar_causal.serve.prepared import prepare
from oscar_causal.serve.worker import BATCH, Busy, ModelWorker, ShuttingDown, Stopped, Ticket

State = Literal["waiting", "running", "done", "cancelled", "failed"]
OVER = ("done", "cancelled", "failed")

log = logging.getLogger(__name__)


@dataclass(eq=False)
class Job:
    """One batch: what is asked, what was found so far, and how it stands."""

    sequences: list[Sequence]
    """Prepared when their turn comes, let go when the job is over."""
    settings: Settings
    evidence: bool = False
    job_id: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    state: State = "waiting"
    error: str | None = None
    found: list[Explanation] = field(default_factory=list)
    begun: float = field(default_factory=time.monotonic)
    ended: float | None = None
    contexts: int = 0
    """Contexts of finished sequences."""
    ticket: Ticket[Explanation] | None = None

    def __post_init__(self) -> None:
        self.total = len(self.sequences)

    @property
    def over(self) -> bool:
        """Will nothing more come?"""
        return self.state in OVER

    def status(self) -> JobStatus:
        """How the job stands now."""
        running = self.ticket.contexts if self.ticket is not None and not self.over else 0
        return JobStatus(
            job_id=self.job_id,
            state=self.state,
            sequences_done=len(self.found),
            sequences=self.total,
            contexts_done=self.contexts + running,
            contexts=self.settings.contexts * self.total,
            error=self.error,
        )


class Jobs:
    """The jobs the service knows, bounded in number and age."""

    def __init__(self, models: ModelSet, worker: ModelWorker, limits: Limits) -> None:
        self._models = models
        self._worker = worker
        self._limits = limits
        self._jobs: dict[str, Job] = {}
        self._lock = threading.Lock()
        self._closed = False

    def begin(self, sequences: list[Sequence], settings: Settings, *, evidence: bool = False) -> Job:
        """Take a job on; Busy when too many are there. The sequences must be sound."""
        job = Job(sequences, settings, evidence)
        with self._lock:
            if self._closed:
                raise ShuttingDown
            self._make_room()
            self._jobs[job.job_id] = job
        self._next(job)
        return job

    def get(self, job_id: str) -> Job | None:
        """The job of that id, unless it was never there or is forgotten."""
        with self._lock:
            self._forget_old()
            return self._jobs.get(job_id)

    def close(self) -> None:
        """Cancel all jobs and take on no more: the service is shutting down."""
        with self._lock:
            self._closed = True
            jobs = list(self._jobs.values())
        for job in jobs:
            self.cancel(job, str(ShuttingDown()))

    def cancel(self, job: Job, why: str | None = None) -> None:
        """End a job before its next forward pass; what it found stays readable. A job that is over stays as it is."""
        self._end(job, "cancelled", why)
        if job.ticket is not None:
            self._worker.stop(job.ticket)

    def _make_room(self) -> None:
        self._forget_old()
        if len(self._jobs) < self._limits.jobs:
            return
        finished = next((key for key, job in self._jobs.items() if job.over), None)
        if finished is None:
            raise Busy(10)
        del self._jobs[finished]

    def _forget_old(self) -> None:
        limit = time.monotonic() - self._limits.job_seconds
        for key in [key for key, job in self._jobs.items() if job.ended is not None and job.ended < limit]:
            del self._jobs[key]

    def _next(self, job: Job) -> None:
        """Queue the job's next sequence, or end it."""
        if job.over:
            return
        if len(job.found) == job.total:
            self._end(job, "done")
            return
        if time.monotonic() - job.begun > self._limits.job_seconds:
            self._end(job, "failed", f"the job ran longer than {self._limits.job_seconds:g} s")
            return
        sequence = job.sequences[len(job.found)]

        def work(on_pass: OnPass) -> Explanation:
            if job.state == "waiting":
                job.state = "running"
            prepared = prepare(self._models, sequence)
            found = explain(self._models, prepared, discovery_config(job.settings, prepared), on_pass)
            return explanation_of(self._models, prepared, found, job.settings, evidence=job.evidence)

        job.ticket = self._worker.submit(work, BATCH)
        job.ticket.future.add_done_callback(lambda future: self._done(job, future))

    def _done(self, job: Job, future: Future[Explanation]) -> None:
        """Runs in the worker's thread when a sequence is explained or was given up."""
        if job.over:
            return
        try:
            found = future.result()
        except (CancelledError, Stopped):
            self._end(job, "cancelled", str(ShuttingDown()))
        except OscarError as error:
            self._end(job, "failed", f"sequence {len(job.found)}: {error}")
        except Exception:
            log.exception("a job failed")
            self._end(job, "failed", "the service failed; the reason is in its log")
        else:
            job.contexts += job.settings.contexts
            job.found.append(found)
            self._next(job)

    def _end(self, job: Job, state: State, error: str | None = None) -> None:
        with self._lock:
            if job.over:
                return
            job.state, job.error, job.ended = state, error, time.monotonic()
            job.sequences = []


def job_events(job: Job, sent: int) -> list[tuple[str, Any]]:
    """What a listener who has `sent` explanations has not heard yet: (kind, payload) pairs, the standing last."""
    news: list[tuple[str, Any]] = [("explanation", item) for item in job.found[sent:]]
    return [*news, ("end" if job.over else "progress", job.status())]
