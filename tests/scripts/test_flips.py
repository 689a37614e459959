"""The campaign of flipped bits, small: folders of the golden kind, one quick verb each, in this process."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from oscar_causal.data.checksums import checksums
from oscar_causal.data.folders import write_json

GOLDEN = Path(__file__).parents[1] / "golden"
EXPLAIN = "explain {} drive_001.json --contexts 16 --json"
LINES = {
    "dataset-1": ("inspect dataset-1 --json", "select dataset-1 --last 5 --out out/part --json"),
    "model-1": (EXPLAIN.format("model-1"),),
    "folds-1": (EXPLAIN.format("folds-1"),),
    "results-1": ("score results-1 --dataset dataset-1 --json",),
    "population-2": ("graph population-2 --population --out out/graph.json --json",),
}


@pytest.fixture
def flips(
    script: Callable[[str], ModuleType], oscar: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> ModuleType:
    module = script("flips")

    def ask(world: Path, line: str) -> Any:
        shutil.rmtree(world / "out", ignore_errors=True)
        (world / "out").mkdir()
        monkeypatch.chdir(world)
        ran = oscar(*line.split())
        files = "".join(module._hash(module._files(world / "out"), world))
        return module.Answer(ran.code, ran.err, hashlib.sha256((ran.out + files).encode()).hexdigest())

    monkeypatch.setattr(module, "ask", ask)
    return module


@pytest.fixture
def world(tmp_path: Path) -> Path:
    for name in LINES:
        shutil.copytree(GOLDEN / name, tmp_path / name)
    for folder in (tmp_path / "folds-1" / "fold-0", tmp_path / "folds-1" / "fold-1"):
        write_json(folder / "checksums.json", checksums(folder))
    write_json(tmp_path / "folds-1" / "checksums.json", checksums(tmp_path / "folds-1", ["folds.json"]))
    for name in LINES:
        if name != "folds-1":
            write_json(tmp_path / name / "checksums.json", checksums(tmp_path / name))
    (tmp_path / "drive_001.json").write_text(
        '{"events": ["P0A1F", "C0051", "U0126", "U0428"], "times": [0, 5, 9, 30], "mileage": [1, 2, 3, 4]}'
    )
    return tmp_path


def test_no_flip_goes_unnoticed(flips: ModuleType, world: Path) -> None:
    sound = flips.expected_answers(world, LINES)
    planned = flips.plan(world, tuple(LINES), 36, 7)
    found = [flips.try_flip(world, flip, LINES[flip.file.split("/")[0]], sound) for flip in planned]
    assert not [row for row in found if row["outcome"] in flips.BAD]
    assert sum(row["outcome"] == "refused" for row in found) > 15
    for line, answer in flips.expected_answers(world, LINES).items():
        assert answer == sound[line]  # every file was put back


def test_without_checksums_one_does(flips: ModuleType, world: Path) -> None:
    """So that the campaign can fail."""
    lines = LINES["dataset-1"][:1]
    path = world / "dataset-1" / "dataset.json"
    share = (path.read_bytes().index(b'"digest"') + 20) / path.stat().st_size
    sound = flips.expected_answers(world, {"dataset-1": lines})
    flip = flips.Flip("dataset-1/dataset.json", share, 0)
    assert flips.try_flip(world, flip, lines, sound)["outcome"] == "refused"
    (world / "dataset-1" / "checksums.json").unlink()
    assert flips.try_flip(world, flip, lines, sound)["outcome"] == "silently different"


def test_what_counts_as_what(flips: ModuleType) -> None:
    sound = flips.Answer(0, "", "x")
    for code, said, content, expected in (
        (0, "", "x", "identical"),
        (0, "", "y", "silently different"),
        (0, "a/names.json: edited since the folder was written", "y", "note"),
        (0, "a/rules.json: edited since the folder was written", "y", "silently different"),
        (4, "oscar: a: damaged\n", "", "refused"),
        (4, "Traceback (most recent call last):\noscar: a\n", "", "stack trace"),
        (1, "oscar: stopped\n", "", "stack trace"),
        (-11, "", "", "stack trace"),
        (None, "", "x", "no end"),
    ):
        assert flips.outcome(flips.Answer(code, said, content), sound, "names.json") == expected


def test_every_kind_of_file_gets_its_share(flips: ModuleType, world: Path) -> None:
    planned = flips.plan(world, tuple(LINES), 300, 0)
    assert len(planned) == 300
    counts = {
        kind: sum(flips.kind_of(flip.file) == kind for flip in planned)
        for kind in map(lambda f: flips.kind_of(f.file), planned)
    }
    assert max(counts.values()) - min(counts.values()) <= 1
    weights = [flip.share for flip in planned if flip.file == "model-1/model.safetensors"]
    assert min(weights) == 0.0
    assert max(weights) == 1.0
    assert np.diff(sorted(weights)).max() < 2 / len(weights)
