"""The routes of the model: explain, predict, what if. Each prepares, queues, waits and answers."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Depends, Request
from starlette.concurrency import run_in_threadpool

from oscar_causal.data.sequences import Float64
from oscar_causal.discovery.boundary import Boundary
from oscar_causal.serve.answers import (
    BoundaryChange,
    Explanation,
    Prediction,
    Refusal,
    WhatIf,
    boundary_of,
    explanation_of,
)
from oscar_causal.serve.edits import apply_edits
from oscar_causal.serve.explaining import OnPass, discovery_config, explain
from oscar_causal.serve.payloads import ExplainRequest, PredictRequest, Settings, WhatIfRequest
from oscar_causal.serve.predictions import Question
from oscar_causal.serve.prepared import Prepared, prepare
from oscar_causal.serve.service import Service
from oscar_causal.serve.waiting import wait_for_answer
from oscar_causal.serve.words import tell_changes

Responses = dict[int | str, dict[str, Any]]
REFUSALS: Responses = {
    400: {"model": Refusal, "description": "No JSON, or a foreign host name"},
    401: {"model": Refusal, "description": "The token is missing or wrong"},
    408: {"model": Refusal, "description": "The body came too slowly"},
    413: {"model": Refusal, "description": "The body is too large"},
    422: {"model": Refusal, "description": "Something in the request cannot be"},
    429: {"model": Refusal, "description": "Too much is waiting; see Retry-After"},
    503: {"model": Refusal, "description": "No answer before the deadline, or the service is ending; see Retry-After"},
}


def service_of(request: Request) -> Service:
    """The service behind the app."""
    service: Service = request.app.state.service
    return service


Serving = Annotated[Service, Depends(service_of)]
router = APIRouter(responses=REFUSALS)


@router.post("/explain", tags=["model"])
async def explain_sequence(body: ExplainRequest, request: Request, service: Serving) -> Explanation:
    """Which events of this sequence have a direct effect on the model's prediction of each label."""
    prepared = await run_in_threadpool(prepare, service.models, body.sequence)
    config = discovery_config(body.settings, prepared)
    ticket = service.worker.submit(lambda on_pass: explain(service.models, prepared, config, on_pass))
    deadline = service.limits.deadline
    found = await wait_for_answer(request, ticket.future, deadline, lambda: service.worker.stop(ticket))
    return explanation_of(service.models, prepared, found, body.settings, evidence=body.evidence)


@router.post("/predict", tags=["model"])
async def predict_labels(body: PredictRequest, request: Request, service: Serving) -> Prediction:
    """Probabilities of all labels, at the end of the sequence or after each of its events."""
    prepared = await run_in_threadpool(prepare, service.models, body.sequence)
    each = body.after == "each event"
    [probs] = await _ask(request, service, [Question(prepared, each)])
    return service.prediction(prepared, probs, each_event=each)


@router.post("/what-if", tags=["model"])
async def what_if(body: WhatIfRequest, request: Request, service: Serving) -> WhatIf:
    """Change events of a sequence: what becomes of every label's probability and, on request, of the boundaries?"""
    before = await run_in_threadpool(prepare, service.models, body.sequence)
    edited, words = apply_edits(body.sequence, body.edits)
    after = await run_in_threadpool(prepare, service.models, edited)
    first, second = [probs[0] for probs in await _ask(request, service, [Question(before), Question(after)])]
    boundary = None
    if body.boundary:
        settings = _same_labels(body.settings, service, before, np.maximum(first, second))
        boundary = await _explain_both(request, service, before, after, settings)
    return WhatIf(
        sequence=edited,
        changes=service.changes(first, second),
        sentences=tell_changes(words, service.models.vocabulary.labels, first, second),
        flags=after.flags,
        boundary=boundary,
    )


async def _ask(request: Request, service: Service, questions: list[Question]) -> list[Float64]:
    future = service.worker.ask(questions)
    return await wait_for_answer(request, future, service.limits.deadline, lambda: None)


def _same_labels(settings: Settings, service: Service, prepared: Prepared, highest: Float64) -> Settings:
    """Labels to explain on both sides: the named ones, else recorded ones and those predicted before or after."""
    if isinstance(settings.labels, list):
        return settings
    names = service.models.vocabulary.labels
    chosen = {names[k] for k in np.flatnonzero(highest > 0.5)} if settings.labels != "observed" else set()
    if settings.labels != "predicted":
        chosen |= set(prepared.sequence.labels or ()) & set(names)
    return settings.model_copy(update={"labels": [name for name in names if name in chosen]})


async def _explain_both(
    request: Request, service: Service, before: Prepared, after: Prepared, settings: Settings
) -> BoundaryChange:
    config = discovery_config(settings, before)

    def work(on_pass: OnPass) -> list[list[Boundary]]:
        return [explain(service.models, item, config, on_pass) for item in (before, after)]

    ticket = service.worker.submit(work)
    deadline = service.limits.deadline
    found = await wait_for_answer(request, ticket.future, deadline, lambda: service.worker.stop(ticket))
    first, second = [[boundary_of(service.models, item, evidence=False) for item in part] for part in found]
    return BoundaryChange(before=first, after=second)
