"""`check`: who is judged by whom, figures against scikit-learn, and what may be stored."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score, f1_score

from oscar_causal.data.sequences import Dataset
from oscar_causal.data.solvable import SolvableProcess
from oscar_causal.density.checking import check
from oscar_causal.density.folds import load_models
from oscar_causal.density.interface import LabelDensity
from oscar_causal.density.model import sequence_contexts
from oscar_causal.density.quality import prefix_positions
from oscar_causal.errors import UsageError


def literal(folder: Path, fleet: Dataset, rows: np.ndarray, events: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Truth and probability of every label, one sequence at a time through the public protocol."""
    models = load_models(folder)
    encoded = models.models[0].encode(fleet)
    truth, probs = [], []
    for row in rows.tolist():
        length = int(fleet.lengths[row])
        if events is not None and length < events:
            continue
        judge: LabelDensity = models.for_sequence(fleet.subject_ids[row].as_py())
        at = torch.tensor([events or length])
        every = torch.arange(len(models.vocabulary.labels))
        probs.append(judge.label_probs(sequence_contexts(encoded, row), every, at)[0, 0].numpy())
        truth.append([name in fleet.labels_of(row) for name in models.vocabulary.labels])
    return np.array(truth), np.array(probs)


def agrees(found: dict[str, object], truth: np.ndarray, probs: np.ndarray) -> None:
    for average in ("micro", "macro", "weighted"):
        expected = f1_score(truth, probs > 0.5, average=average, zero_division=0)
        assert found[average]["f1"] == pytest.approx(expected, abs=1e-9)  # type: ignore[index]
    ranked = [average_precision_score(truth[:, j], probs[:, j]) for j in range(truth.shape[1])]
    assert found["mean_average_precision"] == pytest.approx(np.mean(ranked), abs=1e-6)


@pytest.mark.parametrize("kind", ["plain", "folds"])
def test_figures_are_scikit_learns_on_unseen_subjects(
    kind: str, model_folder: Path, folds_folder: Path, fleet: Dataset
) -> None:
    folder = model_folder if kind == "plain" else folds_folder
    fleet = fleet if kind == "plain" else fleet.take(np.arange(60))
    models = load_models(folder)
    rows = np.flatnonzero(fleet.labelled & ~models.seen_in_training(fleet.subject_ids))
    found = check(folder, fleet)
    assert found["unseen"] is True
    assert found["sequences"] == len(rows)
    assert len(rows) == (int(fleet.labelled.sum()) if kind == "folds" else len(rows)) > 5
    agrees(found["labels"], *literal(folder, fleet, rows, None))
    assert found["by_prefix"]
    for index, row in enumerate(found["by_prefix"]):
        truth, probs = literal(folder, fleet, rows, row["events"])
        assert row["sequences"] == len(truth)
        agrees(row, truth, probs)
        expected = f1_score(truth[:, 0], probs[:, 0] > 0.5, zero_division=0)
        assert found["per_label"]["common"]["f1_by_prefix"][index] == pytest.approx(expected)
    json.dumps(found, allow_nan=False)


def test_new_subjects_are_judged_by_all_folds(
    folds_folder: Path, process: SolvableProcess, draw: Callable[..., Dataset]
) -> None:
    fresh = draw(process, 40, seed=9, first=10**6)
    found = check(folds_folder, fresh, with_assumptions=False)
    assert "by all folds" in found["evaluated_on"]
    rows = np.flatnonzero(fresh.labelled)
    agrees(found["labels"], *literal(folds_folder, fresh, rows, None))


def test_seen_subjects_are_flagged_and_never_stored(model_folder: Path, fleet: Dataset, tmp_path: Path) -> None:
    shutil.copytree(model_folder, tmp_path / "model")
    before = (tmp_path / "model" / "quality.json").read_bytes()
    seen = fleet.take(np.flatnonzero(load_models(model_folder).seen_in_training(fleet.subject_ids)))
    found = check(tmp_path / "model", seen)
    assert found["unseen"] is False
    assert "every subject was seen in training" in found["evaluated_on"]
    with pytest.raises(UsageError, match="--update"):
        check(tmp_path / "model", seen, update=True)
    assert (tmp_path / "model" / "quality.json").read_bytes() == before


@pytest.mark.parametrize("kind", ["plain", "folds"])
def test_update_rewrites_quality_and_keeps_the_calibration(
    kind: str,
    model_folder: Path,
    folds_folder: Path,
    process: SolvableProcess,
    draw: Callable[..., Dataset],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    shutil.copytree(model_folder if kind == "plain" else folds_folder, tmp_path / "model")
    parts = [tmp_path / "model"] if kind == "plain" else [tmp_path / "model" / f"fold-{k}" for k in range(3)]
    before = [json.loads((part / "quality.json").read_text()) for part in parts]
    fresh = draw(process, 60, seed=9, first=10**6)
    found = check(tmp_path / "model", fresh, update=True)
    assert found["updated"] == [str(part / "quality.json") for part in parts]
    for part, old in zip(parts, before, strict=True):
        new = json.loads((part / "quality.json").read_text())
        assert new["sequences"] == int(fresh.labelled.sum())
        assert new["calibration"] == old["calibration"]
        assert new["labels"] != old["labels"]
    if kind == "plain":
        assert {k: v["f1"] for k, v in new["per_label"].items()} == {k: v["f1"] for k, v in found["per_label"].items()}
    assert sorted(path.name for path in parts[0].iterdir()) == sorted(path.name for path in model_folder.iterdir())
    with caplog.at_level(logging.INFO, logger="oscar_causal.data.checksums"):
        load_models(tmp_path / "model")
    assert not caplog.records  # the hash of what was rewritten is renewed


def test_nothing_labelled(model_folder: Path, fleet: Dataset) -> None:
    with pytest.raises(UsageError, match="labels"):
        check(model_folder, fleet.take(np.flatnonzero(~fleet.labelled)))


def test_prefix_lengths(model_folder: Path, fleet: Dataset) -> None:
    encoded = load_models(model_folder).models[0].encode(fleet)
    prefixes, positions = prefix_positions(encoded, np.arange(10), 2)
    assert prefixes[0] == 2
    assert prefixes[-1] == 6
    assert list(prefixes) == sorted(set(prefixes))
    assert positions.shape == (10, len(prefixes))
    assert prefix_positions(encoded, np.arange(10), 6)[0] == ()  # no proper prefix is long enough
    assert prefix_positions(encoded, np.arange(0), 2)[0] == ()
