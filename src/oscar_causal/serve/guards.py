"""What stands before every request: host, token, size and pace of the body; and the headers on every response."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from oscar_causal.errors import UsageError
from oscar_causal.serve.limits import BODY_BYTES, BODY_SECONDS

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

OPEN_PATHS = frozenset({"/", "/healthz", "/live.css", "/live.js", "/page.css"})
"""What needs no token: the page itself, which holds no data, and the sign of life."""
LEAST_TOKEN = 16
STRICT_HEADERS = {
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


@dataclass(frozen=True)
class Access:
    """Who may ask: on a loopback host everybody on this machine, elsewhere only holders of the token."""

    host: str = "127.0.0.1"
    token: str | None = None

    def __post_init__(self) -> None:
        if self.token is not None and (len(self.token) < LEAST_TOKEN or not self.token.isascii()):
            raise UsageError(f"--token: expected at least {LEAST_TOKEN} ASCII characters, got {len(self.token)}")
        if self.token is None and not self.loopback:
            raise UsageError(f"--host {self.host}: others could reach the service; it needs a --token (or OSCAR_TOKEN)")

    @property
    def loopback(self) -> bool:
        """Can nobody outside this machine reach the host?"""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def knows_host(self, header: str) -> bool:
        """On loopback only its own names are answered, so that no web page can reach it under a name of its own."""
        if not self.loopback:
            return True
        name = header.rsplit(":", 1)[0] if not header.endswith("]") else header
        return name.lower() in {"localhost", "127.0.0.1", "[::1]", self.host, f"[{self.host}]"}

    def lets_in(self, path: str, authorization: str) -> bool:
        """Is the token there where one is needed?"""
        if self.token is None or path in OPEN_PATHS:
            return True
        scheme, _, given = authorization.partition(" ")
        known = secrets.compare_digest(given.encode("utf-8", "replace"), self.token.encode())
        return scheme.lower() == "bearer" and known


class Guards:
    """ASGI middleware around the whole app."""

    def __init__(self, app: App, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refused = self._refuse(scope)
        await (refused or self._app)(scope, _Body(receive), _with_headers(send))

    def _refuse(self, scope: Scope) -> JSONResponse | None:
        headers = Headers(scope=scope)
        if not self._access.knows_host(headers.get("host", "")):
            return _refusal(400, "host: this service answers under the name of its own machine only")
        if not self._access.lets_in(scope["path"], headers.get("authorization", "")):
            given = "this is not the service's token" if "authorization" in headers else "none was sent"
            line = f"authorization: expected 'Bearer' and the service's token; {given}"
            return _refusal(401, line, {"www-authenticate": "Bearer"})
        length = headers.get("content-length", "0")
        if not length.isdigit():
            return _refusal(400, "content-length: expected a whole number")
        return _refusal(413, _TOO_LARGE, {"connection": "close"}) if int(length) > BODY_BYTES else None


_TOO_LARGE = f"body: expected at most {BODY_BYTES:,} bytes"


class _Body:
    """Passes the request body on while it is neither too large nor too slow; afterwards waits for the client to go."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._bytes = 0
        self._complete = False

    async def __call__(self) -> Message:
        if self._complete:
            return await self._receive()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                message = await self._receive()
        except TimeoutError as error:
            raise HTTPException(408, f"body: expected within {BODY_SECONDS:g} s") from error
        self._bytes += len(message.get("body", b""))
        self._complete = not message.get("more_body", False)
        if self._bytes > BODY_BYTES:
            raise HTTPException(413, _TOO_LARGE, {"connection": "close"})
        return message


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in STRICT_HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return send_with_headers


def _refusal(status: int, line: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": line}, status, headers)
