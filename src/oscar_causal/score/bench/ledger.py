"""The accumulated results of a benchmark: one JSON file per fleet and seed, a row added or replaced at a time."""

from __future__ import annotations

import fcntl
import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from oscar_causal import __version__
from oscar_causal.data.folders import check_format, read_json, write_json
from oscar_causal.errors import FolderError
from oscar_causal.score.bench.settings import BenchSettings

FORMAT_VERSION = 1


def ledger_path(name: str, settings: BenchSettings) -> Path:
    """`table-1-hard-seed0.json` in the benchmark's folder."""
    return settings.out / f"{name}-{settings.fleet_name}-seed{settings.seed}.json"


def read_ledger(path: Path, name: str) -> dict[str, Any]:
    """What was measured so far; an empty ledger when the file is not there."""
    if not path.exists():
        return {"kind": "bench", "format_version": FORMAT_VERSION, "bench": name, "rows": {}}
    ledger = read_json(path)
    check_format(ledger, path, kind="bench", newest=FORMAT_VERSION)
    if ledger.get("bench") != name or not isinstance(ledger.get("rows"), dict):
        raise FolderError(f"{path}: expected the rows of bench {name}, got those of {ledger.get('bench')!r}")
    return ledger


def add_row(path: Path, name: str, row: str, figures: Mapping[str, Any]) -> dict[str, Any]:
    """Add or replace one row and write the file; returns the whole ledger."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with _alone(path.parent):
        ledger = read_ledger(path, name)
        ledger["rows"] = {**ledger["rows"], row: dict(figures)}
        write_json(path, ledger)
    return ledger


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait until no other process adds a row in this folder."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def machine(device: str) -> str:
    """The machine in words."""
    if device.startswith("cuda"):
        import torch

        return f"{torch.cuda.get_device_name()}, {os.cpu_count()} CPU cores"
    return f"{platform.machine()} CPU, {os.cpu_count()} cores"


def provenance(settings: BenchSettings) -> dict[str, Any]:
    """Machine, program and settings of a row."""
    import torch

    return {
        "machine": machine(settings.device),
        "workers": settings.workers,
        "commit": settings.commit,
        "versions": {"oscar": __version__, "torch": torch.__version__, "python": platform.python_version()},
        "bench": settings.to_json(),
    }
