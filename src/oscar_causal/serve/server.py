"""A socket to listen on and the server behind it."""

from __future__ import annotations

import socket

import uvicorn
from fastapi import FastAPI

from oscar_causal.errors import UsageError

CONNECTIONS = 512
"""Open at the same time; the next client is told 503."""


def listen(host: str, port: int) -> socket.socket:
    """Listen on an address; port 0 takes a free one. What is taken or foreign is a UsageError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named because asyncio sends at once (TCP_NODELAY) only where it is; else each answer waits 40 ms.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(CONNECTIONS)
    except (OSError, OverflowError, UnicodeError) as error:
        listening.close()
        raise UsageError(f"--host {host} --port {port}: cannot listen there: {error}") from error
    return listening


def address(host: str, listening: socket.socket) -> str:
    """Where a browser finds it."""
    return f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}/"


def make_server(app: FastAPI) -> uvicorn.Server:
    """A server that logs warnings only and does not wait long for listeners when it ends."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="none",
        limit_concurrency=CONNECTIONS,
        timeout_graceful_shutdown=3,
    )
    return uvicorn.Server(config)
