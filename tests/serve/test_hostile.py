"""Hostile input gets a 4xx and one line; the service stays alive and keeps its word about its own description."""

from __future__ import annotations

import importlib.util
import socket
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import CHECKS

BOUNDED = settings(
    max_examples=6,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "malformed_requests.py"


@pytest.fixture(scope="module")
def malformed() -> ModuleType:
    spec = importlib.util.spec_from_file_location("malformed_requests", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_a_thousand_malformed_requests(running: Any, malformed: ModuleType) -> None:
    """Only 4xx, each with one clear line that tells no path of this machine; the service answers afterwards."""
    seen = set()
    with running.client() as client:
        for request in malformed.malformed_requests(1000, seed=0):
            told = client.request(
                request.method, request.path, content=request.body, headers={"content-type": request.content_type}
            )
            assert 400 <= told.status_code < 500, (request, told.text)
            seen.add(told.status_code)
            if request.method != "HEAD":
                line = told.json()["error"]
                assert line
                assert "\n" not in line
                assert "Traceback" not in line
                assert str(Path.home()) not in line
        assert client.post("/predict", json={"sequence": {"events": ["A"]}}).status_code == 200
    assert {400, 404, 405, 422} <= seen


@pytest.mark.parametrize(
    "raw",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /\r\n\r\n",
        b"POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-length: -5\r\n\r\n",
        b"POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!",
        b"POST /predict HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nzebra\r\n",
        b"GET /model HTTP/1.1\r\n" + b"x: " + b"y" * 200_000 + b"\r\n\r\n",
    ],
)
def test_what_is_no_http(running: Any, raw: bytes) -> None:
    host, port = running.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as line:
        told = b""
        with suppress(OSError):  # it may hang up at any time
            line.sendall(raw)
            line.shutdown(socket.SHUT_WR)
            while piece := line.recv(4096):
                told += piece
    assert not told or told.split()[1].startswith(b"4"), told
    assert httpx.get(f"{running.url}/healthz", trust_env=False).status_code == 200


def test_the_service_keeps_to_its_description(running: Any) -> None:
    """Schemathesis: requests made from the OpenAPI text, sound and broken; every answer as described."""
    schema = schemathesis.openapi.from_url(f"{running.url}/openapi.json")
    names = (
        "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance",
        "negative_data_rejection", "unsupported_method",
    )  # fmt: skip
    checks = [check for check in CHECKS.get_all() if check.__name__ in names]
    assert len(checks) == len(names)
    tried = Counter[tuple[str, bool]]()
    for operation in schema.get_all_operations():
        for mode in schemathesis.GenerationMode:

            @BOUNDED
            @given(case=operation.ok().as_strategy(mode))
            def try_it(case: Any) -> None:
                answer = case.call_and_validate(checks=checks)
                tried[case.path, answer.status_code < 300] += 1

            with suppress(Unsatisfiable):  # nothing can be wrong with a request that carries nothing
                try_it()
    assert len({path for path, _ in tried}) >= 11
    assert {path for path, answered in tried if answered} >= {"/explain", "/predict", "/explain/batch"}
    assert sum(count for (_, answered), count in tried.items() if not answered) > 50
