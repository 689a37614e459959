"""Figures of the ground floor: making a paper-size fleet, opening it, `--help`. Writes ground.json and ground.md.

python scripts/bench_ground.py --out docs/results [--sequences 300000]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

OPEN = """
import json, resource, sys, time
begun = time.perf_counter()
from oscar_causal.data.sequences import read_dataset
data = read_dataset(sys.argv[1])
seconds = time.perf_counter() - begun
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"sequences": len(data), "events": int(len(data.events.ids)), "seconds": seconds, "peak_mib": peak}))
"""


def child_memory(root: int) -> float:
    """Resident MiB of a process and everything below it."""
    listing = subprocess.run(["ps", "-eo", "pid,ppid,rss"], capture_output=True, text=True, check=True).stdout
    rows = [tuple(map(int, line.split())) for line in listing.splitlines()[1:]]
    family, total = {root}, 0
    for pid, parent, rss in sorted(rows):
        if pid == root or parent in family:
            family.add(pid)
            total += rss
    return total / 1024


def watched(command: list[str]) -> dict[str, float]:
    """Run a command; seconds and the largest memory of its whole process family, looked at twice a second."""
    begun, peak = time.perf_counter(), 0.0
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.5):
            peak = max(peak, child_memory(process.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    code = process.wait()
    done.set()
    watcher.join()
    if code:
        raise SystemExit(f"{' '.join(command)}: exit code {code}")
    return {"seconds": time.perf_counter() - begun, "peak_mib": peak}


def help_seconds() -> float:
    times = []
    for _ in range(5):
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-m", "oscar_causal", "--help"], stdout=subprocess.DEVNULL, check=True)
        times.append(time.perf_counter() - begun)
    return sorted(times)[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="docs/results")
    parser.add_argument("--sequences", type=int, default=300_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    with tempfile.TemporaryDirectory() as scratch:
        fleet = f"{scratch}/fleet"
        synth = ["--preset", "paper", "--sequences", str(args.sequences), "--seed", str(args.seed), "--out", fleet]
        made = watched([sys.executable, "-m", "oscar_causal", "synth", *synth])
        opened = json.loads(
            subprocess.run([sys.executable, "-c", OPEN, fleet], capture_output=True, text=True, check=True).stdout
        )
        fleet_info = json.loads((Path(fleet) / "dataset.json").read_text())
    result: dict[str, Any] = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}",
        "commit": commit.stdout.strip() or "unknown",
        "seed": args.seed,
        "make_paper_fleet": made,
        "open": opened,
        "help_seconds": help_seconds(),
        "digest": fleet_info["digest"],
        "bayes": fleet_info["bayes"],
    }
    write(Path(args.out), result)


def write(out: Path, result: dict[str, Any]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / "ground.json").write_text(json.dumps(result, indent=1) + "\n")
    made, opened = result["make_paper_fleet"], result["open"]
    lines = [
        "# Ground floor",
        "",
        f"Made by `make bench`; seed {result['seed']}, commit {result['commit']}, {result['machine']}.",
        "",
        "| what | seconds | peak memory (MiB) | aim |",
        "|---|---|---|---|",
        f"| make {opened['sequences']:,} sequences, {opened['events']:,} events (`paper`) | {made['seconds']:.0f} "
        f"| {made['peak_mib']:.0f}, all processes | 300 s, 4,096 MiB |",
        f"| open them (events and labels) | {opened['seconds']:.1f} | {opened['peak_mib']:.0f} | 10 s, 600 MB |",
        f"| `oscar --help` | {result['help_seconds']:.2f} | | 0.3 s |",
        "",
    ]
    (out / "ground.md").write_text("\n".join(lines))
    sys.stdout.write("\n".join(lines))


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()
