"""Damage every file the program reads, 100,000 times and more: `make fuzz`.

Inputs are made from valid files by `mutations.py` and read by `fuzz_targets.py` in a child process with bounded memory;
one that takes longer than ten seconds, or kills the child, is a finding like any other exception. With the package
atheris installed, coverage-guided runs on the text readers follow. Writes docs/results/fuzz.md and fuzz.json; the exit
code is 1 when there is a finding, and the input lies in the folder named by --keep.
"""

from __future__ import annotations

import argparse
import faulthandler
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from fuzz_targets import targets
from program import commit

HANG_SECONDS = 10
MEMORY = 2 << 30
"""Bytes a reader may take beyond what the idle process has."""
CHUNK = 5000
QUICK = 0.9
"""Share of inputs for the reader alone; the others go on to use what was read: a whole import, a model that answers."""
GUIDED = ("rule", "rules.json", "names.json", "import table.csv", "import table.jsonl")


def work(folder: Path, seed: int, count: int) -> None:
    """The child: `count` inputs spread over all readers by their share; findings go to findings.jsonl."""
    _be_careful()
    every = targets(folder / f"work-{seed}")
    weights = np.array([target.share for target in every], float)
    rng = np.random.default_rng([seed, 0xF022])
    _bound_memory()
    done: Counter[str] = Counter()
    for k in range(count):
        target = every[int(rng.choice(len(every), p=weights / weights.sum()))]
        data = target.make(rng)
        (folder / "current").write_bytes(data)
        (folder / "current.name").write_text(target.name)
        faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)
        finding = target.finding(data, quick=rng.random() < QUICK)
        faulthandler.cancel_dump_traceback_later()
        done[target.name] += 1
        if finding is not None:
            _note(folder, target.name, finding, data)
        if k % 100 == 99 or k == count - 1:
            (folder / f"done-{seed}.json").write_text(json.dumps(done))


def _be_careful() -> None:
    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("error")


def _bound_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY,) * 2)


def _note(folder: Path, name: str, finding: str, data: bytes) -> None:
    number = len(list(folder.glob("finding-*")))
    (folder / f"finding-{number:04d}").write_bytes(data)
    with (folder / "findings.jsonl").open("a") as log:
        log.write(json.dumps({"target": name, "finding": finding, "input": f"finding-{number:04d}"}) + "\n")


def guided(folder: Path, name: str, runs: int, seconds: int) -> None:
    """The child under atheris: looks for inputs that reach new branches of the package."""
    import atheris

    with atheris.instrument_imports(include=["oscar_causal.data"]):
        every = targets(folder / f"guided-{name.replace(' ', '-')}")
    target = next(target for target in every if target.name == name)
    seeds = folder / f"seeds-{name.replace(' ', '-')}"
    seeds.mkdir()
    for k, seed in enumerate(target.seeds):
        (seeds / str(k)).write_bytes(seed)

    def test_one(data: bytes) -> None:
        finding = target.finding(data)
        if finding is not None:
            _note(folder, name, finding, data)

    options = [
        f"-runs={runs}",
        f"-max_total_time={seconds}",
        f"-timeout={HANG_SECONDS}",
        "-max_len=4000",
        "-verbosity=0",
    ]
    atheris.Setup([sys.argv[0], *options, "-print_final_stats=1", str(seeds)], test_one)
    atheris.Fuzz()


def campaign(folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    """Chunk after chunk in a child of its own, until there are enough inputs or the time is over."""
    begun, done, seed = time.monotonic(), Counter[str](), given.seed
    while sum(done.values()) < given.inputs and time.monotonic() - begun < given.seconds:
        ended = _child(folder, "work", str(seed), str(min(CHUNK, given.inputs - sum(done.values()))))
        told = folder / f"done-{seed}.json"
        done.update(json.loads(told.read_text()) if told.exists() else {})
        if ended.returncode:
            reason = f"the process ended with {ended.returncode}: {ended.stderr[-300:]}"
            _note(folder, (folder / "current.name").read_text(), reason, (folder / "current").read_bytes())
        seed += 1
        print(f"{sum(done.values()):,} inputs, {time.monotonic() - begun:.0f} s", flush=True)
    return {"inputs": dict(sorted(done.items())), "guided": _guided_campaign(folder, given)}


def _guided_campaign(folder: Path, given: argparse.Namespace) -> dict[str, int]:
    if importlib.util.find_spec("atheris") is None or not given.guided:
        return {}
    runs = {}
    for name in GUIDED:
        ended = _child(folder, "guided", name, str(given.guided), str(given.guided_seconds))
        found = [line for line in ended.stderr.splitlines() if "number_of_executed_units" in line]
        runs[name] = int(found[0].split(":")[-1]) if found else 0
        if ended.returncode or not found:
            _note(folder, name, f"atheris ended with {ended.returncode}: {ended.stderr[-300:]}", b"")
        print(f"atheris, {name}: {runs[name]:,} inputs", flush=True)
    return runs


def _child(folder: Path, *words: str) -> Any:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, words[0], str(folder), *words[1:]]
    return subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True, errors="replace", check=False)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=3600.0, help="Stop after this long, whatever was reached.")
    parser.add_argument("--guided", type=int, default=10_000, help="Inputs of each coverage-guided run.")
    parser.add_argument("--guided-seconds", type=int, default=120)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("docs/results"))
    parser.add_argument("--keep", type=Path, default=None, help="Work here and keep the inputs that were findings.")
    parser.add_argument("--commit", help="Of the program, for the record; by default the one checked out here.")
    given = parser.parse_args()
    begun, program = time.time(), commit(given.commit)
    with tempfile.TemporaryDirectory() as name:
        folder = given.keep or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        facts = campaign(folder, given)
        log = folder / "findings.jsonl"
        findings = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    facts |= {"findings": findings, "seed": given.seed, "seconds": round(time.time() - begun), "commit": program}
    _write(given.out, facts)
    for finding in findings[:20]:
        print(f"{finding['target']}: {finding['finding']}")
    return int(bool(findings))


def _write(out: Path, facts: dict[str, Any]) -> None:
    total, more = sum(facts["inputs"].values()), sum(facts["guided"].values())
    lines = ["# Fuzzing", "", f"`make fuzz`: {total:,} damaged inputs, {more:,} more under atheris (coverage-guided);"]
    lines += [f"{len(facts['findings'])} findings. A finding is anything but success or an error of one line: another"]
    lines += [f"exception, a warning, more than {HANG_SECONDS} s, more than {MEMORY >> 30} GiB, a dead process.", ""]
    lines += [
        "One input in ten goes beyond the reader: a whole import, a model that answers, a summary of results.",
        "",
    ]
    lines += ["| reader | inputs | under atheris |", "|---|---|---|"]
    lines += [f"| {name} | {count:,} | {facts['guided'].get(name, 0):,} |" for name, count in facts["inputs"].items()]
    lines += ["", f"Seed {facts['seed']}, {facts['seconds']:,} s, commit {facts['commit']}.", ""]
    out.mkdir(parents=True, exist_ok=True)
    (out / "fuzz.md").write_text("\n".join(lines))
    (out / "fuzz.json").write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["work"]:
        work(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
    elif sys.argv[1:2] == ["guided"]:
        guided(Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
    else:
        sys.exit(main())
