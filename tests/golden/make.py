"""Writes the golden folders of the formats as they are now: `python tests/golden/make.py FOLDER`.

Folders that are kept are never made anew: they show that what was written once can still be read. When a format gets a
new version, run this into an empty folder and keep only what has the new number.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa

from oscar_causal.data.folders import read_json, write_json
from oscar_causal.data.sequences import read_dataset
from oscar_causal.data.writer import dataset_writer
from oscar_causal.density import settings
from oscar_causal.density.fitting import train
from oscar_causal.discovery.intervention import InterventionConfig
from oscar_causal.discovery.local import discover_folder
from oscar_causal.discovery.oneshot import DiscoveryConfig
from oscar_causal.graph.assembling import AssemblyConfig, assemble, open_source
from oscar_causal.graph.population_folder import write_population

RULES = {"steering degraded": "C0051 & U0126", "café ☕ closed": {"rule": "P0A1F", "from": None, "to": None}}
NOISE = ("B1000", "U0428", "naïve, quoted", "P0171", "P0300", "C1234")
SMALLEST = {"width": 16, "heads": 2, "layers": 1, "label_layers": 1, "hidden": 24}


def main(place: Path) -> None:
    """Write every folder."""
    settings.SIZES["tiny"] = SMALLEST  # a golden model is a few kilobytes
    place.mkdir(parents=True)
    write_fleet(place / "dataset-1")
    data = read_dataset(place / "dataset-1")
    quick = settings.TrainConfig(steps=400, batch_tokens=1024, min_context=2, evaluations=2, validation=0.25)
    train(data, place / "model-1", quick)
    settings.SIZES["tiny"] = {**SMALLEST, "width": 8}
    short = settings.TrainConfig(steps=20, batch_tokens=512, min_context=2, evaluations=1)
    train(data, place / "folds-1", short, folds=2)
    config = DiscoveryConfig(intervention=InterventionConfig(contexts=48))
    discover_folder(place / "model-1", place / "dataset-1", place / "results-1", config, indices=np.arange(24))
    source = open_source(place / "results-1")
    write_population(place / "population-2", assemble([source], AssemblyConfig(looks_per_label=4)))
    for file in place.rglob("*.json"):
        without_place(file, place.resolve())


def write_fleet(out: Path) -> None:
    """160 sequences of 80 cars with everything a dataset folder may hold."""
    rng = np.random.default_rng(20260101)
    rows, why = zip(*(one_sequence(k, rng) for k in range(160)), strict=True)
    with dataset_writer(out) as writer:
        writer.write(pa.Table.from_pylist(list(rows), schema=row_schema()))
        writer.write_why(pa.Table.from_pylist([row for part in why for row in part]))
        writer.write_names({"C0051": "steering angle sensor", "steering degraded": "less help while steering"})
        write_json(writer.folder / "rules.json", RULES)
        writer.describe(source="golden")


def one_sequence(k: int, rng: np.random.Generator) -> tuple[dict[str, object], list[dict[str, object]]]:
    """One row of `sequences`, and its rows of `why`."""
    events = [NOISE[i] for i in rng.integers(0, len(NOISE), rng.integers(4, 9))]
    for event in ("C0051", "U0126", "P0A1F"):
        if rng.random() < 0.5:
            events.insert(int(rng.integers(0, len(events) + 1)), event)
    because = {
        "café ☕ closed": ["P0A1F"] if "P0A1F" in events else [],
        "steering degraded": ["C0051", "U0126"] if {"C0051", "U0126"} <= set(events) else [],
    }
    labels = [label for label, causes in because.items() if causes]
    times = np.cumsum(rng.integers(0, 3, len(events)) * 30.5).tolist()
    row = {
        "sequence_id": f"drive {k:03d}",
        "subject_id": f"car {k // 2:02d}",
        "start": None if k % 5 == 0 else datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=6 * k),
        "events": events,
        "times": times,
        "mileage": [None if rng.random() < 0.1 else 10.0 * k + i for i in range(len(events))],
        "static": None if k % 7 == 0 else [("variant", "estate" if k % 2 else "saloon")],
        "labels": None if k % 40 == 39 else labels,
        "label_times": None if k % 40 == 39 else [times[-1]] * len(labels),
    }
    why = [
        {
            "sequence_id": row["sequence_id"],
            "label": label,
            "event": event,
            "positions": [i for i, name in enumerate(events) if name == event],
            "role": "cause",
            "necessary": True,
        }
        for label in (labels if k % 40 != 39 else [])
        for event in because[label]
    ]
    return row, why


def row_schema() -> pa.Schema:
    """All columns of the format, optional ones included."""
    from oscar_causal.data.schema import sequences_schema

    return sequences_schema(["mileage"], static=True, label_times=True)


def without_place(file: Path, place: Path) -> None:
    """Names of folders instead of paths, and no host: a golden folder says nothing about the machine it came from."""
    text = json.dumps(read_json(file)).replace(f"{place}/", "")
    value = json.loads(text)
    for name in ("host", "seconds"):
        if name in value:
            value[name] = "golden" if name == "host" else 0.0
    write_json(file, value)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
