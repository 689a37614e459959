"""Workers are copies of a process that has imported everything, has one thread and asked for no device."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import forkserver

import pytest

from oscar_causal.discovery.workers import NEEDED, begin_early, one_thread_children, worker_context

linux = pytest.mark.skipif(sys.platform != "linux", reason="processes are copied on Linux alone")


@linux
@pytest.mark.parametrize(
    ("workers", "device", "begins"),
    [(2, "cpu", True), (2, None, True), (2, "cuda", False), (1, "cpu", False), (None, "cpu", False)],
)
def test_the_import_begins_early_where_workers_will_be_wanted(
    workers: int | None, device: str | None, begins: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    began: list[str] = []
    monkeypatch.setattr(forkserver, "ensure_running", lambda: began.append(os.environ["OMP_NUM_THREADS"]))
    begin_early(workers, device)
    assert began == (["1"] if begins else [])


@linux
def test_only_workers_on_a_cpu_are_copies() -> None:
    assert worker_context("cpu").get_start_method() == "forkserver"
    assert worker_context("cuda").get_start_method() == "spawn"
    assert worker_context("cuda:1").get_start_method() == "spawn"


def imported_before_work() -> bool:
    return set(NEEDED) <= set(sys.modules)


@linux
def test_a_worker_has_everything_before_its_first_work() -> None:
    with one_thread_children(), ProcessPoolExecutor(1, worker_context("cpu")) as pool:
        assert pool.submit(imported_before_work).result()


@linux
def test_what_is_copied_has_one_thread_and_no_device() -> None:
    code = f"""
import os, sys
for name in {NEEDED!r}:
    __import__(name)
import torch
threads = [open(f"/proc/self/task/{{number}}/comm").read().strip() for number in os.listdir("/proc/self/task")]
threads = [name for name in threads if name != "jemalloc_bg_thd"]  # pyarrow's allocator, which minds copies itself
sys.exit(f"threads {{threads}}" if len(threads) > 1 else torch.cuda.is_initialized())
"""
    with one_thread_children():
        ended = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


def test_children_have_one_thread_and_the_parent_keeps_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    with one_thread_children():
        assert os.environ["OMP_NUM_THREADS"] == os.environ["MKL_NUM_THREADS"] == "1"
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "MKL_NUM_THREADS" not in os.environ
