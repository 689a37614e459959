"""Which dataset and model a report may use, and what it says about the others."""

from __future__ import annotations

import json
import shutil
import tracemalloc
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from oscar_causal.data.sequences import read_dataset
from oscar_causal.data.writer import write_dataset
from oscar_causal.discovery.boundary import Boundary, EventEvidence
from oscar_causal.discovery.results import ResultsWriter
from oscar_causal.errors import FolderError, UsageError
from oscar_causal.report.page import write_page
from oscar_causal.report.page_data import ReportConfig, page_data
from oscar_causal.report.sources import open_sources, plan_report, read_qualities


def test_the_run_names_them(place: Path) -> None:
    sources = open_sources(place / "results")
    assert sources.missing == ()
    assert sources.dataset is not None
    assert sources.model == place / "model"
    assert sources.rules == {"engine": 'A & !"a,b"'}


def test_moved_folders_are_named_by_the_user(moved: Path, place: Path) -> None:
    assert len(open_sources(moved).missing) == 2
    assert open_sources(moved, dataset=place / "fleet", model=place / "model").missing == ()


def test_another_dataset_is_refused_when_named_and_left_out_when_found(
    place: Path, moved: Path, tmp_path: Path
) -> None:
    other = tmp_path / "gone" / "fleet"
    shutil.copytree(place / "fleet", other)
    (other / "checksums.json").unlink()
    info = json.loads((other / "dataset.json").read_text())
    (other / "dataset.json").write_text(json.dumps({**info, "digest": "0" * 64}))
    with pytest.raises(UsageError, match="got another"):
        open_sources(moved, dataset=other)
    sources = open_sources(moved)
    assert sources.dataset is None
    assert "has changed since the run" in sources.missing[0]


def test_a_damaged_dataset_is_not_left_out(place: Path, moved: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "fleet", tmp_path / "gone" / "fleet")
    (tmp_path / "gone" / "fleet" / "sequences" / "part-00000.parquet").write_bytes(b"PAR1")
    with pytest.raises(FolderError, match="changed since it was written"):
        open_sources(moved)


def test_a_model_that_changed_is_used_and_told(place: Path, moved: Path, tmp_path: Path) -> None:
    model = tmp_path / "gone" / "model"
    shutil.copytree(place / "model", model)
    quality = json.loads((model / "quality.json").read_text())
    (model / "quality.json").write_text(json.dumps({**quality, "evaluated_on": "other sequences"}))
    sources = open_sources(moved)
    assert sources.model == model
    assert any("as it is now" in line for line in sources.missing)
    assert sources.qualities[0]["evaluated_on"] == "other sequences"


def test_a_model_that_is_not_there(moved: Path, tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="found nothing"):
        open_sources(moved, model=tmp_path / "nothing")


def test_a_method_without_a_model(moved: Path) -> None:
    run = json.loads((moved / "run.json").read_text())
    del run["model"]
    (moved / "run.json").write_text(json.dumps(run))
    assert any("uses no model" in line for line in open_sources(moved).missing)


def test_qualities_of_folds(place: Path, tmp_path: Path) -> None:
    for k in range(2):
        shutil.copytree(place / "model", tmp_path / f"fold-{k}")
    (tmp_path / "folds.json").write_text(json.dumps({"kind": "folds", "format_version": 1, "folds": 2, "seed": 0}))
    assert len(read_qualities(tmp_path)) == 2


def test_the_memory_of_a_page_is_about_what_is_estimated(tmp_path: Path) -> None:
    """Against the Python objects that are alive together: 1,200 sequences, two labels each, ten events tested."""
    names = [f"car {k}" for k in range(1200)]
    rows = [
        {"sequence_id": n, "events": [f"e{k}" for k in range(20)], "times": [0.5 * k for k in range(20)]} for n in names
    ]
    write_dataset(tmp_path / "fleet", [pa.Table.from_pylist(rows)])
    kinds: list[Any] = ["cause", "cause", "cause", "inhibitor", *["no effect"] * 6]
    tested = tuple(EventEvidence(f"e{k}", (k,), kind, 0.3, se=0.1, indicator=0.3) for k, kind in enumerate(kinds))
    digest = read_dataset(tmp_path / "fleet").info["digest"]
    run = {"estimator": "mine", "dataset": {"path": str(tmp_path / "fleet"), "digest": digest}, "fingerprint": "x"}
    writer = ResultsWriter(tmp_path / "results", run)
    writer.write_shard(0, [Boundary(name, label, True, 0.5, tested) for name in names for label in ("x", "y")])
    writer.finish()
    plan = plan_report(tmp_path / "results", 600)
    assert plan.parts["dataset"] > 1200 * 20 * 12
    tracemalloc.start()
    sources = open_sources(tmp_path / "results")
    write_page(page_data(sources, ReportConfig(limit=600)), tmp_path / "page.html")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.7 < plan.total / peak < 2.5
