"""Fleets on disk: the same bytes however they are made, growth without change, nothing left after a failure."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from oscar_causal.data.folders import read_json
from oscar_causal.data.sequences import read_dataset
from oscar_causal.data.synthetic import FleetConfig, preset, write, write_fleet
from oscar_causal.data.synthetic.audit import bayes_figures, merge, oracle_figures
from oscar_causal.errors import UsageError

TINY: dict[str, Any] = {"event_types": 500, "labels": 16, "mean_length": 15.0, "sd_length": 5.0}


def hashes(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.bits
def test_same_bytes_for_any_number_of_workers(tmp_path: Path) -> None:
    config = preset("hard", sequences=2500, **TINY)
    for name, workers in (("one", 1), ("two", 2), ("default", None)):
        write_fleet(config, 7, tmp_path / name, workers=workers)
    found = hashes(tmp_path / "one")
    assert set(found) == {
        "checksums.json",
        "dataset.json",
        "names.json",
        "rules.json",
        "sequences/part-00000.parquet",
        "why/part-00000.parquet",
    }
    assert hashes(tmp_path / "two") == found == hashes(tmp_path / "default")
    write_fleet(config, 8, tmp_path / "other seed", workers=1)
    assert hashes(tmp_path / "other seed")["sequences/part-00000.parquet"] != found["sequences/part-00000.parquet"]


def test_a_longer_fleet_begins_with_the_shorter_one(tmp_path: Path) -> None:
    for count in (1500, 2100):
        write_fleet(preset("temporal", sequences=count, **TINY), 1, tmp_path / str(count), workers=1)
    short, long = (read_dataset(tmp_path / name) for name in ("1500", "2100"))
    assert (len(short), len(long)) == (1500, 2100)
    for i in range(0, 1500, 7):
        assert short.events_of(i) == long.events_of(i)
        assert short.labels_of(i) == long.labels_of(i)
    assert short.sequence_ids.equals(long.sequence_ids.slice(0, 1500))
    assert short.subject_ids.equals(long.subject_ids.slice(0, 1500))
    assert (tmp_path / "1500" / "rules.json").read_bytes() == (tmp_path / "2100" / "rules.json").read_bytes()


def test_dataset_json_tells_how_the_fleet_came_about(tmp_path: Path) -> None:
    config = preset("demo", sequences=50)
    seen: list[tuple[int, int]] = []
    info = write_fleet(config, 3, tmp_path / "fleet", on_progress=lambda done, total: seen.append((done, total)))
    assert info == read_json(tmp_path / "fleet" / "dataset.json")
    assert seen == [(50, 50)]
    assert info["sequences"] == 50
    assert info["channels"] == ["mileage"]
    assert info["generator"]["seed"] == 3
    assert info["generator"]["version"] == write.GENERATOR_VERSION
    assert info["generator"]["config"] == {**config.to_json()}
    assert set(info["bayes"]) == {"micro_f1", "macro_f1", "weighted_f1"}
    assert {"precision", "recall", "f1"} <= set(info["presence_oracle"])
    data = read_dataset(tmp_path / "fleet")
    assert set(data.static()[0]) == {"variant", "model year"}
    names = read_json(tmp_path / "fleet" / "names.json")
    assert set(data.event_names) | set(data.label_names) <= set(names)
    assert len(names) == 320 + 12


def test_figures_of_nothing_are_null() -> None:
    from oscar_causal.data.synthetic import draw_block, make_world

    world = make_world(preset("demo", labels_per_sequence=0.0, stray_events=0.0), seed=0)
    total = merge([draw_block(world, 0, count=10).audit])
    assert set(bayes_figures(total).values()) == {None}
    assert oracle_figures(total)["f1"] is None


def test_an_existing_folder_is_kept_unless_forced(tmp_path: Path) -> None:
    config = preset("demo", sequences=20)
    write_fleet(config, 0, tmp_path / "fleet")
    with pytest.raises(UsageError, match="exists already"):
        write_fleet(config, 1, tmp_path / "fleet")
    assert read_json(tmp_path / "fleet" / "dataset.json")["generator"]["seed"] == 0
    write_fleet(config, 1, tmp_path / "fleet", force=True)
    assert read_json(tmp_path / "fleet" / "dataset.json")["generator"]["seed"] == 1


def test_a_failure_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("power cut")

    monkeypatch.setattr(write, "why_table", broken)
    with pytest.raises(RuntimeError, match="power cut"):
        write_fleet(preset("demo", sequences=20), 0, tmp_path / "fleet")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("workers", [0, -3])
def test_bad_worker_counts(tmp_path: Path, workers: int) -> None:
    with pytest.raises(UsageError, match="workers: expected at least 1"):
        write_fleet(preset("demo"), 0, tmp_path / "fleet", workers=workers)


@pytest.mark.bits
def test_content_digest_is_the_same_in_every_environment(tmp_path: Path) -> None:
    """Recorded with numpy 2.4 / scipy 1.17 / pyarrow 26, found again with 1.26 / 1.12 / 17 and without vector units.

    Whoever changes what a seed gives raises GENERATOR_VERSION and records the digest anew.
    """
    knobs = {"temporal_labels": 0.3, "decoys": 0.8, "probabilistic_labels": 0.2, "hidden_driver": 0.3, "drift": 0.3}
    noise = {"lost_labels": 0.1, "false_labels": 0.1}
    config = FleetConfig(event_types=800, labels=20, sequences=1100, mean_length=30.0, sd_length=10.0, **knobs, **noise)
    digest = write_fleet(config, 11, tmp_path / "fleet", workers=1)["digest"]
    assert (write.GENERATOR_VERSION, digest) == (1, "f391ddb1dcc956570cc96cea23810712ac7884e7a8bcca67382623ccf1426276")
