"""Run the tests as other CPUs would: `make portability`.

Libraries choose their kernels, and with them the order of addition, by the CPU they find. Each setting makes them
choose as on another machine, in processes of their own; one runs beside busy processes. What a setting changed is
asked of the libraries and recorded. With `--out` writes portability.md and portability.json after every setting, beside
what other settings of the same commit and tests had; the exit code is 1 when tests failed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from program import commit

ROOT = Path(__file__).resolve().parent.parent
COUNTS = ("passed", "failed", "errors", "skipped")
NAMES = ("OPENBLAS_CORETYPE", "ATEN_CPU_CAPABILITY", "MKL_CBWR", "OMP_NUM_THREADS")
"""Environment variables that settings set; what the caller's environment says of them is left out."""
PROBE = """
import json, threadpoolctl, torch, numpy
torch.ones(64, 64) @ torch.ones(64, 64)
blas = [found for found in threadpoolctl.threadpool_info() if found["user_api"] == "blas"]
print(json.dumps({
    "aten": torch.backends.cpu.get_cpu_capability(),
    "openblas": "/".join(found.get("architecture", found["internal_api"]) for found in blas),
    "threads": torch.get_num_threads(),
    "torch": torch.__version__,
    "numpy": numpy.__version__,
}))
"""


@dataclass(frozen=True)
class Setting:
    """Variables that make libraries choose other kernels, and what the CPU must be able to do for them."""

    name: str
    variables: dict[str, str] = field(default_factory=dict)
    needs: str = ""
    """A flag of /proc/cpuinfo."""
    loaded: bool = False
    """Beside two busy processes a core."""


SETTINGS = (
    Setting("default"),
    Setting("one-thread", {"OMP_NUM_THREADS": "1"}),
    Setting("under-load", {"OMP_NUM_THREADS": "2"}, loaded=True),
    Setting(
        "oldest",
        dict(zip(NAMES, ("Prescott", "default", "COMPATIBLE", "1"), strict=True)),
        needs="pni",
    ),
    Setting("oldest-two-threads", dict(zip(NAMES, ("Prescott", "default", "COMPATIBLE", "2"), strict=True)), "pni"),
    Setting("haswell", dict(zip(NAMES, ("Haswell", "avx2", "AVX2", "2"), strict=True)), "avx2"),
    Setting("zen", {"OPENBLAS_CORETYPE": "Zen", "ATEN_CPU_CAPABILITY": "avx2", "OMP_NUM_THREADS": "1"}, "avx2"),
    Setting("skylakex", {"OPENBLAS_CORETYPE": "SkylakeX", "OMP_NUM_THREADS": "2"}, "avx512f"),
    Setting("aten-default", {"ATEN_CPU_CAPABILITY": "default", "OMP_NUM_THREADS": "2"}, "avx2"),
    Setting("mkl-compatible", {"MKL_CBWR": "COMPATIBLE", "OMP_NUM_THREADS": "2"}, "pni"),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tests", nargs="*", default=["tests"], help="Files or folders; default: all.")
    parser.add_argument("--marked", help="Only tests with this marker: bits is the short form.")
    parser.add_argument("--settings", help=f"Some of {', '.join(setting.name for setting in SETTINGS)}.")
    parser.add_argument("--jobs", default="2", help="Processes of pytest.")
    parser.add_argument("--out", type=Path, help="Folder for portability.md and portability.json.")
    given = parser.parse_args()
    facts, rows = {"tests": given.tests, "marked": given.marked, "commit": commit()}, []
    for setting in _chosen(given.settings):
        row = run(setting, given.tests, given.marked, given.jobs)
        print(_told(row), *row.get("failures", []), sep="\n  ", flush=True)
        rows.append(row)
        if given.out:
            _write(given.out, _with_earlier(given.out, rows, facts), **facts)
    return int(any(row.get("code") for row in rows))


def _chosen(names: str | None) -> list[Setting]:
    by_name = {setting.name: setting for setting in SETTINGS}
    wanted = names.split(",") if names else list(by_name)
    if unknown := [name for name in wanted if name not in by_name]:
        sys.exit(f"--settings: expected some of {', '.join(by_name)}, got {', '.join(unknown)}")
    return [by_name[name] for name in wanted]


def run(setting: Setting, tests: list[str], marked: str | None, jobs: str) -> dict[str, Any]:
    """The tests under one setting: counts, what failed, what the libraries say of the setting."""
    row: dict[str, Any] = {"setting": setting.name, "variables": setting.variables}
    if setting.needs and setting.needs not in _cpu()[1]:
        return {**row, "left_out": f"this CPU has no {setting.needs}"}
    kept = {name: value for name, value in os.environ.items() if name not in NAMES}
    environment = kept | {"OMP_WAIT_POLICY": "PASSIVE"} | setting.variables
    marks = " and ".join([*([marked] if marked else []), "not browser", "not ray"])
    words = [sys.executable, "-m", "pytest", "-q", "-n", jobs, "--dist", "worksteal", "-p", "no:cacheprovider"]
    begun = time.monotonic()
    with busy(2 * (os.cpu_count() or 1) if setting.loaded else 0):
        ended = subprocess.run(
            [*words, "-m", marks, *tests], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
    lines = ended.stdout.splitlines()
    counts = {word: int(n) for n, word in re.findall(r"(\d+) (\w+)", lines[-1] if lines else "")}
    counts["errors"] = counts.pop("error", 0) + counts.get("errors", 0)
    row |= {"code": ended.returncode, "seconds": round(time.monotonic() - begun), "found": probe(environment)}
    row |= {name: counts.get(name, 0) for name in COUNTS}
    row["failures"] = [line[:200] for line in lines if line.startswith(("FAILED", "ERROR"))]
    return row if lines else {**row, "failures": ended.stderr.splitlines()[-1:]}


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Beside so many processes that never wait."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def probe(environment: dict[str, str]) -> dict[str, Any]:
    """What the libraries say they do under these variables; MKL tells on every product how it keeps its promises."""
    ended = subprocess.run(
        [sys.executable, "-c", PROBE],
        env=environment | {"MKL_VERBOSE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    modes = re.findall(r"CNR:(\w+)", ended.stdout)
    return json.loads(ended.stdout.splitlines()[-1]) | {"mkl": modes[0] if modes else "no MKL"}


def _cpu() -> tuple[str, set[str]]:
    """Model and flags of the CPU."""
    path = Path("/proc/cpuinfo")
    told = path.read_text(encoding="utf-8") if path.exists() else ""
    values = dict(re.findall(r"^(model name|flags)\s*: (.*)$", told, re.M))
    return values.get("model name", platform.processor()), set(values.get("flags", "").split())


def _told(row: dict[str, Any]) -> str:
    if "left_out" in row:
        return f"{row['setting']}: left out, {row['left_out']}"
    counts = ", ".join(f"{row[name]} {name}" for name in COUNTS if row[name] or name == "passed")
    return f"{row['setting']}: {counts} in {row['seconds']} s; {_found(row)}"


def _found(row: dict[str, Any]) -> str:
    found = row["found"]
    return f"OpenBLAS {found['openblas']}, ATen {found['aten']}, MKL {found['mkl']}, {found['threads']} threads"


def _with_earlier(out: Path, rows: list[dict[str, Any]], facts: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows and those of an earlier call on the same program and tests, in the order of the settings."""
    path = out / "portability.json"
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    same = all(kept.get(name) == value for name, value in facts.items())
    by_name = {row["setting"]: row for row in [*(kept["settings"] if same else []), *rows]}
    return [by_name[setting.name] for setting in SETTINGS if setting.name in by_name]


def _write(out: Path, rows: list[dict[str, Any]], **facts: Any) -> None:
    facts |= {"cpu": _cpu()[0], "cores": os.cpu_count(), "python": platform.python_version(), "settings": rows}
    ran = [row for row in rows if "left_out" not in row]
    versions = ran[0]["found"] if ran else {}
    which = f"tests marked `{facts['marked']}`" if facts["marked"] else "the tests, but those that need Chromium or Ray"
    lines = [
        "# Portability",
        "",
        f"`make portability`: {which}, in processes whose libraries choose their kernels as on",
    ]
    lines += [
        "other CPUs. What the libraries then say they use stands in the second column: MKL takes `MKL_CBWR=AVX2` on"
    ]
    lines += ["Intel's CPUs alone, and a build of OpenBLAS may use one kernel under several names.", ""]
    lines += ["| setting | kernels found | passed | failed | skipped | seconds |", "|---|---|---|---|---|---|"]
    for row in rows:
        if "left_out" in row:
            lines.append(f"| {row['setting']} | left out: {row['left_out']} | | | | |")
        else:
            counts = f"{row['passed']} | {row['failed'] + row['errors']} | {row['skipped']} | {row['seconds']}"
            lines.append(f"| {row['setting']} | {_found(row)} | {counts} |")
    lines += [f"\nFailed under `{row['setting']}`: {'; '.join(row['failures'])}" for row in ran if row["failures"]]
    libraries = ", ".join(f"{name} {versions.get(name)}" for name in ("torch", "numpy"))
    lines += [
        "",
        f"{facts['cpu']}, {facts['cores']} cores, Python {facts['python']}, {libraries}, {facts['commit']}.",
        "",
    ]
    out.mkdir(parents=True, exist_ok=True)
    (out / "portability.md").write_text("\n".join(lines), encoding="utf-8")
    (out / "portability.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
