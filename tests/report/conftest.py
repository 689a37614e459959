"""A small fleet with nasty names, a model trained for two steps, and results written by hand."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from oscar_causal.data.folders import write_json
from oscar_causal.data.sequences import read_dataset
from oscar_causal.data.writer import write_dataset
from oscar_causal.density.checkpoint import model_digest
from oscar_causal.density.fitting import train
from oscar_causal.density.settings import TrainConfig
from oscar_causal.discovery.boundary import Boundary, EventEvidence
from oscar_causal.discovery.results import ResultsWriter

LABELS = ("engine", "<b>brakes</b>", "\u202eright to left")


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def _records(nasty: tuple[str, ...]) -> list[dict[str, Any]]:
    rng = np.random.default_rng(5)
    records = []
    for index in range(40):
        length = 150 if index == 1 else int(rng.integers(8, 24))
        records.append(
            {
                "sequence_id": f"car {index}" if index else '</script><img src=x onerror="alert(1)">',
                "subject_id": f"subject {index // 2}",
                "events": [nasty[k] for k in rng.integers(0, len(nasty), length)],
                "times": np.cumsum(rng.integers(0, 4000, length)).astype(float).tolist(),
                "labels": [LABELS[k] for k in range(3) if (index + k) % 3],
                "static": [("variant", "<i>van</i>")],
            }
        )
    return records


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory, nasty: tuple[str, ...]) -> Path:
    """A folder with `fleet`, `model` and `results`."""
    place = tmp_path_factory.mktemp("report")
    schema = pa.schema(
        [
            ("sequence_id", pa.string()),
            ("subject_id", pa.string()),
            ("events", pa.list_(pa.string())),
            ("times", pa.list_(pa.float64())),
            ("labels", pa.list_(pa.string())),
            ("static", pa.map_(pa.string(), pa.string())),
        ]
    )
    write_dataset(place / "fleet", [pa.Table.from_pylist(_records(nasty), schema=schema)])
    write_json(place / "fleet" / "names.json", {nasty[10]: "<u>described</u>", "engine": "the engine & its <parts>"})
    write_json(place / "fleet" / "rules.json", {"engine": 'A & !"a,b"'})
    config = TrainConfig(steps=2, min_context=5, max_length=100, validation=0.3)
    train(read_dataset(place / "fleet"), place / "model", config)
    write_results(place / "results", boundaries(place / "fleet"), place)
    return place


def boundaries(fleet: Path) -> list[Boundary]:
    """Two labels for each of 30 sequences, with accepted, refused and unresolved events by turns."""
    data = read_dataset(fleet)
    rng = np.random.default_rng(7)
    found = []
    for row in range(30):
        events = data.events_of(row)
        kinds = list(dict.fromkeys(events))
        for label in LABELS[: 1 + row % 3]:
            evidence = tuple(_evidence(event, events, k, row, rng) for k, event in enumerate(kinds))
            found.append(
                Boundary(
                    sequence_id=data.sequence_ids[row].as_py(),
                    label=label,
                    observed=(True, False, None)[row % 3],
                    probability=float(rng.random()),
                    evidence=evidence,
                    trusted=row % 4 != 0,
                    seen_in_training=row % 5 == 0,
                    contexts=64,
                    flags=("2 unknown events",) if row % 6 == 0 else (),
                )
            )
    return found


def _evidence(event: str, events: list[str], k: int, row: int, rng: np.random.Generator) -> EventEvidence:
    positions = tuple(i for i, name in enumerate(events) if name == event)
    verdict = ("cause", "no effect", "inhibitor", "not resolvable")[k % 4] if row % 7 else "no effect"
    size = float(rng.uniform(0.1, 0.9))
    effect = -size if verdict == "inhibitor" else size
    accepted = verdict in ("cause", "inhibitor")
    bare = row % 2 == 0  # an estimator that defines no more
    return EventEvidence(
        event=event,
        positions=positions,
        verdict=verdict,  # type: ignore[arg-type]
        effect=effect,
        se=0.1,
        n_kept=40,
        n_replaced=24,
        p_value=0.001 if accepted else None,
        q_value=0.003 if accepted and not bare else None,
        indicator=effect if accepted else None,
        indicator_sd=0.2 if accepted and not bare else None,
        ci_low=effect - 0.1 if accepted and not bare else None,
        ci_high=effect + 0.1 if accepted and not bare else None,
        cmi_nats=0.4 if accepted else None,
        alone=0.5 * effect if accepted and not bare else None,
        borderline=accepted and k == 4,
        source="both" if accepted and k == 8 else "evidence",
        agreement=0.75 if accepted and not bare else None,
    )


def write_results(out: Path, found: list[Boundary], place: Path) -> None:
    """A results folder whose run names the fleet and the model of `place`."""
    run = {
        "estimator": "intervention",
        "estimand": "controlled direct effect",
        "config": {"intervention": {"alpha": 0.05, "contexts": 64}, "seed": 0},
        "seed": 0,
        "dataset": {
            "path": str(place / "fleet"),
            "digest": read_dataset(place / "fleet").info["digest"],
        },
        "model": {"path": str(place / "model"), "digest": model_digest(place / "model")},
        "versions": {"oscar": "0.1.0"},
        "fingerprint": "f" * 64,
    }
    writer = ResultsWriter(out, run)
    writer.write_shard(0, found)
    writer.finish()


@pytest.fixture(scope="session")
def found(place: Path) -> list[Boundary]:
    """What the results folder holds, as written."""
    return boundaries(place / "fleet")


@pytest.fixture
def moved(place: Path, tmp_path: Path) -> Path:
    """The results alone, with a run that names a fleet and a model which are not there."""
    shutil.copytree(place / "results", tmp_path / "results")
    path = tmp_path / "results" / "run.json"
    path.write_text(path.read_text().replace(str(place), str(tmp_path / "gone")))
    return tmp_path / "results"


@pytest.fixture(scope="session")
def write() -> Callable[..., None]:
    """Write a results folder."""
    return write_results
