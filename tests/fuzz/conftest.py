"""The readers and the damage of `scripts/fuzz.py`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from fuzz_targets import NAMES, targets


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def readers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return {target.name: target for target in targets(tmp_path_factory.mktemp("fuzz") / "files")}


@pytest.fixture(params=NAMES)
def reader(request: pytest.FixtureRequest, readers: dict[str, Any]) -> Any:
    return readers[request.param]
