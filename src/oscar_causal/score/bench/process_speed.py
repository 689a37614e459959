"""`oscar discover --workers W` on one device, timed as users run it: folders in, a results folder out."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from oscar_causal.data.folders import write_json
from oscar_causal.data.writer import write_dataset
from oscar_causal.density.checkpoint import FORMAT_VERSION, save_model
from oscar_causal.discovery.local import discover_folder
from oscar_causal.discovery.oneshot import DiscoveryConfig
from oscar_causal.score.bench.workload import Workload, multiplied_weights, random_table

Figures = dict[str, Any]
MIDDLE = (0.25, 0.75)
"""Shares of the work between which the pace is taken: every worker has begun, none is without work."""


def time_processes(work: Workload, device: str, *, workers: int, config: DiscoveryConfig) -> Figures:
    """All of the work's sequences; `sequences_per_s` from start to end, `pace` in the middle of the run.

    Start and end count: processes that begin, load, compile and record their launches, a last shard that others have
    nothing to do beside. `pace` is what remains of a long run.
    """
    with TemporaryDirectory() as folder:
        place = Path(folder)
        _write_folders(work, place)
        seen: list[tuple[float, int]] = [(time.perf_counter(), 0)]
        discover_folder(
            place / "model",
            place / "fleet",
            place / "results",
            config,
            workers=workers,
            device=device,
            precision="bf16" if device.startswith("cuda") else None,
            on_progress=lambda done, _: seen.append((time.perf_counter(), done)),
        )
        seconds = time.perf_counter() - seen[0][0]
        tokens = _tokens(work, place / "results")
    weights = multiplied_weights(work.model.network.config, last_block_at_one=True)
    return {
        "sequences_per_s": len(work.data) / seconds,
        "pace": pace(seen),
        "first_shard_seconds": seen[1][0] - seen[0][0],
        "tflops": 2.0 * weights * tokens / seconds / 1e12,
        "peak_gib": None,
        "sequences": len(work.data),
        "seconds": seconds,
        "workers": workers,
    }


def pace(seen: list[tuple[float, int]]) -> float | None:
    """Sequences/s in the middle of a run, from (time, sequences done so far); None where it was too short to tell.

    >>> pace([(0.0, 0), (50.0, 100), (60.0, 200), (70.0, 300), (80.0, 400), (110.0, 410)])
    10.0
    """
    times, done = np.array(seen).T
    begin, end = (int(np.searchsorted(done, share * done[-1])) for share in MIDDLE)
    if end <= begin or times[end] <= times[begin]:
        return None
    return float((done[end] - done[begin]) / (times[end] - times[begin]))


def _write_folders(work: Workload, place: Path) -> None:
    """The model, of which nothing is known but that it was trained on nobody, and its sequences."""
    model = place / "model"
    model.mkdir()
    save_model(work.model, model)
    write_json(model / "quality.json", {"kind": "quality", "format_version": FORMAT_VERSION, "per_label": {}})
    write_json(model / "training.json", {"kind": "training", "format_version": FORMAT_VERSION, "subjects": ""})
    names = work.model.vocabulary
    write_dataset(place / "fleet", [random_table(work.sizes, names.events, names.labels)])


def _tokens(work: Workload, results: Path) -> float:
    """Tokens of all contexts that the run asked about."""
    lengths = dict(zip(work.data.sequence_ids.to_pylist(), work.data.lengths.tolist(), strict=True))
    spent: dict[str, int] = {}
    for path in (results / "verdicts").glob("part-*.parquet"):
        table = pq.read_table(path, columns=["sequence_id", "contexts"])
        spent.update(zip(table["sequence_id"].to_pylist(), table["contexts"].to_pylist(), strict=True))
    return float(sum(contexts * (lengths[name] + 1) for name, contexts in spent.items()))
