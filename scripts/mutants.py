"""Wrong programs that the tests must tell from the right one: `make mutants`.

A mutant replaces one expression or statement of one function in a copy of the sources (`mutant_list` names them by
module, function and what is wrong, never by line). The test files that are about the function must fail; a mutant that
they let live is a hole in the tests, unless its one-line proof says why it is the same program. Writes
docs/results/mutants.md and mutants.json; the exit code is 1 when a mutant lives without a proof. After a change,
`make mutants ONLY=discovery/looks` judges some of them again.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from io import StringIO
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from mutant_list import MUTANTS, Mutant
from program import commit

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path("src") / "oscar_causal"
OPTIONS = ["-q", "-x", "--tb=no", "-p", "no:cacheprovider", "-p", "pytest_timeout", "-p", "_hypothesis_pytestplugin",
           "--hypothesis-seed=0"]  # fmt: skip
HEAVY = ["torch", "pyarrow.parquet", "pyarrow.compute", "scipy.stats", "scipy.optimize", "hypothesis", "networkx"]


def mutated(source: str, mutant: Mutant) -> str:
    """The module's source with the mutant in it; refuses what is not there exactly once."""
    tree = ast.parse(source)
    function = find_function(tree, mutant.function)
    change = _Replace(_node(mutant.old), _node(mutant.new))
    change.visit(function)
    if change.found != 1:
        raise SystemExit(f"{mutant.name}: expected {mutant.old!r} once in the function, found it {change.found} times")
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def find_function(tree: ast.Module, name: str) -> ast.AST:
    """A function by its qualified name: `column_test`, `CiTester.scan`."""
    found: ast.AST = tree
    for part in name.split("."):
        inside = [node for node in ast.iter_child_nodes(found) if getattr(node, "name", None) == part]
        if len(inside) != 1:
            raise SystemExit(f"{name}: expected one function of this name, found {len(inside)}")
        found = inside[0]
    return found


def _node(text: str) -> ast.AST:
    """One statement, or the expression it consists of."""
    (statement,) = ast.parse(text).body
    return statement.value if isinstance(statement, ast.Expr) else statement


class _Replace(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.kind, self.old, self.new, self.found = type(old), ast.dump(old), new, 0

    def visit(self, node: ast.AST) -> Any:
        """Replace what looks the same, wherever it stands."""
        if type(node) is not self.kind or ast.dump(node) != self.old:
            return self.generic_visit(node)
        self.found += 1
        return self.new


class _FirstFailure:
    """A plugin that remembers which test failed first, and what could not be collected."""

    failed: str | None = None
    broken: str | None = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """After each part of a test."""
        if report.failed and self.failed is None:
            self.failed = report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """After each file: one that cannot be imported says nothing about the tests."""
        if report.failed:
            self.broken = f"{report.nodeid}: {report.longreprtext[-500:]}"


def run_tests(mutant: Mutant | None, files: Sequence[str]) -> dict[str, Any]:
    """Which test fails first on a copy of the sources, for a process of its own that has not imported them yet."""
    begun = time.monotonic()
    watch = _FirstFailure()
    with tempfile.TemporaryDirectory() as place:
        package = Path(place) / PACKAGE
        shutil.copytree(ROOT / PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
        if mutant is not None:
            file = package / mutant.module
            file.write_text(mutated(file.read_text(encoding="utf-8"), mutant), encoding="utf-8")
        sys.path.insert(0, str(package.parent))
        os.environ["PYTHONPATH"] = str(package.parent)  # of programs that tests start
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # importing them all takes seconds
        os.chdir(ROOT)
        with redirect_stdout(StringIO()):
            code = int(pytest.main([*OPTIONS, f"--basetemp={place}/temporary", *files], plugins=[watch]))
        imported = Path(sys.modules["oscar_causal"].__file__ or "")
    if watch.broken or imported.parent != package or (code == 0) != (watch.failed is None):
        raise RuntimeError(f"{mutant and mutant.name}: pytest ended with {code}, {imported}: {watch.broken}")
    return {"killed_by": watch.failed, "seconds": round(time.monotonic() - begun, 1)}


def judge(mutant: Mutant) -> dict[str, Any]:
    """One row of the record."""
    ended = run_tests(mutant, mutant.tests)
    print(f"{ended['seconds']:6.1f} s  {mutant.name}  {'killed' if ended['killed_by'] else 'LIVES'}", flush=True)
    return {"name": mutant.name, "old": mutant.old, "new": mutant.new, **ended, "equivalent": mutant.equivalent}


def write(out: Path, rows: list[dict[str, Any]]) -> None:
    """Both files: these rows, and those of earlier runs for the other mutants."""
    file = out / "mutants.json"
    kept = json.loads(file.read_text(encoding="utf-8"))["mutants"] if file.is_file() else []
    every = {row["name"]: row for row in [*kept, *rows]}
    record = {"mutants": [every[mutant.name] for mutant in MUTANTS if mutant.name in every]}
    file.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    (out / "mutants.md").write_text(page(record["mutants"]), encoding="utf-8")


def page(rows: list[dict[str, Any]]) -> str:
    """The record as a table."""
    lives = [row for row in rows if not row["killed_by"]]
    lines = [
        "# Mutants",
        "",
        f"`make mutants` at commit {', '.join(sorted({row['commit'] for row in rows}))}: {len(rows)} wrong programs, "
        f"{len(rows) - len(lives)} killed by the tests of their function, {len(lives)} alive and shown to be the same "
        f"program; {sum(row['seconds'] for row in rows):.0f} s of tests, one process for each.",
        "",
        "| module | function | what is wrong | killed by | s |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        by = f"`{row['killed_by']}`" if row["killed_by"] else f"lives: {row['equivalent']}"
        module, function, operator = row["name"].split(": ", 2)
        lines.append(f"| {module} | `{function}` | {operator} | {by} | {row['seconds']} |")
    return "\n".join(lines) + "\n"


def _pool(workers: int) -> ProcessPoolExecutor:
    """Processes for one task each, copies of one that has imported the heavy packages and nothing of ours."""
    context = get_context("forkserver")
    context.set_forkserver_preload(HEAVY)
    return ProcessPoolExecutor(workers, mp_context=context, max_tasks_per_child=1)


def main() -> None:
    """Run the tests on the sources as they are, then on every mutant; write down which test told them apart."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder for mutants.md and mutants.json")
    parser.add_argument(
        "--only", default="", help="mutants whose name holds this, without the control; nothing written"
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--commit", help="the commit that is measured, where git cannot tell")
    given = parser.parse_args()
    measured = commit(given.commit)
    chosen = [mutant for mutant in MUTANTS if given.only in mutant.name]
    tests = sorted({test for mutant in chosen for test in mutant.tests})
    with _pool(given.workers) as pool:
        sound = list(pool.map(run_tests, [None] * len(tests), [[test] for test in tests]))
        if broken := [end["killed_by"] for end in sound if end["killed_by"]]:
            raise SystemExit(f"the tests fail without any mutant: {broken[0]}")
        rows = []
        for row in pool.map(judge, chosen):
            rows.append({**row, "commit": measured})
            if given.out:
                write(given.out, rows[-1:])
    alive = [row["name"] for row in rows if not row["killed_by"] and not row["equivalent"]]
    print(f"{len(rows)} mutants, {len(alive)} alive without a proof", *alive, sep="\n  ")
    sys.exit(1 if alive else 0)


if __name__ == "__main__":
    main()
