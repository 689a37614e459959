"""The routes of batch jobs: begin, look, listen (server-sent events), cancel."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Header, Path, Query
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse

from oscar_causal.density.folds import ModelSet
from oscar_causal.errors import DataError
from oscar_causal.serve import limits
from oscar_causal.serve.answers import JobAnswer, JobStatus, Refusal
from oscar_causal.serve.jobs import Job, job_events
from oscar_causal.serve.payloads import BatchRequest, Sequence
from oscar_causal.serve.prepared import prepare
from oscar_causal.serve.routes import REFUSALS, Responses, Serving

LOOK_SECONDS = 0.1
"""How often a listener's job is looked at."""
BEAT_SECONDS = 15.0
"""Silence after which a comment is sent, so that nobody in between closes the line."""

UNKNOWN: Responses = {404: {"model": Refusal, "description": "There is no such job, or it is forgotten"}}
router = APIRouter(responses=REFUSALS, tags=["jobs"])
JobId = Annotated[str, Path(max_length=64)]


@router.post("/explain/batch", status_code=202)
async def begin_job(body: BatchRequest, service: Serving) -> JobStatus:
    """Explain many sequences as a job; `GET /jobs/{job_id}/events` tells how it goes on."""
    events = sum(len(sequence.events) for sequence in body.sequences)
    if events > limits.BATCH_EVENTS:
        raise DataError(f"sequences: expected at most {limits.BATCH_EVENTS:,} events in all, got {events:,}")
    if body.evidence and len(body.sequences) > limits.EVIDENCE_SEQUENCES:
        most = limits.EVIDENCE_SEQUENCES
        raise DataError(f"evidence: expected at most {most} sequences with it, got {len(body.sequences)}")
    await run_in_threadpool(_check_all, service.models, body.sequences)
    return service.jobs.begin(body.sequences, body.settings, evidence=body.evidence).status()


def _check_all(models: ModelSet, sequences: list[Sequence]) -> None:
    for number, sequence in enumerate(sequences):
        try:
            prepare(models, sequence)
        except DataError as error:
            raise DataError(f"sequences[{number}]: {error}") from error


@router.get("/jobs/{job_id}", responses=UNKNOWN)
async def look_at_job(
    job_id: JobId,
    service: Serving,
    offset: Annotated[int, Query(ge=0, le=limits.BATCH_SEQUENCES)] = 0,
    limit: Annotated[int, Query(ge=0, le=limits.PAGE_ROWS)] = limits.PAGE_ROWS,
) -> JobAnswer:
    """How a job stands, with explanations from `offset` on."""
    job = _job(service, job_id)
    return JobAnswer(**job.status().model_dump(), explanations=job.found[offset : offset + limit])


@router.get(
    "/jobs/{job_id}/events",
    response_class=StreamingResponse,
    responses={**UNKNOWN, 200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
)
async def listen_to_job(
    job_id: JobId, service: Serving, last_event_id: Annotated[int, Header(ge=0, le=limits.BATCH_SEQUENCES)] = 0
) -> StreamingResponse:
    """Server-sent events: `explanation` for each sequence, `progress` now and then, `end`.

    The id of an event is the number of explanations sent; a listener that comes back goes on where it was.
    """
    job = _job(service, job_id)
    return StreamingResponse(_stream(job, last_event_id), media_type="text/event-stream")


@router.delete("/jobs/{job_id}", responses=UNKNOWN)
async def cancel_job(job_id: JobId, service: Serving) -> JobStatus:
    """Cancel a job; what it found stays readable for a while."""
    job = _job(service, job_id)
    service.jobs.cancel(job)
    return job.status()


def _job(service: Serving, job_id: str) -> Job:
    job = service.jobs.get(job_id)
    if job is None:
        raise HTTPException(404, "job: there is no such job, or it is forgotten")
    return job


async def _stream(job: Job, sent: int) -> AsyncIterator[str]:
    told, spoke = None, time.monotonic()
    while True:
        news = job_events(job, sent)
        for kind, payload in news:
            if kind == "progress" and payload == told:
                continue
            sent += kind == "explanation"
            yield f"event: {kind}\nid: {sent}\ndata: {payload.model_dump_json()}\n\n"
            told, spoke = payload, time.monotonic()
        if news[-1][0] == "end":
            return
        if time.monotonic() - spoke > BEAT_SECONDS:
            yield ": still here\n\n"
            spoke = time.monotonic()
        await asyncio.sleep(LOOK_SECONDS)
