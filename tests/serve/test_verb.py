"""`oscar serve` as a process: it says where it listens, answers, ends on a signal, and refuses what is unsafe."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

import oscar_causal

SOURCE = str(Path(oscar_causal.__file__).parents[1])


def test_it_listens_answers_and_ends(model_folder: Path, fleet_folder: Path) -> None:
    words = ["serve", str(model_folder), "--dataset", str(fleet_folder), "--port", "0", "--json"]
    environment = {**os.environ, "PYTHONPATH": SOURCE, "OMP_NUM_THREADS": "1", "OSCAR_TOKEN": "from the environment"}
    process = subprocess.Popen(
        [sys.executable, "-m", "oscar_causal", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        assert process.stdout is not None
        told = json.loads("".join(iter(process.stdout.readline, "}\n")) + "}")
        assert told["token"] is True
        with httpx.Client(base_url=told["url"], trust_env=False, timeout=30) as client:
            assert client.get("/healthz").json()["status"] == "ok"
            assert client.get("/model").status_code == 401
            client.headers["authorization"] = "Bearer from the environment"
            assert client.get("/model").json()["dataset"] is True
            assert "server" not in client.get("/model").headers
    finally:
        process.terminate()
        out, err = process.communicate(timeout=30)
    assert err.splitlines()[-1] == "oscar: stopped by SIGTERM"
    assert "Traceback" not in err
    assert told["memory"]["dataset_gib"] > 0
    assert process.returncode == 128 + signal.SIGTERM


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--host", "0.0.0.0"), "token"),
        (("--host", "0.0.0.0", "--token", "short"), "16 ASCII"),
        (("--queue", "0"), "queue"),
        (("--deadline", "0"), "deadline"),
        (("--port", "70000"), "port"),
        (("--host", "::1%nowhere", "--token", "a token of enough letters"), "cannot listen"),
        (("--dataset", "NOWHERE"), "NOWHERE"),
        (("--memory", "0.00001"), "--memory: expected at least"),
    ],
)
def test_what_it_refuses(
    oscar: Callable[..., Any],
    model_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    expected: str,
) -> None:
    monkeypatch.delenv("OSCAR_TOKEN", raising=False)
    oscar("serve", model_folder, *words).refused(expected)


def test_a_taken_port(oscar: Callable[..., Any], model_folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        oscar("serve", model_folder, "--port", taken.getsockname()[1]).refused("cannot listen there")


def test_a_missing_extra_is_one_line(
    oscar: Callable[..., Any], model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "oscar_causal.serve.app", None)
    assert oscar("serve", model_folder).refused("oscar-causal[serve]")
