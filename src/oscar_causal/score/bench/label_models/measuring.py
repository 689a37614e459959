"""Runs label models on worlds, several at once; every row is kept as soon as it is measured.

Seeds from 1000 on, and the kinds that are kept for the record, run only with a prediction, which is appended with every
figure to a log that is never edited.
"""

from __future__ import annotations

import json
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from oscar_causal.data.extras import load_extra
from oscar_causal.data.folders import read_json, write_text
from oscar_causal.data.sequences import Dataset, read_dataset
from oscar_causal.data.synthetic.worlds import FIRST_RECORDED_SEED, RECORD_ONLY
from oscar_causal.data.synthetic.worlds.write import TEST, TRAIN, WORLDS, write_world
from oscar_causal.discovery.workers import one_thread_children
from oscar_causal.errors import MissingExtra, UsageError
from oscar_causal.score.bench.label_models.material import Material
from oscar_causal.score.bench.label_models.models import ROWS, has_truth, true_probabilities
from oscar_causal.score.bench.label_models.page import draw, to_page
from oscar_causal.score.bench.label_models.scoring import figures
from oscar_causal.score.bench.ledger import add_row, machine, read_ledger

NAME = "label-models"
QUICK: dict[str, Any] = {"worlds": ("additive", "decay", "static"), "train": 2_000, "test": 500, "steps": 60}
"""`--quick`: minutes on two cores."""
Result = TypeVar("Result")
Say = Callable[[str], None]


@dataclass(frozen=True)
class LabelSettings:
    """What to measure, and where it is kept."""

    out: Path
    work: Path
    """Worlds are made here once."""
    worlds: tuple[str, ...] = tuple(kind for kind in WORLDS if kind not in RECORD_ONLY)
    seeds: tuple[int, ...] = (1,)
    rows: tuple[str, ...] = tuple(ROWS)
    train: int = TRAIN
    test: int = TEST
    steps: int | None = None
    """Optimiser steps of networks; None: their defaults."""
    workers: int = 1
    device: str = "cpu"
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
    """One label model on one world."""

    world: str
    """`KIND/SEED`"""
    row: str
    folder: Path
    settings: LabelSettings

    @property
    def key(self) -> str:
        """Under which it is kept."""
        return f"{self.world}/{self.row}"

    def wanted(self) -> dict[str, Any]:
        """What a kept row must agree with: sequences, and the steps of a network."""
        parts = {part: read_json(self.folder / part / "dataset.json")["digest"] for part in ("train", "test")}
        return {"digests": parts, "steps": self.settings.steps if ROWS[self.row].network else None}


def run_labels(settings: LabelSettings, say: Say = lambda line: None) -> dict[str, Any]:
    """Measure what is not there yet; returns the ledger with its `files`."""
    path = settings.out / f"{NAME}.json"
    ledger = read_ledger(path, NAME)
    rows = _possible(settings.rows, say)
    size = f"{settings.train}-{settings.test}"
    pairs = [(kind, seed) for kind in settings.worlds for seed in settings.seeds]
    folders = {f"{kind}/{seed}": settings.work / f"{kind}-{seed}-{size}" for kind, seed in pairs}
    made = [(_make, (world, folder, settings)) for world, folder in folders.items()]
    for line in _done(settings.workers, made):
        say(line)
    every = [Task(world, row, folder, settings) for world, folder in folders.items() for row in rows]
    waiting = [(measure, (task,)) for task in every if not _there(ledger["rows"].get(task.key), task)]
    for task, found in _done(settings.workers, waiting):
        add_row(path, NAME, task.key, found)
        _record(settings, task, found)
        known = found["skill"]
        say(f"{task.key}: skill {'-' if known is None else f'{known:.3f}'}, {found['seconds']:.0f} s")
    ledger = read_ledger(path, NAME)
    if ledger["rows"]:
        write_text(path.with_suffix(".md"), to_page(ledger["rows"]))
        draw(ledger["rows"], path.with_suffix(".png"))
    return {**ledger, "files": {kind: str(path.with_suffix(f".{kind}")) for kind in ("json", "md", "png")}}


def label_figures(
    row: str, train: Dataset, test: Dataset, work: Path, *, device: str = "cpu", steps: int | None = None
) -> dict[str, Any]:
    """The figures of one label model on any two datasets; skill only where the true probabilities lie beside them."""
    material = Material(train, test, work, device, steps=steps)
    known = has_truth(train) and has_truth(test)
    begun = time.monotonic()
    predicted = ROWS[row].predict(material)
    seconds = time.monotonic() - begun
    learnt, *came = (material.outcomes(part) for part in (material.learn, material.validation, material.asked))
    bayes = true_probabilities(material) if known else None
    scores = figures(predicted, (came[0], came[1]), learnt, material.vocabulary.labels, bayes)
    return {**scores, "details": predicted.details, "seconds": seconds}


def measure(task: Task) -> tuple[Task, dict[str, Any]]:
    """One row, as it is kept."""
    settings = task.settings
    device = settings.device if ROWS[task.row].network else "cpu"
    data = [read_dataset(task.folder / part) for part in ("train", "test")]
    work = task.folder.with_name(f"{task.folder.name}-{task.row}")
    found = label_figures(task.row, data[0], data[1], work, device=device, steps=settings.steps)
    return task, {**found, **task.wanted(), "commit": settings.commit, "machine": machine(device)}


def _possible(rows: Sequence[str], say: Say) -> list[str]:
    """Rows whose packages are there; one line for each of the others."""
    possible = list(rows)
    for row in rows:
        needed = ROWS[row].needs
        try:
            if needed is not None:
                load_extra(needed, f"row {row!r}")
        except MissingExtra as error:
            say(f"skipped: {error}")
            possible.remove(row)
    return possible


def _there(kept: dict[str, Any] | None, task: Task) -> bool:
    """Was the row measured on these very sequences, in the same way?"""
    return kept is not None and all(kept[key] == value for key, value in task.wanted().items())


def _make(world: str, folder: Path, settings: LabelSettings) -> str:
    if folder.exists():
        return f"{world}: there already"
    begun = time.monotonic()
    kind, seed = world.split("/")
    write_world(kind, int(seed), folder, train=settings.train, test=settings.test)
    return f"{world}: made in {time.monotonic() - begun:.0f} s"


def _done(workers: int, calls: Sequence[tuple[Callable[..., Result], tuple[Any, ...]]]) -> Iterator[Result]:
    """Results as they come; of one worker from this process, else from processes of one thread each."""
    if workers == 1 or len(calls) < 2:
        yield from (call(*arguments) for call, arguments in calls)
        return
    with (
        one_thread_children(),
        ProcessPoolExecutor(min(workers, len(calls)), mp_context=multiprocessing.get_context("spawn")) as pool,
    ):
        waiting: list[Future[Result]] = [pool.submit(call, *arguments) for call, arguments in calls]
        for done in as_completed(waiting):
            yield done.result()


def _record(settings: LabelSettings, task: Task, found: dict[str, Any]) -> None:
    if settings.record is None:
        return
    line = json.dumps({"bench": NAME, "key": task.key, "prediction": settings.record, **found}, sort_keys=True)
    with (settings.out / "record.jsonl").open("a", encoding="utf-8") as log:
        log.write(line + "\n")
