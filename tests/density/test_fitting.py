"""`train`: folders that appear whole or not at all, one run at a time, and a card that tells the truth."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oscar_causal.data.folders import exclusive
from oscar_causal.data.sequences import Dataset, from_records, from_table, read_dataset
from oscar_causal.density import partial
from oscar_causal.density.fitting import train
from oscar_causal.density.folds import load_models
from oscar_causal.density.partial import unfinished
from oscar_causal.density.settings import TrainConfig
from oscar_causal.errors import OscarError, UsageError


def test_an_error_leaves_nothing(fleet: Dataset, tiny: TrainConfig, tmp_path: Path) -> None:
    def burst(*_: Any) -> None:
        raise RuntimeError("burst")

    with pytest.raises(RuntimeError, match="burst"):
        train(fleet, tmp_path / "model", tiny, on_step=burst)
    assert list(tmp_path.iterdir()) == []


def test_what_can_be_gone_on_from_stays(fleet: Dataset, tiny: TrainConfig, tmp_path: Path) -> None:
    def burst(step: int, *_: Any) -> None:
        if step == 3:
            raise RuntimeError("burst")

    config = replace(tiny, checkpoint_seconds=0.0)
    with pytest.raises(RuntimeError, match="burst"):
        train(fleet, tmp_path / "model", config, on_step=burst)
    assert unfinished(tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("folds", [None, 2])
def test_killed_before_the_folder_has_its_name(
    fleet: Dataset, tiny: TrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folds: int | None
) -> None:
    """All is trained and written; the same call with resume only gives it its name."""
    steps: list[int] = []

    def stopped(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    config = replace(tiny, checkpoint_seconds=0.0)
    with monkeypatch.context() as patched:
        patched.setattr(partial, "move_into_place", stopped)
        with pytest.raises(KeyboardInterrupt):
            train(fleet, tmp_path / "model", config, folds=folds)
    assert unfinished(tmp_path / "model")
    with pytest.raises(UsageError, match="--resume to go on or --force to replace"):
        train(fleet, tmp_path / "model", config, folds=folds)
    with pytest.raises(UsageError, match="another setting of seed"):
        train(fleet, tmp_path / "model", replace(config, seed=9), folds=folds, resume=True)
    train(fleet, tmp_path / "model", config, folds=folds, resume=True, on_step=lambda step, *_: steps.append(step))
    assert steps == []
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    names = {path.name for path in (tmp_path / "model").rglob("*")}
    assert not [name for name in names if name.startswith("checkpoint") or name in ("lock", "plan.json")]
    assert load_models(tmp_path / "model").vocabulary.labels


@pytest.mark.parametrize("known", ["checksums", "digest", "nothing"])
def test_a_run_does_not_go_on_when_rows_have_changed_places(
    fleet_folder: Path, tiny: TrainConfig, tmp_path: Path, known: str
) -> None:
    def burst(*_: Any) -> None:
        raise RuntimeError("burst")

    folder, config = tmp_path / "fleet", replace(tiny, checkpoint_seconds=0.0)
    shutil.copytree(fleet_folder, folder)
    if known != "checksums":
        (folder / "checksums.json").unlink()
    if known == "nothing":
        info = json.loads((folder / "dataset.json").read_text())
        (folder / "dataset.json").write_text(json.dumps({key: info[key] for key in info if key != "digest"}))
    with pytest.raises(RuntimeError, match="burst"):
        train(read_dataset(folder), tmp_path / "model", config, on_step=lambda step, *_: burst() if step == 3 else None)
    (part,) = (folder / "sequences").iterdir()
    table = pq.read_table(part)
    part.unlink()
    pq.write_table(table.take(list(range(len(table)))[::-1]), part)
    words = {"checksums": "changed since it was written", "digest": "expected sequences with the digest"}
    with pytest.raises(OscarError, match=words.get(known, "--resume: the unfinished run was on another dataset")):
        train(read_dataset(folder), tmp_path / "model", config, resume=True)
    assert unfinished(tmp_path / "model")


def test_force_replaces_an_unfinished_run(fleet: Dataset, tiny: TrainConfig, tmp_path: Path) -> None:
    steps: list[int] = []

    def burst(step: int, *_: Any) -> None:
        if step == 3:
            raise RuntimeError("burst")

    with pytest.raises(RuntimeError, match="burst"):
        train(fleet, tmp_path / "model", replace(tiny, checkpoint_seconds=0.0), on_step=burst)
    other = replace(tiny, seed=4, steps=2)  # another plan: nothing of the old run may be gone on from
    train(fleet, tmp_path / "model", other, force=True, on_step=lambda step, *_: steps.append(step))
    assert steps == [1, 2]
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_one_run_at_a_time(fleet: Dataset, tiny: TrainConfig, tmp_path: Path) -> None:
    (tmp_path / "model.partial").mkdir()
    with exclusive(tmp_path / "model.partial" / "lock", what="training"):
        for resume in (False, True):
            with pytest.raises(UsageError, match="another run is training here"):
                train(fleet, tmp_path / "model", tiny, resume=resume)
    assert [path.name for path in (tmp_path / "model.partial").iterdir()] == ["lock"]
    train(fleet, tmp_path / "model", replace(tiny, steps=1))  # a lock file without a holder is no obstacle
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_existing_out(fleet: Dataset, tiny: TrainConfig, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine").write_text("keep")
    with pytest.raises(UsageError, match="exists already"):
        train(fleet, tmp_path / "model", tiny)
    assert (tmp_path / "model" / "mine").read_text() == "keep"
    train(fleet, tmp_path / "model", replace(tiny, steps=1), force=True)
    assert not (tmp_path / "model" / "mine").exists()


def records(count: int, labels: Callable[[int], list[str] | None]) -> Dataset:
    return from_records(
        {"sequence_id": str(i), "events": ["A", "B"], "times": [0, i], "labels": labels(i)} for i in range(count)
    )


@pytest.mark.parametrize(
    ("dataset", "folds", "words"),
    [
        (records(5, lambda i: []), None, "at least one label"),
        (records(5, lambda i: None), None, "at least one label"),
        (records(3, lambda i: ["y"]), 40, "no subject"),
        (records(3, lambda i: ["y"]), 1, "folds: expected at least 2"),
    ],
)
def test_datasets_that_cannot_be_learned(dataset: Dataset, folds: int | None, words: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        train(dataset, tmp_path / "model", TrainConfig(steps=1), folds=folds)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_the_smallest_fleet_trains(tmp_path: Path) -> None:
    """One labelled sequence, nobody held out: quality says that nothing can be judged."""
    quality = train(records(1, lambda i: ["y"]), tmp_path / "model", TrainConfig(steps=2, validation=0.0))
    assert quality["sequences"] == 0
    assert not quality["per_label"]["y"]["trusted"]


def test_a_channel_without_a_single_value(tmp_path: Path) -> None:
    table = pa.table(
        {
            "sequence_id": [str(i) for i in range(20)],
            "events": [["A"]] * 20,
            "times": [[0.0]] * 20,
            "mileage": pa.array([[None]] * 20, pa.list_(pa.float32())),
            "labels": [["y"][: i % 2] for i in range(20)],
        }
    )
    data = from_table(table)
    assert data.channels == ("mileage",)
    quality = train(data, tmp_path / "model", TrainConfig(steps=2))
    assert np.isfinite(quality["labels"]["ece"])


@pytest.mark.bits
def test_the_same_seed_gives_the_same_weights(
    fleet: Dataset, tiny: TrainConfig, tmp_path: Path, model_folder: Path
) -> None:
    train(fleet, tmp_path / "again", tiny)
    train(fleet, tmp_path / "other", replace(tiny, seed=1))
    one, two, three = (
        (f / "model.safetensors").read_bytes() for f in (model_folder, tmp_path / "again", tmp_path / "other")
    )
    assert one == two
    assert one != three
    provenance = json.loads((tmp_path / "again" / "training.json").read_text())
    assert provenance["config"] == tiny.to_json()
    card = (tmp_path / "again" / "README.md").read_text()
    quality = json.loads((tmp_path / "again" / "quality.json").read_text())
    assert f"{quality['labels']['weighted']['f1']:.3f}" in card
    assert "event types, 2 labels\n- reads events, times, channels mileage;" in card


@pytest.mark.parametrize(("given", "median", "c"), [(0, 3, 1), (0, 19, 4), (0, 80, 15), (7, 3, 7)])
def test_c_fits_the_lengths_unless_it_is_given(given: int, median: int, c: int, tmp_path: Path) -> None:
    lengths = [1, *[median] * 18, 200]
    table = pa.table(
        {
            "sequence_id": [str(i) for i in range(20)],
            "events": [["A"] * n for n in lengths],
            "times": [np.arange(float(n)).tolist() for n in lengths],
            "labels": [["y"][: i % 2] for i in range(20)],
        }
    )
    train(from_table(table), tmp_path / "model", TrainConfig(steps=1, min_context=given))
    config, told = (json.loads((tmp_path / "model" / name).read_text()) for name in ("config.json", "training.json"))
    assert config["min_context"] == told["config"]["min_context"] == told["inputs"]["min_context"] == c
    assert load_models(tmp_path / "model").min_context == c
