"""Fuzzed readers of what a fleet as a whole has said: populations, classical boundaries, and a dataset's reasons."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pyarrow as pa
from fuzz_target import Target, inside

PAIRS = [(f"car {k}", label) for k in range(9) for label in ("fault", "é")]


def fleet_targets(folder: Path, world: Path) -> list[Target]:
    """The readers; they work in `folder` with the dataset, model and results of `world`."""
    _make_reasons(world / "told")
    _make_population(world)
    population = world / "population"
    return [
        inside(folder, world / "told", "checksums.json", "json", 1, _read_why),
        inside(folder, world / "told", "why/part-00000.parquet", "parquet", 2, _read_why),
        inside(folder, world / "classical", "boundaries.jsonl", "json", 2, _use_classical, _read_classical),
        inside(folder, population, "population.json", "json", 2, _merge, _read_info),
        inside(folder, population, "prior.json", "json", 2, _read_prior),
        inside(folder, population, "prior.parquet", "parquet", 2, _read_prior),
        inside(folder, population, "readings.json", "json", 1, _read_prior),
        inside(folder, population, "boundaries.parquet", "parquet", 1, _read_graph),
        *[
            inside(
                folder, population, f"statistics/{name}.parquet", "parquet", 1, _merge, partial(_read_sums, name=name)
            )
            for name in ("pairs", "cells", "labels", "patterns")
        ],
    ]


NAMES = (
    "told/checksums.json", "told/why/part-00000.parquet", "classical/boundaries.jsonl", "population/population.json",
    "population/prior.json", "population/prior.parquet", "population/readings.json",
    "population/boundaries.parquet", "population/statistics/pairs.parquet", "population/statistics/cells.parquet",
    "population/statistics/labels.parquet", "population/statistics/patterns.parquet",
)  # fmt: skip


def _make_reasons(folder: Path) -> None:
    from oscar_causal.data.writer import dataset_writer

    rows = [
        {"sequence_id": f"car {k}", "events": ["A", "B"], "times": [0.0, 1.0], "labels": ["fault"]} for k in range(9)
    ]
    why = [
        {
            "sequence_id": f"car {k}",
            "label": "fault",
            "event": "A",
            "positions": [0],
            "role": "cause",
            "necessary": True,
        }
        for k in range(9)
    ]
    with dataset_writer(folder) as writer:
        writer.write(pa.Table.from_pylist(rows))
        writer.write_why(pa.Table.from_pylist(why))


def _make_population(world: Path) -> None:
    from oscar_causal.discovery.classical.boundaries import GlobalBoundary, Member
    from oscar_causal.discovery.classical.folder import baseline_folder
    from oscar_causal.discovery.fleet_prior import Classical
    from oscar_causal.discovery.intervention import InterventionConfig
    from oscar_causal.graph.assembling import AssemblyConfig, assemble, open_source
    from oscar_causal.graph.population_folder import write_population

    baseline_folder(world / "fleet", world / "classical")
    members = (Member("A then B", 3.0, 0.01, 0.2, None, "parent"), Member("B >= 2", 2.0, 0.02, -0.1, 0.1, None))
    line = GlobalBoundary("fault", members, 9, 6, 4, complete=True, seconds=0.1).to_json()
    (world / "classical" / "boundaries.jsonl").write_text(json.dumps(line) + "\n")
    known = Classical("iamb", {"fault": ("A then B", "A >= 2")}, {"fault": 6}, None, {"fault": ('"C x"',)})
    config = AssemblyConfig(looks_per_label=1, intervention=InterventionConfig(contexts=40))
    write_population(world / "population", assemble([open_source(world / "results")], config, classical=known))


def _read_why(folder: Path) -> None:
    from oscar_causal.data.sequences import read_dataset
    from oscar_causal.score.matching import why_roles

    str(why_roles(read_dataset(folder), PAIRS)).encode()


def _read_classical(folder: Path) -> None:
    from oscar_causal.discovery.classical.folder import read_boundaries

    log = folder / "boundaries.jsonl"
    log.write_bytes(log.read_bytes().rstrip(b"\n") + b"\n")
    str([item.events for item in read_boundaries(log)]).encode()


def _use_classical(folder: Path) -> None:
    from oscar_causal.graph.assembling import read_classical

    _read_classical(folder)
    str(read_classical(folder).members).encode()


def _read_info(folder: Path) -> None:
    from oscar_causal.graph.population_folder import read_info

    json.dumps(read_info(folder), ensure_ascii=False).encode()


def _read_prior(folder: Path) -> None:
    from oscar_causal.data.rules import EventIndex
    from oscar_causal.discovery.prior_files import read_prior

    prior = read_prior(folder)
    index = EventIndex([0, 2], [0, 1], [0.0, 1.0], {"A": 0, "B": 1})
    for label in ("fault", "é"):
        read = prior.read(label, index, 0)
        (
            float(prior.prior_here(label, "A", 0, read)),
            prior.candidates(label, ["A", "B"], 1, None),
            prior.sequences(label, "A"),
        )
        prior.ratios(label, ["A"], [0], 0), prior.classical_saw("owner 1"), prior.rule_saw(label, "owner 1")


def _read_sums(folder: Path, name: str) -> None:
    from oscar_causal.graph.statistics import _table

    _table(folder, name)


def _read_graph(folder: Path) -> None:
    from oscar_causal.graph.boundary_graph import read_population

    read_population(folder)


def _merge(folder: Path) -> None:
    from oscar_causal.graph.assembling import assemble

    assemble([], populations=[folder])
