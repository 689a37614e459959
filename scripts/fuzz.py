"""Wrong input through whole verbs, 20,000 times: `make fuzz`.

One file of a sound world (datasets, models, results, populations, tables and logs of others) is changed by
`mutations.py`: three in four inputs are sound JSON, Parquet or SQLite of a wrong schema, the rest are damaged bytes. A
verb then runs on it in a forked process. A finding is anything but success or one line on stderr with a documented exit
code: a stack trace, a warning, a dead process, too much time or memory. Input k depends on (--seed, k) alone:
`--first K --inputs N` runs a part of a campaign, or one input again. Writes fuzz.md and fuzz.json; the exit code is 1
when there is a finding, and the input lies in the folder named by --keep.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import pkgutil
import platform
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from fuzz_worlds import CASES, Case, make_world
from mutations import mutate_bytes, mutate_json, mutate_lines, mutate_sqlite, mutate_table
from program import commit

CPU_SECONDS, WALL_SECONDS = 120, 600
"""Of one input; generous, as the machine may be busy. The slowest verb takes a few seconds on sound input."""
MEMORY = 2 << 30
"""Bytes that one input may take beyond what the idle process has."""
SOUND = 0.75
"""Share of inputs that are sound files of a wrong schema, where the file has one."""
CODES = (0, 2, 3, 4, 5)
LONGEST_LINE = 1000

SCHEMAS = {"json": mutate_json, "lines": mutate_lines, "parquet": mutate_table, "sqlite": mutate_sqlite}


@dataclass(frozen=True)
class Ended:
    """How a verb ended on one input."""

    case: Case
    kind: str
    status: int
    out: str
    err: str
    memory: int
    seconds: float

    def finding(self) -> str | None:
        """What is wrong with it; None when it succeeded, or was refused in one line."""
        if os.WIFSIGNALED(self.status):
            return f"killed by {signal.Signals(os.WTERMSIG(self.status)).name}: {self.err[-300:]}"
        code, lines = os.WEXITSTATUS(self.status), self.err.splitlines()
        if "Traceback" in self.err or code not in CODES:
            return f"exit {code}: " + " | ".join(line.strip() for line in lines[-3:])
        if "not enough memory" in self.err or self.memory > MEMORY:
            return f"{self.memory >> 20} MB: {self.err[-300:]}"
        if code and (len(lines) != 1 or not lines[0].startswith("oscar: ") or not lines[0].isprintable()):
            return f"not one printable line: {self.err[:500]!r}"
        if len(self.err) > LONGEST_LINE:
            return f"a line of {len(self.err)} characters: {self.err[:300]}"
        return _wrong_output(self.out, self.err) if code == 0 else None


def _wrong_output(out: str, err: str) -> str | None:
    try:
        json.loads(out)
    except ValueError as error:
        return f"stdout is no JSON: {error}"
    return f"a warning: {err[:300]}" if "Warning" in err else None


def run_input(world: Path, seed: int, number: int) -> tuple[Ended, bytes]:
    """Input `number` of the campaign `seed`: how it ended, and the changed file."""
    shares, rng = np.array([case.share for case in CASES], float), np.random.default_rng([seed, number])
    return run_case(world, CASES[int(rng.choice(len(CASES), p=shares / shares.sum()))], rng)


def run_case(world: Path, case: Case, rng: np.random.Generator | None) -> tuple[Ended, bytes]:
    """Run a case in a forked process, its file changed (without `rng`: as it is)."""
    path, log = world / case.file, world / "log"
    log.mkdir(exist_ok=True)
    before, begun = path.read_bytes(), time.monotonic()
    child = os.fork()
    if not child:
        _child(world, case, rng)
    status, used = _wait(child)
    changed = path.read_bytes()
    path.write_bytes(before)
    for left in world.glob("out*"):
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    kind, out, err = ((log / name).read_text(errors="replace") for name in ("kind", "out", "err"))
    memory = (used - resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) << 10
    return Ended(case, kind, status, out, err, memory, time.monotonic() - begun), changed


def _wait(child: int) -> tuple[int, int]:
    """Status and peak memory (kB) of a process that gets so much time and no more."""
    until = time.monotonic() + WALL_SECONDS
    while True:
        ended, status, used = os.wait4(child, os.WNOHANG)
        if ended:
            return status, used.ru_maxrss
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.005)


def _child(world: Path, case: Case, rng: np.random.Generator | None) -> None:
    """Change the file and run the verb; never returns."""
    try:
        os.chdir(world)
        for name, descriptor in (("out", 1), ("err", 2)):
            os.dup2(os.open(f"log/{name}", os.O_CREAT | os.O_WRONLY | os.O_TRUNC), descriptor)
        Path("log/kind").write_text("as it is")
        if rng is not None:
            kind, data = _make(case, rng)
            Path(case.file).write_bytes(data)
            Path("log/kind").write_text(kind)
        _bound()
        code = _run(case)
    except BaseException:  # noqa: BLE001 - this is what we look for
        import traceback

        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _make(case: Case, rng: np.random.Generator) -> tuple[str, bytes]:
    seed = Path(case.file).read_bytes()
    if case.kind in SCHEMAS and rng.random() < SOUND:
        return case.kind, SCHEMAS[case.kind](seed, rng)
    return "bytes", mutate_bytes(seed, rng, [seed])


def _bound() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 2 * MEMORY,) * 2)


def _run(case: Case) -> int:
    from oscar_causal.cli import main

    sys.argv = ["oscar", *case.words, "--json", "--quiet"]
    try:
        main()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0


def import_all() -> None:
    """Every module now, so that a forked process imports nothing."""
    import matplotlib.pyplot  # noqa: F401
    import rich.table  # noqa: F401
    import torch

    import oscar_causal

    if importlib.util.find_spec("pandas") is not None:
        import pandas  # noqa: F401 - pyarrow imports it when it is there
    torch.set_num_threads(1)
    torch.cuda.is_available = lambda: False  # a GPU's driver warns under a bound of memory, whatever the input
    for module in pkgutil.walk_packages(oscar_causal.__path__, "oscar_causal."):
        if not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except ImportError as error:  # an extra that is not installed; its verb says so
                print(f"not imported: {module.name}: {error}")


def campaign(folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    """`--jobs` processes take the inputs in turn, each in a world of its own."""
    make = os.fork()
    if not make:  # elsewhere: what runs torch or Arrow here starts threads, which a forked process would lack
        make_world(folder / "world")
        os._exit(0)
    if os.waitpid(make, 0)[1]:
        raise RuntimeError("the world could not be made")
    import_all()
    jobs = []
    for job in range(given.jobs):
        shutil.copytree(folder / "world", folder / f"world-{job}")
        jobs.append(os.fork())
        if not jobs[-1]:
            _job(folder, given, job)
    for job in jobs:
        os.waitpid(job, 0)
    rows = [json.loads(line) for path in sorted(folder.glob("job-*.jsonl")) for line in path.read_text().splitlines()]
    counts = Counter((row["verb"], row["kind"]) for row in rows)
    return {
        "inputs": {verb: {k: counts[v, k] for v, k in sorted(counts) if v == verb} for verb, _ in sorted(counts)},
        "refused": sum(row["code"] not in (0, None) for row in rows),
        "findings": [row for row in rows if row["finding"] is not None],
        "slowest_seconds": max((row["seconds"] for row in rows), default=0.0),
        "most_memory_mb": max((row["mb"] for row in rows), default=0),
    }


def _job(folder: Path, given: argparse.Namespace, job: int) -> None:
    begun, end = time.monotonic(), given.first + given.inputs
    with (folder / f"job-{job}.jsonl").open("w") as log:
        for number in range(given.first + job, end, given.jobs):
            if time.monotonic() - begun > given.seconds:
                break
            ended, changed = run_input(folder / f"world-{job}", given.seed, number)
            found = ended.finding()
            row = {"number": number, "verb": ended.case.words[0], "file": ended.case.file, "kind": ended.kind}
            code = os.WEXITSTATUS(ended.status) if os.WIFEXITED(ended.status) else None
            row |= {"code": code, "seconds": round(ended.seconds, 2), "mb": ended.memory >> 20, "finding": found}
            log.write(json.dumps(row) + "\n")
            log.flush()
            if found is not None:
                print(f"{number}: oscar {' '.join(ended.case.words)} ({ended.case.file}): {found}", flush=True)
                (folder / f"finding-{number}").write_bytes(changed)
                (folder / f"finding-{number}.txt").write_text(f"{ended.case}\n{ended.out}\n{ended.err}")
            if number % 1000 == 999:
                print(f"{number + 1:,} inputs, {time.monotonic() - begun:.0f} s", flush=True)
    os._exit(0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="Number of the first input.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=4 * 3600.0, help="Stop after this long, whatever was reached.")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=Path("docs/results"))
    parser.add_argument("--keep", type=Path, default=None, help="Work here and keep the inputs that were findings.")
    parser.add_argument("--commit", help="Of the program, for the record; by default the one checked out here.")
    given = parser.parse_args()
    begun, program = time.time(), commit(given.commit)
    with tempfile.TemporaryDirectory() as name:
        folder = (given.keep or Path(name)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        facts = campaign(folder, given)
    facts |= {"seed": given.seed, "first": given.first, "seconds": round(time.time() - begun), "commit": program}
    facts |= {"machine": f"{platform.machine()}, {os.cpu_count()} cores", "python": platform.python_version()}
    _write(given.out, facts)
    return int(bool(facts["findings"]))


def _write(out: Path, facts: dict[str, Any]) -> None:
    kinds = (*SCHEMAS, "bytes")
    total = sum(sum(part.values()) for part in facts["inputs"].values())
    sound = total - sum(part.get("bytes", 0) for part in facts["inputs"].values())
    lines = [
        "# Fuzzing",
        "",
        f"`make fuzz`: {total:,} wrong inputs through whole verbs, {sound:,} of them sound JSON, Parquet or SQLite of "
        f"a wrong schema; {len(facts['findings'])} findings, {facts['refused']:,} refused in one line, the rest taken. "
        "A finding is a stack trace, a warning, an undocumented exit code, more than one line or an unprintable one, "
        f"{CPU_SECONDS} s of CPU, {MEMORY >> 30} GiB, or a dead process. Slowest: {facts['slowest_seconds']} s; most "
        f"memory: {facts['most_memory_mb']} MB.",
        "",
        f"| verb | inputs | {' | '.join(kinds)} |",
        "|---|---|" + "---|" * len(kinds),
        *[
            f"| {verb} | {sum(part.values()):,} | {' | '.join(f'{part.get(kind, 0):,}' for kind in kinds)} |"
            for verb, part in facts["inputs"].items()
        ],
        "",
        f"Seed {facts['seed']}, {facts['machine']}, {facts['seconds']:,} s, commit {facts['commit']}.",
        "",
    ]
    out.mkdir(parents=True, exist_ok=True)
    (out / "fuzz.md").write_text("\n".join(lines))
    (out / "fuzz.json").write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
