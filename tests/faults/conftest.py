"""A small fleet and model to break runs on, the tools of `scripts/faults.py`, and places that refuse to be written."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch

SCRIPTS = str(Path(__file__).resolve().parents[2] / "scripts")


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def faults() -> Any:
    """The campaign's own tools."""
    if SCRIPTS not in sys.path:
        sys.path.insert(0, SCRIPTS)
    return import_module("faults")


@pytest.fixture(scope="session")
def world(faults: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return faults.make_world(tmp_path_factory.mktemp("faults") / "world")


@pytest.fixture(scope="session")
def undisturbed(faults: Any, world: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The digest of results that nothing went wrong with."""
    out = tmp_path_factory.mktemp("whole") / "results"
    faults.discover(world, out)
    return str(faults.digest(out))


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Mount a small file system in memory with these options; skips where that is not allowed."""
    places: list[Path] = []

    def mount(options: str) -> Path:
        place = tmp_path / f"mount-{len(places)}"
        place.mkdir()
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "none", str(place)], capture_output=True, check=False
        )
        if done.returncode:
            pytest.skip("mounting is not allowed here")
        places.append(place)
        return place

    yield mount
    for place in places:
        subprocess.run(["umount", str(place)], check=True)


@pytest.fixture
def read_only(tmp_path: Path, mounted: Callable[[str], Path]) -> Iterator[Path]:
    """A folder in which nothing can be made. Permissions do not stop root, a file system does."""
    if os.geteuid() == 0:
        yield mounted("ro")
        return
    place = tmp_path / "read-only"
    place.mkdir(mode=0o555)
    yield place
    place.chmod(0o755)
