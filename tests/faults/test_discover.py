"""Discover under faults: what had its final name is whole, what was finished is kept, the end is the same."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oscar_causal.discovery.results import read_table
from oscar_causal.errors import FolderError, OscarError, UsageError

SHARDS = 12


class Cut(BaseException):
    """An interruption that nobody catches by mistake."""


def cut_after(shards: int) -> Callable[[int, int], None]:
    def on_progress(done: int, total: int) -> None:
        if done >= total * shards // SHARDS:
            raise Cut

    return on_progress


def children(pid: int) -> list[int]:
    """And their children: a worker may be a copy that another process has made."""
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    found = [int(word) for word in listed.stdout.split()]
    return found + [grandchild for child in found for grandchild in children(child)]


def gone(pid: int, seconds: float = 30.0) -> bool:
    """Does this process end soon? (A zombie has ended.)"""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        status = Path(f"/proc/{pid}/status")
        if not status.exists() or "State:\tZ" in status.read_text():
            return True
        time.sleep(0.05)
    return False


@pytest.mark.bits
def test_kill_9_at_random_moments_then_resume(faults: Any, world: Any, undisturbed: str, tmp_path: Path) -> None:
    rng = np.random.default_rng()  # any moment will do: that is the claim
    out, kills = tmp_path / "r", []
    for _ in range(2):
        wait = rng.uniform(0.0, 2.0)
        if not faults.kill_9(faults.start("discover", world, out), wait):
            break
        kills.append(wait)
    if not out.exists():
        faults.discover(world, out, resume=True)
    assert faults.digest(out) == undisturbed, kills
    assert [path.name for path in tmp_path.iterdir()] == ["r"]
    rows = read_table(out, "verdicts")
    pairs = set(zip(rows["sequence_id"].to_pylist(), rows["label"].to_pylist(), strict=True))
    assert len(pairs) == rows.num_rows == 2 * faults.SEQUENCES  # nothing lost, nothing doubled


def test_workers_end_with_their_killed_parent(faults: Any, world: Any, undisturbed: str, tmp_path: Path) -> None:
    process = faults.start("discover", world, tmp_path / "r", workers=2)
    process.stdout.readline()
    assert process.stdout.readline()  # a shard is written
    workers = children(process.pid)
    assert len(workers) >= 2, workers
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    assert all(gone(pid) for pid in workers)
    faults.discover(world, tmp_path / "r", resume=True)
    assert faults.digest(tmp_path / "r") == undisturbed


def test_a_killed_worker_is_told_and_the_run_goes_on(faults: Any, world: Any, undisturbed: str, tmp_path: Path) -> None:
    def kill_one(_done: int, _total: int) -> None:
        multiprocessing.active_children()[0].kill()

    with pytest.raises(OscarError, match="a worker process died") as told:
        faults.discover(world, tmp_path / "r", workers=2, on_progress=kill_one)
    assert "\n" not in str(told.value)
    faults.discover(world, tmp_path / "r", resume=True)
    assert faults.digest(tmp_path / "r") == undisturbed


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def garble(path: Path) -> None:
    """One bit flips in the middle of the data, behind an intact footer."""
    content = bytearray(path.read_bytes())
    content[60] ^= 4
    path.write_bytes(content)


@pytest.fixture(scope="module")
def unfinished(faults: Any, world: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was interrupted before its last shard."""
    out = tmp_path_factory.mktemp("cut") / "r"
    with pytest.raises(Cut):
        faults.discover(world, out, on_progress=cut_after(11))
    return out.with_name("r.partial")


@pytest.mark.parametrize("table", ["verdicts", "evidence", "causes"])
@pytest.mark.parametrize("damage", [truncate, empty, garble, Path.unlink])
def test_a_damaged_shard_is_made_again(
    faults: Any,
    world: Any,
    undisturbed: str,
    unfinished: Path,
    tmp_path: Path,
    table: str,
    damage: Callable[[Path], None],
) -> None:
    out = tmp_path / "r"
    shutil.copytree(unfinished, tmp_path / "r.partial")
    damage(tmp_path / "r.partial" / table / "part-00003.parquet")
    made: list[int] = []
    faults.discover(world, out, resume=True, on_progress=lambda done, _: made.append(done))
    assert len(made) == 2  # the damaged one and the one that was missing, no other
    assert faults.digest(out) == undisturbed


def test_two_runs_into_one_folder(faults: Any, world: Any, undisturbed: str, tmp_path: Path) -> None:
    out = tmp_path / "r"

    def run_again(done: int, total: int) -> None:
        if done < total // 2:
            return
        with pytest.raises(UsageError, match="an unfinished run is there"):
            faults.discover(world, out)
        with pytest.raises(UsageError, match="another run is writing"):
            faults.discover(world, out, resume=True)

    faults.discover(world, out, on_progress=run_again)
    assert faults.digest(out) == undisturbed


def test_a_full_disk(faults: Any, world: Any, undisturbed: str, tmp_path: Path, mounted: Callable[[str], Path]) -> None:
    place = mounted("size=512k")
    filler = place / "filler"

    def fill(done: int, _total: int) -> None:
        if done == 4 * faults.SHARD:
            faults.fill_disk(filler)

    with pytest.raises(FolderError, match=r"cannot be written.*No space"):
        faults.discover(world, place / "r", on_progress=fill)
    assert {path.name for path in place.iterdir()} == {"filler", "r.partial"}
    assert not list((place / "r.partial").rglob("*.partial"))
    filler.unlink()
    made: list[int] = []
    faults.discover(world, place / "r", resume=True, on_progress=lambda done, _: made.append(done))
    assert len(made) == SHARDS - 4
    assert faults.digest(place / "r") == undisturbed


@pytest.mark.parametrize("limit", [100, 3000])  # not even run.json; the first shard
def test_no_file_may_grow(faults: Any, world: Any, tmp_path: Path, limit: int) -> None:
    with faults.file_size_limit(limit), pytest.raises(FolderError, match=r"cannot be written.*File too large"):
        faults.discover(world, tmp_path / "r")
    assert not list(tmp_path.iterdir())  # nothing was finished, nothing is left


def test_read_only_places(faults: Any, world: Any, read_only: Path, oscar: Callable[..., Any]) -> None:
    table = read_only.parent / "codes.csv"
    table.write_text("sequence_id,time,event\n1,0,A\n")
    out = read_only / "out"
    oscar("discover", world.model, world.fleet, "--out", out).refused("cannot be written")
    oscar("train", world.fleet, "--out", out).refused("cannot be written")
    oscar("synth", "--preset", "demo", "--sequences", "5", "--out", out).refused("cannot be written")
    oscar("import", table, "--out", out).refused("cannot be written")
    oscar("select", world.fleet, "--last", "3", "--out", out).refused("cannot be written")
    oscar("export", world.fleet, "--out", out).refused("cannot be written")
    oscar("baseline", "iamb", world.fleet, "--out", out).refused("cannot be written")
    assert not list(read_only.iterdir())


def torchrun(faults: Any, world: Any, out: Path) -> Any:
    words = ("-m", "torch.distributed.run", "--nproc_per_node=2", "--rdzv_backend=c10d", "--rdzv_endpoint=localhost:0")
    return faults.start("discover", world, out, launcher=(sys.executable, *words))


@pytest.mark.bits
def test_processes_of_torchrun_share_the_shards_and_end_together(
    faults: Any, world: Any, undisturbed: str, tmp_path: Path
) -> None:
    killed = torchrun(faults, world, tmp_path / "r")
    for line in killed.stdout:
        if line != "begun\n":
            break
    ranks = children(killed.pid)
    os.kill(ranks[-1], signal.SIGKILL)
    killed.communicate(timeout=120)
    assert killed.returncode != 0
    assert all(gone(pid) for pid in ranks)
    assert not (tmp_path / "r").exists()

    resumed = torchrun(faults, world, tmp_path / "r")
    out, err = resumed.communicate(timeout=120)
    assert resumed.returncode == 0, err
    half = faults.SEQUENCES // 2
    assert out.splitlines().count(f"{half} {half}") == 2  # each did its share
    assert faults.digest(tmp_path / "r") == undisturbed
