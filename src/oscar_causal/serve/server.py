"""A socket to listen on and the server behind it."""

from __future__ import annotations

import asyncio
import json
import socket

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from oscar_causal.errors import UsageError
from oscar_causal.serve.service import Service

CONNECTIONS = 512
"""Open at the same time; the next client is told 503."""
CONNECTIONS_PER_CLIENT = 128
"""Of one address, so that no client alone locks the others out."""
REFUSED = 64
"""Connections that are told why they are refused, at the same time; others are closed without a word."""
HEADER_SECONDS = 10.0
"""A connection that has sent no whole request header after this time is closed."""
GRACE_SECONDS = 5.0
"""What is being answered when the server ends may take so long; then it is told 503."""


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


def make_server(
    app: FastAPI, *, header_seconds: float = HEADER_SECONDS, grace_seconds: float = GRACE_SECONDS
) -> uvicorn.Server:
    """A server that logs warnings only, bounds what connections may do, and tells those who wait when it ends."""
    protocol = type("Connection", (_Connection,), {"header_seconds": header_seconds, "refused": set()})
    config = uvicorn.Config(
        app,
        http=protocol,
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=int(grace_seconds) + 5,
    )
    return _Server(config, app.state.service, grace_seconds)


class _Server(uvicorn.Server):
    """Ends in two steps: batch jobs at once, single answers after some time."""

    def __init__(self, config: uvicorn.Config, service: Service, grace_seconds: float) -> None:
        super().__init__(config)
        self._service, self._grace_seconds = service, grace_seconds

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.jobs.close()
        giving_up = asyncio.get_running_loop().call_later(self._grace_seconds, self._service.worker.give_up)
        await super().shutdown(sockets)
        giving_up.cancel()


class _Connection(H11Protocol):
    """uvicorn's own, with a time limit for request headers and a bound on the connections of a client.

    uvicorn has neither: whoever opens many connections and sends nothing would lock all others out.
    """

    header_seconds: float
    refused: set[_Connection]
    """Of all connections of the server."""
    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        same = sum(_host(other) == _host(self) for other in self.connections)
        if len(self.connections) > CONNECTIONS or same > CONNECTIONS_PER_CLIENT:
            self._refuse()
        else:
            self._watch()

    def data_received(self, data: bytes) -> None:
        if self not in self.refused:
            super().data_received(data)
            self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
        self.refused.discard(self)
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Limit the time until a whole header is there, unless a request is being answered."""
        if self._answering():
            if self._waiting is not None:
                self._waiting.cancel()
                self._waiting = None
        elif self._waiting is None:
            self._waiting = self.loop.call_later(self.header_seconds, self._give_up)

    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _give_up(self) -> None:
        self._waiting = None
        if not self._answering():
            self.transport.close()

    def _refuse(self) -> None:
        """Say why, then read on for a moment: who closes on what he has not read loses his answer."""
        self.connections.discard(self)
        self.refused.add(self)
        if len(self.refused) > REFUSED:
            self.transport.abort()
            return
        body = json.dumps({"error": "too many connections: close some, or try again"}).encode()
        head = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\n"
        self.transport.write(f"{head}connection: close\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
        self.transport.write_eof()
        self._waiting = self.loop.call_later(1.0, self.transport.abort)


def _host(connection: object) -> str | None:
    client: tuple[str, int] | None = getattr(connection, "client", None)
    return None if client is None else client[0]
