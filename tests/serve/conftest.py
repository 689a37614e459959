"""A small model with hostile names, the service in this process, and the service behind a real socket."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import torch
import uvicorn

from oscar_causal.data.sequences import Dataset, from_table, read_dataset
from oscar_causal.data.solvable import example
from oscar_causal.data.writer import write_dataset
from oscar_causal.density.fitting import train
from oscar_causal.density.folds import ModelSet, load_models
from oscar_causal.density.settings import TrainConfig
from oscar_causal.serve.app import build_app
from oscar_causal.serve.guards import Access
from oscar_causal.serve.limits import Limits
from oscar_causal.serve.payloads import Sequence
from oscar_causal.serve.server import address, listen, make_server
from oscar_causal.serve.service import Service, open_service

NAMES = {
    "B": 'say "hi"',
    "C": "</script><script>window.hacked=1</script>",
    "D": '<img src=x onerror="window.hacked=1">',
    "fault": "steering <b>degraded</b>",
}
"""Events and labels of the process that get names which break careless pages. D is the strong cause of both labels."""


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> Iterator[None]:
    """Bit-equal results need a fixed number of threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def fleet_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import pyarrow as pa

    process, rng = example("graded"), np.random.default_rng(5)
    drawn = process.sample(400, rng)
    rows = [
        {
            "sequence_id": f"car {k}",
            "subject_id": f"owner {k // 2}",
            "events": [NAMES.get(name, name) for name in (process.event_names[e] for e in drawn.event_ids[k])],
            "times": drawn.times[k].tolist(),
            "mileage": [None if rng.random() < 0.2 else float(x) for x in rng.normal(1e4, 2e3, process.length)],
            "labels": [
                NAMES.get(process.label_names[j], process.label_names[j]) for j in np.flatnonzero(drawn.labels[k])
            ],
        }
        for k in range(400)
    ]
    out = tmp_path_factory.mktemp("data") / "fleet"
    write_dataset(out, [pa.Table.from_pylist(rows)])
    (out / "names.json").write_text('{"A": "the first letter", "steering <b>degraded</b>": "it pulls <i>left</i>"}')
    return out


@pytest.fixture(scope="session")
def fleet(fleet_folder: Path) -> Dataset:
    return read_dataset(fleet_folder)


@pytest.fixture(scope="session")
def model_folder(fleet: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trained on the first 300 sequences until D moves both labels."""
    out = tmp_path_factory.mktemp("plain") / "model"
    train(fleet.take(range(300)), out, _settings(60))
    return out


@pytest.fixture(scope="session")
def folds_folder(fleet: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("folded") / "model"
    train(fleet.take(range(200)), out, _settings(8), folds=2)
    return out


def _settings(steps: int) -> TrainConfig:
    return TrainConfig(steps=steps, batch_tokens=512, min_context=2, max_length=24, evaluations=1, learning_rate=5e-3)


@pytest.fixture(scope="session")
def models(model_folder: Path) -> ModelSet:
    return load_models(model_folder)


@pytest.fixture(scope="session")
def folds(folds_folder: Path) -> ModelSet:
    return load_models(folds_folder)


@pytest.fixture(scope="session")
def draw_sequence(models: ModelSet) -> Callable[..., Sequence]:
    """A sequence of events the model knows (some it does not), of any length."""

    def drawn(length: int, seed: int = 0, **fields: Any) -> Sequence:
        rng = np.random.default_rng([length, seed])
        names = [*models.vocabulary.events[:12], "never seen"]
        return Sequence(
            sequence_id=f"drawn {length} {seed}",
            events=[names[k] for k in rng.integers(0, len(names), length)],
            times=np.cumsum(rng.exponential(50, length)).tolist(),
            **fields,
        )

    return drawn


@dataclass(frozen=True)
class Running:
    """A service behind a real socket of this machine."""

    url: str
    service: Service
    server: uvicorn.Server

    def client(self, **options: Any) -> httpx.Client:
        """A client with no proxy in between."""
        return httpx.Client(base_url=self.url, timeout=30, trust_env=False, **options)


@contextmanager
def run_service(service: Service, access: Access | None = None, **options: float) -> Iterator[Running]:
    listening = listen("127.0.0.1", 0)
    server = make_server(build_app(service, access), **options)
    thread = threading.Thread(target=lambda: server.run(sockets=[listening]), daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    try:
        yield Running(address("127.0.0.1", listening).rstrip("/"), service, server)
    finally:
        server.should_exit = True
        thread.join(timeout=60)
        listening.close()
        assert not thread.is_alive()


StartService = Callable[..., AbstractContextManager[Running]]


@pytest.fixture(scope="session")
def start_service(model_folder: Path, fleet_folder: Path) -> StartService:
    """Start a service with limits and access of its own."""

    def start(
        limits: Limits | None = None, access: Access | None = None, dataset: bool = True, **options: float
    ) -> Any:
        return run_service(open_service(model_folder, fleet_folder if dataset else None, limits), access, **options)

    return start


@pytest.fixture(scope="session")
def running(start_service: StartService) -> Iterator[Running]:
    """One service for all tests that leave it as it was."""
    with start_service() as started:
        yield started


@pytest.fixture
def client(running: Running) -> Iterator[httpx.Client]:
    with running.client() as client:
        yield client


@pytest.fixture(scope="session")
def as_dataset() -> Callable[[dict[str, Any]], Dataset]:
    """A sequence in the service's JSON as a user of the library would write it."""

    def make(sent: dict[str, Any]) -> Dataset:
        import pyarrow as pa

        row = {key: value for key, value in sent.items() if key != "channels"} | sent.get("channels", {})
        row.setdefault("times", [float(k) for k in range(len(row["events"]))])
        return from_table(pa.Table.from_pylist([row]))

    return make
