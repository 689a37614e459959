"""The campaign of `scripts/fuzz.py`: its world is sound, its changes are, and it misses nothing."""

from __future__ import annotations

import io
import json
import os
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from fuzz_worlds import CASES, make_world
from mutations import mutate_json, mutate_sqlite, mutate_table

from fuzz import Ended

WORDS = list(dict.fromkeys(case.words for case in CASES))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    before, folder = Path.cwd(), tmp_path_factory.mktemp("fuzz") / "world"
    make_world(folder)
    os.chdir(before)
    return folder


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_verbs_take_the_world_as_it_is(
    world: Path, oscar: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(world)
    ran = oscar(*(str(tmp_path / word) if word.startswith("out") else word for word in words), "--json", "--quiet")
    assert (ran.code, ran.err) == (0, "")
    json.loads(ran.out)


def test_every_verb_and_kind_is_tried(world: Path) -> None:
    verbs = "import inspect export select check discover report graph score explain explain-run population baseline"
    assert {case.words[0] for case in CASES} == set(verbs.split())
    assert {case.kind for case in CASES} == {"json", "lines", "parquet", "sqlite", "bytes"}
    assert all((world / case.file).is_file() for case in CASES)
    assert sum(case.share for case in CASES if case.kind != "bytes") > 0.9 * sum(case.share for case in CASES)


def test_changes_are_sound_files(world: Path, tmp_path: Path) -> None:
    """Another program can read them: what is wrong is the schema."""
    rng = np.random.default_rng(0)
    part = (world / "dataset/sequences/part-00000.parquet").read_bytes()
    changed = [mutate_table(part, rng) for _ in range(60)]
    assert len({pq.read_schema(io.BytesIO(data)) for data in changed}) > 20
    run = (world / "results/run.json").read_bytes()
    texts = [data for data in (mutate_json(run, rng) for _ in range(60)) if len(data) < 100_000]  # others are deep
    assert sum(json.loads(data) != json.loads(run) for data in texts) > 40
    for _ in range(20):
        (tmp_path / "log.sqlite").write_bytes(mutate_sqlite((world / "logs/log.sqlite").read_bytes(), rng))
        base = sqlite3.connect(tmp_path / "log.sqlite")
        assert base.execute("PRAGMA schema_version").fetchone()[0] > 0
        base.close()


def ended(**changes: Any) -> Ended:
    told = {"status": 3 << 8, "out": "", "err": "oscar: x: expected this, got that\n", "memory": 0, "seconds": 0.1}
    return Ended(CASES[0], "json", **{**told, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {"err": "Traceback (most recent call last):\nKeyError: 'x'\n", "status": 1 << 8},
        {"status": 1 << 8},
        {"status": 77 << 8},
        {"status": signal.SIGABRT.value},
        {"err": "oscar: one\noscar: two\n"},
        {"err": ""},
        {"err": "oscar: \x1b[31mred\n"},
        {"err": f"oscar: {'x' * 2000}\n"},
        {"memory": 3 << 30},
        {"err": "oscar: not enough memory; free some\n", "status": 6 << 8},
        {"status": 0, "err": "", "out": "no json"},
        {"status": 0, "err": "x.py:3: RuntimeWarning: invalid value\n", "out": "{}"},
    ],
)
def test_the_net_has_no_holes(changes: dict[str, Any]) -> None:
    assert ended(**changes).finding() is not None


def test_what_is_well_is_no_finding() -> None:
    assert ended().finding() is None
    assert ended(status=0, err="", out="{}").finding() is None
