"""The figures behind docs/baselines.md: correctness on known networks, speed, error rate, fleets of paper size.

    python scripts/bench_classical.py networks tables null fleet temporal --out docs/results

Each part writes docs/results/classical-PART.json and all of them are gathered in docs/results/classical.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from bayesian_networks import boundary_scores, load_network
from program import commit

from oscar_causal.data.sequences import read_dataset
from oscar_causal.data.synthetic import preset, write_fleet
from oscar_causal.discovery.classical.categorical import CategoricalTable
from oscar_causal.discovery.classical.ci_tests import CiConfig
from oscar_causal.discovery.classical.cmb import cmb
from oscar_causal.discovery.classical.iamb import iamb
from oscar_causal.discovery.classical.learning import learn_boundaries
from oscar_causal.discovery.classical.mb_by_mb import mb_by_mb
from oscar_causal.discovery.classical.methods import BaselineConfig, learn_label
from oscar_causal.discovery.classical.pcd_by_pcd import pcd_by_pcd
from oscar_causal.discovery.classical.sparse import SparseTable, sparse_table
from oscar_causal.discovery.classical.tester import CiTester

LOCAL = {"iamb": iamb, "cmb": cmb, "mb-by-mb": mb_by_mb, "pcd-by-pcd": pcd_by_pcd}
METHODS = ("iamb", "cmb", "mb-by-mb", "pcd-by-pcd", "mi-mcf")
Rows = list[dict[str, Any]]


def bench_networks(seed: int, workers: int) -> Rows:
    """Boundary F1 (mean over targets and ten samples) on published networks, and F1 of the parents alone."""
    rows: Rows = []
    for name in ("alarm", "child", "insurance"):
        network = load_network(name)
        graph = network.graph()
        for size in (1000, 5000):
            tables = [network.sample(size, np.random.default_rng([seed, size, k])) for k in range(10)]
            for method, learn in LOCAL.items():
                scores, parents, begun = [], [], time.process_time()
                for codes in tables:
                    table = CategoricalTable(codes, network.names)
                    for target in graph:
                        found = learn(CiTester(table, CiConfig(), deadline=time.monotonic() + 20), target)
                        scores.append(boundary_scores(set(found.members), network.boundary(target)))
                        named = {x for x, role in found.roles.items() if role == "parent"}
                        parents.append(boundary_scores(named, set(graph.predecessors(target)))[2])
                precision, recall, f1 = np.mean(scores, axis=0)
                rows.append(
                    {
                        "network": name,
                        "rows": size,
                        "method": method,
                        "precision": precision,
                        "recall": recall,
                        "f1": f1,
                        "parents_f1": float(np.mean(parents)) if method != "iamb" else None,
                        "cpu_ms_per_target": 1000 * (time.process_time() - begun) / len(scores),
                    }
                )
                print(rows[-1], flush=True)
    return rows


def rule_table(rng: np.random.Generator, *, noise: float) -> tuple[SparseTable, list[set[int]]]:
    """2,000 sequences, 100 events (frequency .1 to .5), 20 labels that are AND or OR of one to three events."""
    events = rng.random((2000, 100)) < rng.uniform(0.1, 0.5, 100)
    labels, truths = [], []
    for _ in range(20):
        causes = rng.choice(100, int(rng.integers(1, 4)), replace=False)
        chosen = events[:, causes]
        label = chosen.all(axis=1) if rng.random() < 0.5 else chosen.any(axis=1)
        labels.append(label ^ (rng.random(2000) < noise))
        truths.append({int(cause) for cause in causes})
    rows, columns = np.nonzero(np.column_stack([events, *labels]))
    return sparse_table(rows, columns, (2000, 120), [f"c{k}" for k in range(120)], 100), truths


def bench_tables(seed: int, workers: int) -> Rows:
    """Time and F1 per label on small presence tables, labels exact or 5 % flipped; ten tables each."""
    rows: Rows = []
    for noise in (0.0, 0.05):
        for method in METHODS:
            scores, begun = [], time.process_time()
            for k in range(10):
                table, truths = rule_table(np.random.default_rng([seed, k]), noise=noise)
                for label, truth in enumerate(truths):
                    found = learn_label(table, label, BaselineConfig(method))  # type: ignore[arg-type]
                    scores.append(boundary_scores({int(name[1:]) for name in found.events}, truth))
            precision, recall, f1 = np.mean(scores, axis=0)
            spent = 1000 * (time.process_time() - begun) / len(scores)
            rows.append(
                {
                    "noise": noise,
                    "method": method,
                    "precision": precision,
                    "recall": recall,
                    "f1": f1,
                    "cpu_ms_per_label": spent,
                }
            )
            print(rows[-1], flush=True)
    return rows


def bench_null(seed: int, workers: int) -> Rows:
    """Labels dealt to other sequences of a paper-size fleet: how many get a boundary although nothing causes them?"""
    rows: Rows = []
    with tempfile.TemporaryDirectory() as name:
        write_fleet(preset("hard", sequences=50_000), seed, f"{name}/fleet", workers=workers)
        data = read_dataset(f"{name}/fleet")
    order = np.random.default_rng(seed).permutation(len(data))
    dealt = replace(data, labels=data.labels.take(order))
    for alpha in (0.01, 0.05):
        for method in METHODS:
            config = BaselineConfig(method, CiConfig(alpha), labels_as_candidates=False)  # type: ignore[arg-type]
            found = learn_boundaries(dealt, config, workers=workers)
            wrong = sum(bool(item.members) for item in found)
            rows.append({"alpha": alpha, "method": method, "labels": len(found), "with_members": wrong})
            print(rows[-1], flush=True)
    return rows


def bench_fleet(seed: int, workers: int) -> Rows:
    """50,000 sequences, 29,100 events, 474 labels: every method, time, memory of all processes, scores."""
    with tempfile.TemporaryDirectory() as name:
        write_fleet(preset("hard", sequences=50_000), seed, f"{name}/fleet", workers=workers)
        return [run_verb(f"{name}/fleet", method, workers) for method in METHODS]


def bench_temporal(seed: int, workers: int) -> Rows:
    """The fleet with orders, windows and counts: what the features beyond presence are worth."""
    with tempfile.TemporaryDirectory() as name:
        info = write_fleet(preset("temporal", sequences=50_000), seed, f"{name}/fleet", workers=workers)
        oracle = {"method": "oracle: true events where present", **info["presence_oracle"]}
        kinds = (("presence",), ("order", "--window", "0"), ("order",), ("counts,order",))
        return [oracle] + [run_verb(f"{name}/fleet", "iamb", workers, "--features", *kind) for kind in kinds]


def run_verb(fleet: str, method: str, workers: int, *more: str) -> dict[str, Any]:
    """One `oscar baseline` in processes of its own, then `oscar score`."""
    out = f"{fleet}-results"
    command = [sys.executable, "-m", "oscar_causal", "baseline", method, fleet, "--out", out, "--workers", str(workers)]
    begun = time.monotonic()
    with tempfile.TemporaryFile("w+") as told:
        process = subprocess.Popen([*command, *more, "--json"], stdout=told, stderr=subprocess.DEVNULL)
        peak = 0.0
        while process.poll() is None:
            peak = max(peak, tree_gib(process.pid))
            time.sleep(0.3)
        spent = time.monotonic() - begun
        if process.returncode:
            raise SystemExit(f"{method} {more}: failed")
        told.seek(0)
        summary = json.load(told)
    told_scores = subprocess.run(
        [sys.executable, "-m", "oscar_causal", "score", out, "--json"], capture_output=True, check=True
    )
    why = json.loads(told_scores.stdout)["truth"]["why"]
    shutil.rmtree(out)
    row = {"method": " ".join((method, *more)), "seconds": spent, "peak_gib": peak, "tests": summary["tests"]}
    row |= {"incomplete_labels": summary["incomplete_labels"]}
    row |= {key: why["sample"][key] for key in ("precision", "recall")} | {"f1": why["sample"]["f1_of_means"]}
    row |= {"macro_f1": why["macro"]["f1"]}
    print(row, flush=True)
    return row


def tree_gib(pid: int) -> float:
    """Proportional set size of a process and its descendants."""
    total = 0
    try:
        parent = psutil.Process(pid)
        for process in (parent, *parent.children(recursive=True)):
            total += process.memory_full_info().pss
    except psutil.Error:
        return 0.0
    return total / 2**30


PARTS = {
    "networks": bench_networks,
    "tables": bench_tables,
    "null": bench_null,
    "fleet": bench_fleet,
    "temporal": bench_temporal,
}


def write_markdown(out: Path) -> None:
    """Gather every part's JSON into one page of tables."""
    lines = [
        "# Classical baselines: figures",
        "",
        "Made by `scripts/bench_classical.py`; explained in `docs/baselines.md`.",
        "",
    ]
    for part, bench in PARTS.items():
        path = out / f"classical-{part}.json"
        if not path.exists():
            continue
        told = json.loads(path.read_text())
        lines += [
            f"## {part}",
            "",
            str(bench.__doc__).strip(),
            "",
            f"{told['machine']}; seed {told['seed']}; commit {told.get('commit', 'not recorded')}.",
            "",
        ]
        names = list(dict.fromkeys(key for row in told["rows"] for key in row))
        lines += ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
        lines += ["| " + " | ".join(_cell(row.get(name)) for name in names) + " |" for row in told["rows"]]
        lines.append("")
    (out / "classical.md").write_text("\n".join(lines), encoding="utf-8")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.3f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def main() -> None:
    """Run the chosen parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="+", choices=[*PARTS])
    parser.add_argument("--out", type=Path, default=Path("docs/results"))
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for part in options.parts:
        rows = PARTS[part](options.seed, options.workers)
        machine = f"{options.workers} of {os.cpu_count()} cores, no GPU, Python {platform.python_version()}"
        told = {"machine": machine, "commit": commit(), "seed": options.seed, "rows": rows}
        (options.out / f"classical-{part}.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    write_markdown(options.out)


if __name__ == "__main__":
    main()
