"""Runs the part of the tests that the packages of this environment allow, and writes down how it ended.

For machines where nothing can be installed and for environments with the lowest versions: a test that needs a package
which is not there is left out by name, everything else must pass. Files run side by side, each in a process of its own;
plugins of pytest are used where they are, none is needed.

    python scripts/tests_here.py --out lowest.json --workers 8 --seconds 400
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TOLD = ("torch", "numpy", "pyarrow", "scipy", "safetensors", "accelerate", "huggingface_hub", "networkx", "sympy",
        "typer", "rich", "matplotlib", "jinja2", "pytest")  # fmt: skip
TELLING = ("E   ", "FAILED", "ERROR", "ImportError")
"""Lines of pytest that say what is wrong."""
WIDE, MOST_TOLD = 300, 60
LONG = ("tests/docs", "tests/fuzz", "tests/faults", "tests/density/test_training.py")
"""They begin first."""
COUNTS = ("passed", "failed", "errors", "skipped", "deselected")


def imports_of(nodes: Iterable[ast.AST], *, within: bool) -> set[str]:
    """Modules that these statements import; `within` functions too."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
        elif _happens(node, within=within):
            found |= imports_of(ast.iter_child_nodes(node), within=within)
    return found


def _happens(node: ast.AST, *, within: bool) -> bool:
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
        return False
    return within or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


@cache
def missing_for(module: str) -> frozenset[str]:
    """Packages that importing this module needs and this environment lacks; our own modules are looked into."""
    package = module.partition(".")[0]
    if package != "oscar_causal":
        return frozenset() if find_spec(package) else frozenset({package})
    path = ROOT / "src" / Path(*module.split("."))
    sources = [file for file in (path / "__init__.py", path.with_suffix(".py")) if file.is_file()]
    return frozenset().union(*(missing_in(_tree(file).body, within=False) for file in sources))


def missing_in(nodes: Iterable[ast.AST], *, within: bool) -> frozenset[str]:
    """The same for statements."""
    return frozenset().union(*(missing_for(name) for name in sorted(imports_of(nodes, within=within))))


@cache
def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def left_out(file: Path) -> Iterator[tuple[str, str]]:
    """(test, package it lacks): the whole file, or single tests of it."""
    name = file.relative_to(ROOT).as_posix()
    folders = [folder for folder in file.parents if ROOT / "tests" in (folder, *folder.parents)]
    shared = [_tree(folder / "conftest.py").body for folder in folders if (folder / "conftest.py").is_file()]
    lacking = missing_in(_tree(file).body, within=False).union(*(missing_in(body, within=False) for body in shared))
    if lacking:
        yield name, sorted(lacking)[0]
        return
    for node in _tree(file).body:
        if isinstance(node, ast.FunctionDef) and (lacking := missing_in([node], within=True)):
            yield f"{name}::{node.name}", sorted(lacking)[0]


def settings(place: Path) -> Path:
    """The settings of pyproject.toml without those of plugins that are not here.

    Only warnings that our own code is to blame for are errors: old packages warn about each other.
    """
    own = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"]["ini_options"]
    if find_spec("pytest_timeout") is None:
        own.pop("timeout")
    own["filterwarnings"] = ["default", "error:::oscar_causal"]
    lines = {key: "\n    ".join(value) if isinstance(value, list) else value for key, value in own.items()}
    path = place / "pytest.ini"
    path.write_text("[pytest]\n" + "".join(f"{key} = {value}\n" for key, value in lines.items()), encoding="utf-8")
    return path


def run_file(file: str, options: list[str], until: float) -> dict[str, Any]:
    """One file in a process of its own: its counts, or why there are none."""
    seconds = until - time.monotonic()
    if seconds <= 0:
        return {"file": file, "late": True}
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}  # the tests are about CPUs
    places = [str(ROOT / "scripts"), os.environ.get("PYTHONPATH", "")]
    if find_spec("oscar_causal") is None:
        places.append(str(ROOT / "src"))
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, places))
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "skip_missing", *options, file]
    try:
        ended = subprocess.run(
            words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        return {"file": file, "late": True}
    closing = next(iter(ended.stdout.strip().splitlines()[-1:]), "")
    counts = {word: int(n) for n, word in re.findall(r"(\d+) (\w+)", closing)}
    counts["errors"] = counts.pop("error", 0) + counts.pop("errors", 0)
    found = {"file": file, "code": ended.returncode, **{name: counts.get(name, 0) for name in COUNTS}}
    if ended.returncode in (0, 5):
        return found
    told = [line[:WIDE] for line in f"{ended.stdout}{ended.stderr}".splitlines() if line.startswith(TELLING)]
    return {**found, "end": told[-MOST_TOLD:]}


def versions() -> dict[str, str]:
    """Of Python and of the packages that the core path runs on."""
    found = {"python": platform.python_version()}
    for name in TOLD:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def main() -> None:
    """Choose, run, write down; ends with 1 when a test failed or time ran out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="JSON with counts, versions, what was left out and what failed")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=400.0, help="what has not begun by then counts as failed")
    parser.add_argument("--only", default="tests", help="a folder or file of tests")
    given = parser.parse_args()
    begun = time.monotonic()
    only = ROOT / given.only
    files = [only] if only.is_file() else sorted(only.rglob("test_*.py"))
    skipped = dict(pair for file in files for pair in left_out(file))
    chosen = [name for file in files if (name := file.relative_to(ROOT).as_posix()) not in skipped]
    chosen.sort(key=lambda name: (not name.startswith(LONG), -(ROOT / name).stat().st_size))
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(given.workers) as pool:
        options = ["-c", str(settings(Path(place))), "--rootdir", str(ROOT)]
        options += [f"--deselect={name}" for name in skipped if "::" in name]
        ends = list(pool.map(lambda name: run_file(name, options, begun + given.seconds), chosen))
    bad = [end for end in ends if end.get("late") or end["code"] not in (0, 5)]
    totals = {name: sum(end.get(name, 0) for end in ends) for name in COUNTS}
    told = {"versions": versions(), **totals, "files": len(ends), "seconds": round(time.monotonic() - begun, 1)}
    if given.out:
        given.out.write_text(json.dumps({**told, "left_out": skipped, "bad": bad}, indent=1) + "\n", encoding="utf-8")
    for end in bad:
        print(end["file"], *end.get("end", ["ran out of time"]), sep="\n  ")
    print(json.dumps(told))
    print(f"{len(skipped)} left out for lack of {', '.join(sorted(set(skipped.values()))) or 'nothing'}")
    sys.exit(1 if bad or not totals["passed"] else 0)


if __name__ == "__main__":
    main()
