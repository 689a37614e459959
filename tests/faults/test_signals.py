"""Ctrl-C and SIGTERM to real commands and all their processes: one line, the exit code, nothing half, nobody left."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SIGNALS = {signal.SIGINT: (130, "Ctrl-C"), signal.SIGTERM: (143, "SIGTERM")}


def check(faults: Any, process: Any, number: int, *, resumable: bool) -> None:
    code, name = SIGNALS[signal.Signals(number)]
    assert not process.over
    way_on = "; the same command with --resume goes on from what was kept" if resumable else ""
    assert process.told == f"oscar: stopped by {name}{way_on}\n"
    assert process.returncode == code
    assert faults.all_gone(process.pid)


@pytest.mark.parametrize("number", SIGNALS)
def test_while_the_command_is_imported(faults: Any, number: int) -> None:
    check(faults, faults.stop_verb(["train", "--help"], number), number, resumable=False)


def synth(out: Path) -> list[Any]:
    return ["synth", "--preset", "demo", "--sequences", 200_000, "--workers", 2, "--out", out]


@pytest.mark.parametrize(("number", "wait"), [(signal.SIGINT, 0.0), (signal.SIGINT, 0.7), (signal.SIGTERM, 0.7)])
def test_a_verb_with_workers_and_without_resume(faults: Any, tmp_path: Path, number: int, wait: float) -> None:
    begun: Callable[[], bool] = (tmp_path / "s.partial" / "new.partial").exists
    check(faults, faults.stop_verb(synth(tmp_path / "s"), number, begun, wait), number, resumable=False)
    assert not list(tmp_path.iterdir())


def test_discover_with_workers_keeps_what_it_finished(faults: Any, world: Any, tmp_path: Path) -> None:
    words = ["discover", world.model, world.fleet, "--out", tmp_path / "r", "--workers", 2, "--contexts", 32]
    shards = tmp_path / "r.partial" / "verdicts"
    process = faults.stop_verb(words, signal.SIGINT, lambda: any(shards.glob("*.parquet")))
    check(faults, process, signal.SIGINT, resumable=True)
    assert [path.name for path in tmp_path.iterdir()] == ["r.partial"]


def test_train_before_its_first_checkpoint_leaves_nothing(faults: Any, world: Any, tmp_path: Path) -> None:
    words = ["train", world.fleet, "--out", tmp_path / "m", "--steps", 100_000, "--workers", 2]
    process = faults.stop_verb(words, signal.SIGTERM, (tmp_path / "m.partial" / "plan.json").exists, 0.5)
    check(faults, process, signal.SIGTERM, resumable=True)
    assert not list(tmp_path.iterdir())
