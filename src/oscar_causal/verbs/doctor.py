"""`oscar doctor`: versions, devices, threads, extras and disk, for a bug report and for one's own peace of mind."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from oscar_causal.verbs.output import Json, print_json, print_lines

PACKAGES = (
    *("torch", "numpy", "pyarrow", "scipy", "safetensors", "huggingface_hub", "accelerate", "networkx", "sympy"),
    *("typer", "rich", "matplotlib", "jinja2"),
)
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
PROBE = """
import torch
torch.set_num_threads(1)
a = torch.ones(64, 64, dtype=torch.{precision})
assert float((a @ a).float().mean()) == 64.0
with torch.autocast("cpu", dtype=torch.{precision}):
    torch.nn.Linear(64, 64)(torch.ones(2, 64))
q = torch.ones(1, 1, 8, 16, dtype=torch.{precision})
torch.nn.functional.scaled_dot_product_attention(q, q, q)
"""
"""Multiplies, projects and attends; on some processors that kills the process, hence in one of its own."""


def run(json: Json = False) -> None:
    """Look at this installation: versions, devices, threads, whether bfloat16 is safe, extras, disk."""
    found = examine()
    if json:
        print_json(found)
        return
    print_lines(_lines(found))


def examine() -> dict[str, Any]:
    """Everything as plain JSON values."""
    from oscar_causal import __version__

    return {
        "oscar": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: _version(name) for name in PACKAGES},
        "extras": _extras(),
        "cores": _cores(),
        "threads": _threads(),
        "devices": _devices(),
        "precision": {name: probe(name) for name in ("float32", "bfloat16")},
        "disk": {"current": _disk(Path.cwd()), "temporary": _disk(Path(tempfile.gettempdir()))},
    }


def probe(precision: str) -> str:
    """Does this precision work on the CPU? "works", "crashes (signal 4)" or the error's last line; asked in a child."""
    code = PROBE.format(precision=precision)
    try:
        child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        return "hangs"
    if child.returncode == 0:
        return "works"
    if child.returncode < 0:
        return f"crashes (signal {-child.returncode})"
    lines = child.stderr.strip().splitlines()
    return f"fails: {lines[-1] if lines else f'exit code {child.returncode}'}"


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _extras() -> dict[str, dict[str, str | None]]:
    from oscar_causal.data.extras import EXTRAS

    return {
        extra: {name: _version(name) if importlib.util.find_spec(name) else None for name in modules}
        for extra, modules in EXTRAS.items()
    }


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _threads() -> dict[str, Any]:
    import torch

    named = {name: os.environ[name] for name in THREAD_VARIABLES if name in os.environ}
    return {"torch": torch.get_num_threads(), **named}


def _devices() -> list[dict[str, Any]]:
    import torch

    found: list[dict[str, Any]] = [{"device": "cpu", "name": platform.processor() or platform.machine()}]
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        gib = round(properties.total_memory / 2**30, 1)
        found.append({"device": f"cuda:{index}", "name": properties.name, "memory_gib": gib})
    return found


def _disk(folder: Path) -> dict[str, float]:
    usage = shutil.disk_usage(folder)
    return {"free_gib": round(usage.free / 2**30, 1), "total_gib": round(usage.total / 2**30, 1)}


def _lines(found: dict[str, Any]) -> list[str]:
    packages = ", ".join(f"{name} {number or 'MISSING'}" for name, number in found["packages"].items())
    threads = ", ".join(f"{name} {value}" for name, value in found["threads"].items())
    lines = [
        f"oscar {found['oscar']}, Python {found['python']}, {found['platform']}",
        f"packages: {packages}",
        f"cores: {found['cores']}; threads: {threads}",
    ]
    lines += [f"device {item['device']}: {item['name']}{_memory(item)}" for item in found["devices"]]
    lines += [f"{name} on the CPU: {state}" for name, state in found["precision"].items()]
    for extra, modules in found["extras"].items():
        missing = [name for name, number in modules.items() if number is None]
        state = f"missing: pip install 'oscar-causal[{extra}]'" if missing else "there"
        lines.append(f"extra {extra} ({', '.join(modules)}): {state}")
    for place, disk in found["disk"].items():
        lines.append(f"disk, {place} folder: {disk['free_gib']:g} of {disk['total_gib']:g} GiB free")
    return lines


def _memory(device: dict[str, Any]) -> str:
    return f", {device['memory_gib']:g} GiB" if "memory_gib" in device else ""
