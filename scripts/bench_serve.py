"""Load on `oscar serve`: many clients at once, malformed requests, memory; the service runs as a process of its own.

python scripts/bench_serve.py MODEL DATASET --out docs/results
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from malformed_requests import malformed_requests
from program import commit


@contextmanager
def service(model: Path, dataset: Path) -> Iterator[tuple[str, int]]:
    """The address and process id of a fresh service."""
    words = [
        sys.executable,
        "-m",
        "oscar_causal",
        "serve",
        str(model),
        "--dataset",
        str(dataset),
        "--port",
        "0",
        "--json",
    ]
    words += ["--deadline", "300"]  # what other work on the machine does to the times is measured, not refused
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield json.loads("".join(iter(process.stdout.readline, "}\n")) + "}")["url"], process.pid
    finally:
        process.terminate()
        process.wait(timeout=30)


def resident_mib(pid: int) -> float:
    """Memory of a process that is in use now."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


async def sequences(client: httpx.AsyncClient, count: int) -> list[dict[str, Any]]:
    """The first sequences of the dataset that the model has not seen."""
    rows: list[str] = []
    while len(rows) < count:
        page = await client.get("sequences", params={"unseen": True, "limit": 100, "offset": len(rows)})
        found = [row["sequence_id"] for row in page.raise_for_status().json()["sequences"]]
        if not found:
            break
        rows += found
    return [(await client.get("sequences/one", params={"id": name})).json() for name in rows[:count]]


async def load(url: str, path: str, bodies: list[dict[str, Any]], clients: int) -> tuple[list[float], Counter[int]]:
    """Send all bodies, so many at a time; seconds of each request, and how often which status came."""
    seconds: list[float] = []
    statuses = Counter[int]()
    waiting = iter(bodies)
    limits = httpx.Limits(max_connections=clients)
    async with httpx.AsyncClient(base_url=url, timeout=320, trust_env=False, limits=limits) as client:

        async def work() -> None:
            for body in waiting:
                begun = time.perf_counter()
                answer = await client.post(path, json=body)
                seconds.append(time.perf_counter() - begun)
                statuses[answer.status_code] += 1

        await asyncio.gather(*(work() for _ in range(clients)))
    return seconds, statuses


async def attack(url: str, count: int, clients: int) -> Counter[int]:
    """Send malformed requests, so many at a time; how often which status came."""
    statuses = Counter[int]()
    waiting = iter(malformed_requests(count, seed=1))
    async with httpx.AsyncClient(base_url=url, timeout=320, trust_env=False) as client:

        async def work() -> None:
            for bad in waiting:
                headers = {"content-type": bad.content_type}
                answer = await client.request(bad.method, bad.path.lstrip("/"), content=bad.body, headers=headers)
                statuses[answer.status_code] += 1

        await asyncio.gather(*(work() for _ in range(clients)))
    return statuses


async def in_quarters(
    url: str, pid: int, path: str, bodies: list[dict[str, Any]], clients: int
) -> tuple[dict[str, Any], list[float]]:
    """Figures of a load, and the memory after each quarter of it."""
    seconds: list[float] = []
    statuses, memory, begun = Counter[int](), [], time.perf_counter()
    for quarter in range(4):
        times, came = await load(url, path, bodies[quarter::4], clients)
        seconds += times
        statuses += came
        memory.append(round(resident_mib(pid), 1))
    took = time.perf_counter() - begun
    low, high = np.percentile(seconds, [50, 99])
    told = {"statuses": _named(statuses), "per_second": len(seconds) / took, "p50_s": float(low), "p99_s": float(high)}
    return told, memory


def _named(statuses: Counter[int]) -> dict[str, int]:
    return {str(status): count for status, count in sorted(statuses.items())}


async def measure(url: str, pid: int, args: argparse.Namespace) -> dict[str, Any]:
    """All loads one after the other, with the memory before, between and after."""
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60) as client:
        chosen = await sequences(client, 250)
    settings = {"contexts": args.contexts}
    explain = [{"sequence": chosen[k % len(chosen)], "settings": settings} for k in range(args.explanations)]
    predict = [{"sequence": body["sequence"]} for body in explain]
    await load(url, "explain", explain[:100], args.clients)  # first answers load libraries and fill caches
    memory = {"warm": [round(resident_mib(pid), 1)]}
    figures: dict[str, Any] = {"clients": args.clients, "contexts": args.contexts, "cores": os.cpu_count()}
    figures["commit"] = commit()
    figures["load_before"] = os.getloadavg()[0]
    figures["explain"], memory["explain"] = await in_quarters(url, pid, "explain", explain, args.clients)
    figures["predict"], memory["predict"] = await in_quarters(url, pid, "predict", predict, args.clients)
    figures["malformed"] = _named(await attack(url, args.malformed, 8))
    memory["malformed"] = [round(resident_mib(pid), 1)]
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60) as client:
        figures["alive_afterwards"] = (await client.post("explain", json=explain[0])).status_code == 200
    return {**figures, "load_after": os.getloadavg()[0], "resident_mib": memory}


def as_markdown(figures: dict[str, Any]) -> str:
    """The figures as a page."""
    memory = figures["resident_mib"]
    rows = [
        f"| {name} | {sum(part['statuses'].values()):,} | {', '.join(part['statuses'])} | {part['per_second']:.1f} "
        f"| {part['p50_s']:.2f} | {part['p99_s']:.2f} | {memory[name][0]:.0f} to {memory[name][-1]:.0f} |"
        for name, part in ((name, figures[name]) for name in ("explain", "predict"))
    ]
    malformed = ", ".join(f"{count:,} × {status}" for status, count in figures["malformed"].items())
    return f"""# `oscar serve` under load

{figures["clients"]} clients at once, {figures["cores"]} cores, N = {figures["contexts"]} contexts; load average of the
machine {figures["load_before"]:.1f} before and {figures["load_after"]:.1f} after (other work slows it down).
`python scripts/bench_serve.py MODEL DATASET --out docs/results`.

| route | requests | statuses | per second | p50, s | p99, s | resident MiB, first to last quarter |
|---|---|---|---|---|---|---|
{chr(10).join(rows)}

Resident memory warm: {memory["warm"][0]:.0f} MiB; after all malformed requests: {memory["malformed"][0]:.0f} MiB.
Malformed requests by status: {malformed}. The service {"answered" if figures["alive_afterwards"] else "did not answer"}
afterwards.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--explanations", type=int, default=2000)
    parser.add_argument("--contexts", type=int, default=64)
    parser.add_argument("--malformed", type=int, default=10_000)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    with service(args.model, args.dataset) as (url, pid):
        figures = asyncio.run(measure(url, pid, args))
    text = json.dumps(figures, indent=2)
    print(text)
    if args.out is not None:
        (args.out / "serve.json").write_text(text + "\n")
        (args.out / "serve.md").write_text(as_markdown(figures))
    wrong = [status for status in figures["malformed"] if not status.startswith("4")]
    wrong += [status for name in ("explain", "predict") for status in figures[name]["statuses"] if status != "200"]
    if wrong or not figures["alive_afterwards"]:
        sys.exit(f"the service failed: answers with status {wrong}")


if __name__ == "__main__":
    main()
