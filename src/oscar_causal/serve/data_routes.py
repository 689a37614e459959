"""The routes that only read: the model, its events, the dataset's sequences, a sign of life."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from oscar_causal.data.sequences import Dataset
from oscar_causal.errors import DataError
from oscar_causal.serve import limits
from oscar_causal.serve.answers import EventNames, Health, ModelInfo, Refusal, SequenceList
from oscar_causal.serve.payloads import Sequence
from oscar_causal.serve.routes import REFUSALS, Responses, Serving

NOT_THERE: Responses = {404: {"model": Refusal, "description": "No such sequence, or the service has no dataset"}}
router = APIRouter(responses=REFUSALS, tags=["data"])
Search = Annotated[str, Query(max_length=limits.NAME_CHARS)]
Rows = Annotated[int, Query(ge=1, le=limits.PAGE_ROWS)]


@router.get("/model")
async def about_model(service: Serving) -> ModelInfo:
    """The model's sizes, and how far each of its labels can be judged."""
    return service.model_info()


@router.get("/healthz")
async def sign_of_life(service: Serving) -> Health:
    """Is the service there, and how much waits for the model?"""
    if not service.worker.alive:
        raise HTTPException(503, "the model does not answer any more", {"retry-after": "10"})
    return Health(status="ok", waiting=service.worker.waiting)


@router.get("/events")
async def search_events(service: Serving, search: Search = "", limit: Rows = 20) -> EventNames:
    """Events the model knows, by name or description."""
    return await run_in_threadpool(service.catalogue.events, search, limit)


@router.get("/sequences", responses=NOT_THERE)
async def search_sequences(
    service: Serving,
    search: Search = "",
    unseen: bool = False,
    offset: Annotated[int, Query(ge=0, le=2**31)] = 0,
    limit: Rows = 20,
) -> SequenceList:
    """Sequences of the dataset, by id, subject or recorded label; `unseen`: only those not seen in training."""
    find = service.catalogue.sequences
    return await run_in_threadpool(find, _data(service), search, offset, limit, unseen=unseen)


@router.get("/sequences/one", responses=NOT_THERE)
async def pick_sequence(
    service: Serving, sequence_id: Annotated[str, Query(alias="id", min_length=1, max_length=4096)]
) -> Sequence:
    """One sequence of the dataset, as it can be sent to the other routes."""
    try:
        return await run_in_threadpool(service.catalogue.sequence, _data(service), sequence_id)
    except DataError as error:
        raise HTTPException(404, str(error)) from error


def _data(service: Serving) -> Dataset:
    if service.catalogue.data is None:
        raise HTTPException(404, "sequences: the service was started without --dataset")
    return service.catalogue.data
