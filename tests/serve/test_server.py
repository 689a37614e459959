"""Connections that send nothing lock nobody out, and a server that ends tells those who wait."""

from __future__ import annotations

import json
import resource
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from oscar_causal.serve import routes
from oscar_causal.serve.server import CONNECTIONS_PER_CLIENT

BODY = {"sequence": {"events": ["A", "B", "A"]}}


@pytest.fixture
def many_files() -> Iterator[None]:
    """Both ends of all connections are files of this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2048:
        pytest.skip("too few open files are allowed here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def connect(running: Any) -> socket.socket:
    url = httpx.URL(running.url)
    return socket.create_connection((url.host, url.port), timeout=30)


@pytest.mark.usefixtures("many_files")
@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\nHost: local"])
def test_idle_connections_of_one_client_lock_nobody_else_out(start_service: Any, sent: bytes) -> None:
    with start_service(dataset=False) as running, ExitStack() as held:
        for _ in range(520):
            idle = held.enter_context(connect(running))
            try:
                idle.sendall(sent)
            except OSError:  # refused and closed already
                continue
        with httpx.Client(transport=httpx.HTTPTransport(local_address="127.0.0.2"), trust_env=False) as other:
            assert other.get(f"{running.url}/healthz").json()["status"] == "ok"


def test_a_client_with_too_many_connections_is_told(start_service: Any) -> None:
    with start_service(dataset=False) as running, ExitStack() as held:
        idle = [held.enter_context(connect(running)) for _ in range(CONNECTIONS_PER_CLIENT)]
        with running.client() as client:
            refused = client.get("/healthz")
        assert (refused.status_code, list(refused.json())) == (503, ["error"])
        assert "too many connections" in refused.json()["error"]
        idle[0].close()
        with running.client(transport=httpx.HTTPTransport(retries=0)) as client:
            while client.get("/healthz").status_code != 200:  # until the server has noticed
                pass


def until_closed(connection: socket.socket, keep_sending: bytes = b"") -> bytes:
    """What comes until the server closes the connection; times out when it does not."""
    got = b""
    connection.settimeout(0.05 if keep_sending else 30)
    for _ in range(600):
        try:
            part = connection.recv(65536)
        except TimeoutError:
            try:
                connection.sendall(keep_sending)
            except OSError:
                return got
            continue
        except ConnectionResetError:
            return got
        if not part:
            return got
        got += part
    raise AssertionError("never closed")


def test_a_header_that_does_not_come_is_not_waited_for(start_service: Any) -> None:
    with start_service(dataset=False, header_seconds=0.3) as running:
        with connect(running) as silent:
            assert until_closed(silent) == b""
        with connect(running) as half:
            half.sendall(b"GET /healthz HTTP/1.1\r\nHost: local")
            assert until_closed(half) == b""
        with connect(running) as slow:
            slow.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ")
            assert until_closed(slow, keep_sending=b"x") == b""
        with connect(running) as second:  # a half request after a whole one
            second.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert second.recv(65536).startswith(b"HTTP/1.1 200")
            second.sendall(b"GET /heal")
            assert b"HTTP/1.1" not in until_closed(second, keep_sending=b"x")


def test_a_body_and_an_answer_may_take_longer_than_a_header(
    start_service: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = threading.Event()
    monkeypatch.setattr(routes, "explain", lambda *_: (late.wait(), [])[1])
    body = json.dumps(BODY).encode()
    with start_service(dataset=False, header_seconds=0.2) as running, connect(running) as slow:
        slow.sendall(b"POST /explain HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n")
        slow.sendall(f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body[:5])
        threading.Timer(0.5, lambda: slow.sendall(body[5:])).start()
        threading.Timer(1.0, late.set).start()
        assert until_closed(slow).startswith(b"HTTP/1.1 200")


def answer_of(running: Any, answers: list[Any]) -> threading.Thread:
    def ask() -> None:
        with running.client() as client:
            answers.append(client.post("/explain", json=BODY))

    thread = threading.Thread(target=ask)
    thread.start()
    return thread


@pytest.mark.parametrize(("grace_seconds", "status"), [(20.0, 200), (0.0, 503)])
def test_answers_in_flight_when_the_server_ends(
    start_service: Any, monkeypatch: pytest.MonkeyPatch, grace_seconds: float, status: int
) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def work(models: Any, prepared: Any, config: Any, on_pass: Callable[[int], None]) -> list[Any]:
        begun.set()
        while not may_end.wait(0.02):
            on_pass(0)
        return []

    monkeypatch.setattr(routes, "explain", work)
    answers: list[httpx.Response] = []
    with start_service(dataset=False, grace_seconds=grace_seconds) as running:
        asking = answer_of(running, answers)
        assert begun.wait(30)
        waiting = answer_of(running, answers)
        while not running.service.worker.waiting:
            begun.wait(0.01)
        running.server.should_exit = True
        if status == 200:
            threading.Timer(0.5, may_end.set).start()
        asking.join(30)
        waiting.join(30)
    assert [answer.status_code for answer in answers] == [status] * 2
    if status == 503:
        assert all(answer.json() == {"error": "the service is shutting down"} for answer in answers)


def test_listeners_of_a_job_hear_its_end(start_service: Any) -> None:
    heard: list[str] = []
    with start_service(dataset=False) as running, running.client() as client:
        batch = {"sequences": [{"events": ["A", "B"] * 8}] * 500, "settings": {"labels": "predicted"}}
        job = client.post("/explain/batch", json=batch).json()["job_id"]
        with client.stream("GET", f"/jobs/{job}/events") as stream:
            for line in stream.iter_lines():
                heard.append(line)
                running.server.should_exit = True
    events = [line for line in heard if line.startswith("event:")]
    assert events[-1] == "event: end"
    told = json.loads(next(line for line in reversed(heard) if line.startswith("data:"))[5:])
    assert (told["state"], told["error"]) == ("cancelled", "the service is shutting down")
