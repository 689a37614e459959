"""Training under faults: killed between and inside folds, on a disk that fills up, into a folder that is in use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oscar_causal.errors import FolderError, UsageError


@pytest.fixture(scope="module")
def trained(faults: Any, world: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("trained") / "model"
    faults.train(world, out)
    return str(faults.digest(out))


@pytest.mark.bits
def test_kill_9_at_random_moments_then_resume(faults: Any, world: Any, trained: str, tmp_path: Path) -> None:
    rng = np.random.default_rng()
    out, kills = tmp_path / "m", []
    for _ in range(2):
        wait = rng.uniform(0.0, 2.0)
        if not faults.kill_9(faults.start("train", world, out), wait):
            break
        kills.append(wait)
    if not out.exists():
        faults.train(world, out, resume=True)
    assert faults.digest(out) == trained, kills
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_a_full_disk(faults: Any, world: Any, trained: str, mounted: Callable[[str], Path]) -> None:
    """It fills up in the second fold; the first fold and the last checkpoint are still there."""
    place = mounted("size=16m")
    filler, steps = place / "filler", []

    def fill(step: int, *_: Any) -> None:
        steps.append(step)
        if len(steps) == 40:
            faults.fill_disk(filler)

    with pytest.raises(FolderError, match="cannot be written"):
        faults.train(world, place / "m", on_step=fill)
    assert {path.name for path in place.iterdir()} == {"filler", "m.partial"}
    filler.unlink()
    later: list[int] = []
    faults.train(world, place / "m", resume=True, on_step=lambda step, *_: later.append(step))
    assert later[0] == 10  # steps 1 to 9 of the second fold are in its checkpoint
    assert faults.digest(place / "m") == trained


@pytest.mark.parametrize("limit", [100, 50_000])  # not even the plan; not a checkpoint
def test_no_file_may_grow(faults: Any, world: Any, tmp_path: Path, limit: int) -> None:
    with faults.file_size_limit(limit), pytest.raises(FolderError, match=r"cannot be written.*File too large"):
        faults.train(world, tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_two_runs_into_one_folder(faults: Any, world: Any, trained: str, tmp_path: Path) -> None:
    def run_again(step: int, *_: Any) -> None:
        if step == 7:
            with pytest.raises(UsageError, match="another run is training"):
                faults.train(world, tmp_path / "m", resume=True)

    faults.train(world, tmp_path / "m", on_step=run_again)
    assert faults.digest(tmp_path / "m") == trained
