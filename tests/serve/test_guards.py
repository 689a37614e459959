"""Who is let in, and how much they may send."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import httpx
import pytest

from oscar_causal.errors import UsageError
from oscar_causal.serve import guards, limits
from oscar_causal.serve.guards import Access

TOKEN = "a token of enough letters"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.3.2.1"])
def test_loopback_needs_no_token(host: str) -> None:
    assert Access(host).loopback


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "example.org", "localhost.example.org", ""])
def test_other_hosts_need_a_token(host: str) -> None:
    with pytest.raises(UsageError, match="token"):
        Access(host)
    assert not Access(host, TOKEN).loopback


@pytest.mark.parametrize("token", ["", "short", "ß" * 40])
def test_a_weak_token_is_refused(token: str) -> None:
    with pytest.raises(UsageError, match="16 ASCII"):
        Access("127.0.0.1", token)


@pytest.mark.parametrize(
    ("header", "known"),
    [
        ("127.0.0.1:8000", True),
        ("localhost", True),
        ("LOCALHOST:1", True),
        ("[::1]:8000", True),
        ("[::1]", True),
        ("evil.example:8000", False),
        ("127.0.0.1.evil.example", False),
        ("", False),
    ],
)
def test_only_its_own_names_on_loopback(header: str, known: bool) -> None:
    assert Access().knows_host(header) is known
    assert Access("0.0.0.0", TOKEN).knows_host(header)


def test_a_foreign_host_name_is_refused(client: httpx.Client) -> None:
    told = client.get("/model", headers={"host": "evil.example"})
    assert told.status_code == 400
    assert "host" in told.json()["error"]


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (None, 401),
        (TOKEN, 401),
        (f"Bearer {TOKEN}x", 401),
        ("Bearer", 401),
        (f"bearer {TOKEN}", 200),
        (f"Basic {TOKEN}", 401),
        (f"Bearer {TOKEN}", 200),
    ],
)
def test_the_token(guarded: Any, header: str | None, status: int) -> None:
    with guarded.client() as client:
        headers = {} if header is None else {"authorization": header}
        told = client.get("/model", headers=headers)
        assert told.status_code == status
        if status == 401:
            assert told.headers["www-authenticate"] == "Bearer"
            assert TOKEN not in told.text
            assert told.json()["error"].endswith("none was sent" if header is None else "not the service's token")
        for path in ("/", "/healthz"):
            assert client.get(path).status_code == 200
        for path in ("/openapi.json", "/sequences", "/jobs/x", "/nothing"):
            assert client.get(path).status_code == 401


@pytest.fixture(scope="module")
def guarded(start_service: Callable[..., AbstractContextManager[Any]]) -> Any:
    with start_service(access=Access("127.0.0.1", TOKEN)) as started:
        yield started


def test_every_response_has_the_strict_headers(client: httpx.Client) -> None:
    for path in ("/model", "/nothing", "/sequences/one"):
        headers = client.get(path).headers
        for name, value in guards.STRICT_HEADERS.items():
            assert headers[name] == value
    policy = client.get("/").headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy


def test_a_large_body_is_refused_by_its_head(client: httpx.Client) -> None:
    told = client.post("/predict", content=b"x" * (limits.BODY_BYTES + 1), headers={"content-type": "application/json"})
    assert told.status_code == 413


def test_a_large_body_without_a_length_is_refused(client: httpx.Client) -> None:
    def pieces() -> Any:
        for _ in range(limits.BODY_BYTES // 2**20 + 1):
            yield b" " * 2**20

    told = client.post("/predict", content=pieces(), headers={"content-type": "application/json"})
    assert told.status_code == 413
    assert "bytes" in told.json()["error"]


def test_a_body_that_trickles_is_given_up(running: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guards, "BODY_SECONDS", 0.1)
    host, port = running.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as line:
        line.sendall(b"POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n")
        line.sendall(b"content-length: 100\r\n\r\n{")
        assert b" 408 " in line.recv(4096).splitlines()[0]
