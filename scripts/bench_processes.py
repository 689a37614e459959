"""One process of one thread against two: how much sooner is `oscar discover` done? Writes processes.json.

    python scripts/bench_processes.py MODEL DATASET --out docs/results

Both explain the same sequences in turn, several times; the ratio of the medians counts. Run it on an idle machine
of two cores or more: the load before the start is recorded.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def seconds(model: str, dataset: str, workers: int) -> float:
    """Wall-clock time of one run with so many worker processes, starting and loading included."""
    command = [sys.executable, "-m", "oscar_causal", "discover", model, dataset, "--device", "cpu", "-q"]
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        subprocess.run(  # noqa: S603
            [*command, "--workers", str(workers), "--out", f"{folder}/results"],
            check=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL,
        )
        return time.perf_counter() - begun


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("dataset")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--out", type=Path, default=Path("docs/results"))
    args = parser.parse_args()
    load = os.getloadavg()[0]
    times: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(args.repeats):
        for workers, found in times.items():
            found.append(seconds(args.model, args.dataset, workers))
            print(workers, round(found[-1], 1), "s", flush=True)
    ratio = statistics.median(times[1]) / statistics.median(times[2])
    result = {
        "seconds": {str(workers): found for workers, found in times.items()},
        "times_faster": ratio,
        "cores": os.cpu_count(),
        "load_before": load,
        "machine": f"{platform.machine()} CPU",
        "commit": args.commit,
    }
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "processes.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"two processes are {ratio:.2f} times as fast as one")


if __name__ == "__main__":
    main()
