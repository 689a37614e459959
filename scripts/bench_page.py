"""How large and how quick is the page of `oscar report`? 1,000 sequences of 150 events, in Debian's Chromium.

    python scripts/bench_page.py --out docs/results

Writes page.json and page.md. First paint is the browser's own first-contentful-paint; ready means that timeline,
curves, graph and table of a sequence are in the page. The median over several loads, each in a fresh context.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from program import commit

from oscar_causal.data.folders import write_json, write_text
from oscar_causal.data.sequences import read_dataset
from oscar_causal.data.writer import write_dataset
from oscar_causal.density.checkpoint import model_digest
from oscar_causal.density.fitting import train
from oscar_causal.density.settings import TrainConfig
from oscar_causal.discovery.boundary import Boundary, EventEvidence
from oscar_causal.discovery.results import ResultsWriter
from oscar_causal.report.page import write_page
from oscar_causal.report.page_data import ReportConfig, page_data
from oscar_causal.report.sources import open_sources

READY = (".timeline .dot", ".forecast", ".graph .edge", ".explanation tbody tr")
"""What must be there before a sequence counts as drawn."""
WATCH = """const look = () => %s.every((part) => document.querySelector(part))
  ? (window.readyAt = performance.now()) : requestAnimationFrame(look); look();"""
"""Looks at every frame, inside the page."""


def main() -> None:
    """Make the pages, load them, write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sequences", type=int, default=1000)
    parser.add_argument("--events", type=int, default=150)
    parser.add_argument("--loads", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        make_results(place, asked.sequences, asked.events)
        begun = time.perf_counter()
        figures: dict[str, Any] = {
            "sequences": asked.sequences,
            "events": asked.events,
            "machine": f"{platform.machine()}, {os.cpu_count()} cores",
            "commit": commit(),
        }
        sources = open_sources(place / "results")
        figures["bytes"] = write_page(page_data(sources), place / "all.html")
        figures["make_s"] = time.perf_counter() - begun
        one = ReportConfig(sequences=("car 0",))
        figures["bytes_one"] = write_page(page_data(sources, one), place / "one.html")
        figures |= {"all": load(place / "all.html", asked.loads), "one": load(place / "one.html", asked.loads)}
    write_json(asked.out / "page.json", figures)
    write_text(asked.out / "page.md", table(figures))
    print(json.dumps(figures, indent=2))


def make_results(place: Path, sequences: int, events: int) -> None:
    """A random fleet, a model trained for one step (only its speed and shapes matter), and random results."""
    rng = np.random.default_rng(0)
    names = [f"{'BCPU'[k % 4]}{k:04X}" for k in range(2000)]
    labels = [f"failure of part {k:03}" for k in range(40)]
    drawn = rng.zipf(1.3, (sequences, events)) % len(names)
    carried = [sorted(rng.choice(labels, int(rng.integers(1, 4)), replace=False).tolist()) for _ in range(sequences)]
    rows = [
        {
            "sequence_id": f"car {i}",
            "events": [names[k] for k in drawn[i]],
            "times": np.cumsum(rng.integers(0, 90_000, events)).astype(float).tolist(),
            "labels": carried[i],
        }
        for i in range(sequences)
    ]
    write_dataset(place / "fleet", [pa.Table.from_pylist(rows)])
    train(read_dataset(place / "fleet"), place / "model", TrainConfig(steps=1))
    run = {
        "estimator": "intervention",
        "estimand": "controlled direct effect",
        "dataset": {"path": str(place / "fleet"), "digest": read_dataset(place / "fleet").info["digest"]},
        "model": {"path": str(place / "model"), "digest": model_digest(place / "model")},
        "fingerprint": "random",
    }
    writer = ResultsWriter(place / "results", run)
    writer.write_shard(0, [random_boundary(row, label, rng) for row in rows for label in row["labels"]])
    writer.finish()


def random_boundary(row: dict[str, Any], label: str, rng: np.random.Generator) -> Boundary:
    """Five accepted events, the others refused."""
    kinds = list(dict.fromkeys(row["events"]))
    chosen = set(rng.choice(len(kinds), 5, replace=False).tolist())
    evidence = []
    for k, event in enumerate(kinds):
        value = float(rng.normal(0, 0.3))
        accepted = k in chosen
        verdict = ("cause" if value > 0 else "inhibitor") if accepted else "no effect"
        positions = tuple(i for i, name in enumerate(row["events"]) if name == event)
        more = {"indicator": value, "indicator_sd": 0.2, "ci_low": value - 0.1, "ci_high": value + 0.1, "cmi_nats": 0.3,
                "q_value": 0.01, "alone": value} if accepted else {}  # fmt: skip
        evidence.append(EventEvidence(event, positions, verdict, value, 0.1, 40, 24, 0.01, **more))  # type: ignore[arg-type]
    return Boundary(row["sequence_id"], label, True, 0.9, tuple(evidence), True, False, 64)


def load(file: Path, loads: int) -> dict[str, float]:
    """Milliseconds to first paint, to the first sequence, and from a click to the next; medians."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("bench_page: expected chromium on the path, found none")
    found: dict[str, list[float]] = {"first_paint_ms": [], "ready_ms": [], "search_ms": [], "heap_mb": []}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for _ in range(loads):
            page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
            page.add_init_script(WATCH % json.dumps(READY))
            page.goto(file.as_uri())
            page.wait_for_selector(READY[0])
            page.wait_for_timeout(1000)  # frames and paints are reported a little later
            found["ready_ms"].append(page.evaluate("window.readyAt"))
            paint = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
            found["first_paint_ms"].append(page.evaluate(paint))
            search = (
                "(() => { const box = document.querySelector('#search'); const begun = performance.now(); box.value = \
'part 007'; box.dispatchEvent(new Event('input')); return performance.now() - begun; })()"
            )
            found["search_ms"].append(page.evaluate(search))
            found["heap_mb"].append(page.evaluate("performance.memory.usedJSHeapSize / 1e6"))
            page.context.close()
        browser.close()
    return {name: statistics.median(values) for name, values in found.items()}


def table(figures: dict[str, Any]) -> str:
    """The figures as Markdown."""
    rows = [
        "# The page of `oscar report` in Chromium",
        "",
        f"{figures['sequences']:,} sequences of {figures['events']} events, all tested events included; machine shared",
        "with other work, so times are upper bounds. `python scripts/bench_page.py --out docs/results`.",
        "",
        "| page | MB | first paint, s | first sequence drawn, s | search, ms | heap, MB |",
        "|---|---|---|---|---|---|",
    ]
    for title, key, size in (("all sequences", "all", "bytes"), ("one sequence", "one", "bytes_one")):
        part = figures[key]
        paint, ready = part["first_paint_ms"] / 1e3, part["ready_ms"] / 1e3
        rest = f"{part['search_ms']:.0f} | {part['heap_mb']:.0f}"
        rows.append(f"| {title} | {figures[size] / 1e6:.2f} | {paint:.2f} | {ready:.2f} | {rest} |")
    rows += [
        "",
        f"Making the page of all sequences took {figures['make_s']:.0f} s, probabilities along them included.",
        "",
    ]
    return "\n".join(rows)


if __name__ == "__main__":
    main()
