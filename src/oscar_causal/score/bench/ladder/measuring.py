"""Runs rows on worlds, in processes of their own; every row is kept as soon as it is measured.

Seeds from 1000 on, and the kinds that are kept for the record, run only with a prediction, which is appended with every
figure to a log that is never edited.
"""

from __future__ import annotations

import json
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oscar_causal.data.folders import check_format, read_json, write_json, write_text
from oscar_causal.data.synthetic.worlds import FIRST_RECORDED_SEED, RECORD_ONLY
from oscar_causal.data.synthetic.worlds.write import WORLDS, write_world
from oscar_causal.errors import UsageError
from oscar_causal.score.bench.ladder.methods import METHODS, Stand
from oscar_causal.score.bench.ladder.page import to_page
from oscar_causal.score.bench.ladder.truth import score
from oscar_causal.score.bench.ledger import machine

FORMAT_VERSION = 1
OnRow = Callable[[str], None]


@dataclass(frozen=True)
class LadderSettings:
    """What to measure, and where it is kept."""

    out: Path
    work: Path
    """Worlds are made here once."""
    worlds: tuple[str, ...] = tuple(kind for kind in WORLDS if kind not in RECORD_ONLY)
    seeds: tuple[int, ...] = (1,)
    rows: tuple[str, ...] = tuple(METHODS)
    train: int = 20_000
    test: int = 1_500
    workers: int = 1
    record: str | None = None
    """A prediction, written beforehand: lets kinds and seeds run that are kept for the record."""
    commit: str | None = None

    def __post_init__(self) -> None:
        unknown = [name for name in self.worlds if name not in WORLDS]
        if unknown:
            raise UsageError(f"--worlds: expected some of {', '.join(WORLDS)}, got {unknown[0]!r}")
        kept = [kind for kind in self.worlds if kind in RECORD_ONLY]
        late = [seed for seed in self.seeds if seed >= FIRST_RECORDED_SEED]
        if (kept or late) and not self.record:
            what = f"world {kept[0]}" if kept else f"seed {late[0]}"
            raise UsageError(f"{what}: is kept for the record; say --record with your prediction in words")


@dataclass(frozen=True)
class Task:
    """One row on one world."""

    kind: str
    seed: int
    row: str
    folder: Path
    test: int

    @property
    def key(self) -> str:
        """Under which it is kept."""
        return f"{self.kind}/{self.seed}/{self.row}"


def run_ladder(settings: LadderSettings, on_row: OnRow = lambda line: None) -> dict[str, Any]:
    """Measure what is not there yet; returns the file's content, with `files`."""
    path = settings.out / "ladder.json"
    ledger = read_ladder(path)
    with ProcessPoolExecutor(settings.workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        places = {(kind, seed): settings.work / f"{kind}-{seed}" for kind in settings.worlds for seed in settings.seeds}
        made = [pool.submit(_make, kind, seed, place, settings) for (kind, seed), place in places.items()]
        for waiting in as_completed(made):
            on_row(waiting.result())
        tasks = [
            Task(kind, seed, row, place, settings.test)
            for (kind, seed), place in places.items()
            for row in settings.rows
            if not _there(ledger, f"{kind}/{seed}/{row}", place, settings)
        ]
        for task, figures in _measured(pool, tasks):
            figures = {**figures, "commit": settings.commit, "machine": machine("cpu")}
            ledger["rows"][task.key] = figures
            settings.out.mkdir(parents=True, exist_ok=True)
            write_json(path, ledger)
            _record(settings, task, figures)
            on_row(f"{task.key}: F1 {100 * figures['f1']:.1f}, {figures['seconds']:.0f} s")
    write_text(path.with_suffix(".md"), to_page(ledger["rows"]))
    return {**ledger, "files": {"json": str(path), "md": str(path.with_suffix(".md"))}}


def read_ladder(path: Path) -> dict[str, Any]:
    """What was measured so far."""
    if not path.exists():
        return {"kind": "ladder", "format_version": FORMAT_VERSION, "rows": {}}
    ledger = read_json(path)
    check_format(ledger, path, kind="ladder", newest=FORMAT_VERSION)
    return ledger


def _there(ledger: dict[str, Any], key: str, place: Path, settings: LadderSettings) -> bool:
    """Was the row measured on these very sequences?"""
    row = ledger["rows"].get(key)
    return bool(row) and (row["digest"], row["sequences"]) == (_digest(place), settings.test)


def _digest(place: Path) -> str:
    return str(read_json(place / "test" / "dataset.json")["digest"])


def _make(kind: str, seed: int, place: Path, settings: LadderSettings) -> str:
    if place.exists():
        return f"{place.name}: there already"
    begun = time.monotonic()
    write_world(kind, seed, place, train=settings.train, test=settings.test)
    return f"{place.name}: made in {time.monotonic() - begun:.0f} s"


def _measured(pool: ProcessPoolExecutor, tasks: Sequence[Task]) -> Iterator[tuple[Task, dict[str, Any]]]:
    waiting = {pool.submit(measure, task): task for task in tasks}
    for done in as_completed(waiting):
        yield waiting[done], done.result()


def measure(task: Task) -> dict[str, Any]:
    """The figures of one row on one world."""
    import torch

    torch.set_num_threads(1)
    stand = Stand(task.folder, task.test)
    truth = stand.truth
    begun = time.monotonic()
    answer = METHODS[task.row](stand)
    seconds = time.monotonic() - begun
    return {
        **score(answer.found, truth).figures(),
        "passes": answer.passes,
        "seconds": seconds,
        "sequences": task.test,
        "digest": _digest(task.folder),
        "truth": stand.test.info["truth"],
    }


def _record(settings: LadderSettings, task: Task, figures: dict[str, Any]) -> None:
    if settings.record is None:
        return
    line = json.dumps({"key": task.key, "prediction": settings.record, **figures}, sort_keys=True)
    with (settings.out / "record.jsonl").open("a", encoding="utf-8") as log:
        log.write(line + "\n")
