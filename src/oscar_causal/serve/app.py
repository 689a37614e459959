"""The app: a list of routes, and one clear line for everything that goes wrong."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from oscar_causal import __version__
from oscar_causal.errors import FolderError, OscarError
from oscar_causal.serve import data_routes, job_routes, page, routes
from oscar_causal.serve.guards import Access, Guards
from oscar_causal.serve.service import Service
from oscar_causal.serve.waiting import ClientGone, DeadlinePassed
from oscar_causal.serve.worker import Busy, ShuttingDown

LONGEST_LINE = 400
CLIENT_GONE = 499
"""Nobody reads it; the number is for logs."""

log = logging.getLogger(__name__)


def build_app(service: Service, access: Access | None = None) -> FastAPI:
    """The app of a service; it starts the worker with its lifespan and ends it."""
    app = FastAPI(
        title="OSCAR",
        version=__version__,
        summary="Which events caused each outcome in this very sequence?",
        docs_url=None,  # they would load scripts from elsewhere
        redoc_url=None,
        lifespan=_lifespan,
    )
    app.state.service = service
    for part in (routes, job_routes, data_routes, page):
        app.include_router(part.router)
    app.add_middleware(Guards, access=access or Access())
    for kind, handler in _HANDLERS.items():
        app.add_exception_handler(kind, handler)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    service: Service = app.state.service
    service.worker.start()
    yield
    service.worker.close()


def one_line(text: str) -> str:
    """Text that is safe in a JSON line: no control characters, no half characters, not endless.

    >>> one_line("a\\nb")
    'a b'
    """
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    return plain if len(plain) <= LONGEST_LINE else plain[: LONGEST_LINE - 1] + "…"


def _refuse(status: int, text: str, headers: Any = None) -> JSONResponse:
    return JSONResponse({"error": one_line(text)}, status, headers)


async def _on_bad_payload(request: Request, error: Exception) -> Response:
    first = error.errors()[0] if isinstance(error, RequestValidationError) else {"loc": (), "msg": str(error)}
    where = ".".join(str(part) for part in first["loc"])
    return _refuse(422, f"{where}: {first['msg']}")


async def _on_http_error(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 500)
    return _refuse(status, str(getattr(error, "detail", error)), getattr(error, "headers", None))


async def _on_user_error(request: Request, error: Exception) -> Response:
    return _refuse(422, str(error))


async def _on_busy(request: Request, error: Exception) -> Response:
    return _refuse(429, str(error), {"retry-after": str(getattr(error, "seconds", 1))})


async def _on_deadline(request: Request, error: Exception) -> Response:
    return _refuse(503, str(error), {"retry-after": str(getattr(error, "seconds", 1))})


async def _on_client_gone(request: Request, error: Exception) -> Response:
    return _refuse(CLIENT_GONE, "the client went away")


async def _on_defect(request: Request, error: Exception) -> Response:
    log.error("a request failed", exc_info=error)
    return _refuse(500, "the service failed; the reason is in its log")


_HANDLERS: dict[type[Exception], Any] = {
    RequestValidationError: _on_bad_payload,
    HTTPException: _on_http_error,
    OscarError: _on_user_error,
    FolderError: _on_defect,  # a folder that broke while serving; its message would tell a path
    Busy: _on_busy,
    DeadlinePassed: _on_deadline,
    ShuttingDown: _on_deadline,
    ClientGone: _on_client_gone,
    Exception: _on_defect,
}
