"""Runs rows on grounds, in processes of their own; every row is kept as soon as it is measured.

Seeds from 1000 on, and the kinds of worlds that are kept for the record, run only with a prediction, which is appended
with every figure to a log that is never edited.
"""

from __future__ import annotations

import json
import multiprocessing
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from oscar_causal.data.folders import check_format, read_json, write_json
from oscar_causal.data.synthetic.worlds import FIRST_RECORDED_SEED, RECORD_ONLY
from oscar_causal.errors import MissingExtra, UsageError
from oscar_causal.score.bench.ladder.counting import perfect_boundary
from oscar_causal.score.bench.ladder.interface import Answer, Ground, same
from oscar_causal.score.bench.ladder.rows import METHODS, QUICK_METHODS
from oscar_causal.score.bench.ladder.scoring import score
from oscar_causal.score.bench.ledger import machine
from oscar_causal.score.matching import Pair

FORMAT_VERSION = 2
T = TypeVar("T")
OnRow = Callable[[str], None]


@dataclass(frozen=True)
class Measuring:
    """What to measure, and where it is kept."""

    path: Path
    """The JSON file of the table."""
    grounds: Sequence[Ground]
    rows: Sequence[str]
    workers: int = 1
    missing: bool = False
    """Only rows that were not measured on these sequences yet."""
    until: float | None = None
    """Begin no row after so many seconds."""
    record: str | None = None
    """A prediction, written beforehand: lets kinds and seeds run that are kept for the record."""
    commit: str | None = None
    quick: bool = False
    """With hardly trained models."""
    only: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Row -> the kinds of grounds it is measured on, where these are not all."""

    def __post_init__(self) -> None:
        for ground in self.grounds:
            kind, seed = ground.name.rsplit("/", 1)
            if (kind in RECORD_ONLY or int(seed) >= FIRST_RECORDED_SEED) and not self.record:
                what = f"world {kind}" if kind in RECORD_ONLY else f"seed {seed}"
                raise UsageError(f"{what}: is kept for the record; say --record with your prediction in words")


def run(settings: Measuring, on_row: OnRow = lambda line: None) -> dict[str, Any]:
    """Measure the rows; returns the file's content."""
    begun, ledger = time.monotonic(), read_rows(settings.path)
    with ProcessPoolExecutor(settings.workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        digests = {}
        for name, digest, line in _all(pool, make, [(ground,) for ground in settings.grounds]):
            digests[name] = digest
            on_row(line)
        tasks = [
            (ground, digests[ground.name], row, settings.quick)
            for row in settings.rows  # ground after ground: a row of another ground waits for no other model
            for ground in settings.grounds
            if row not in settings.only or ground.name.rsplit("/", 1)[0] in settings.only[row]
            if not (settings.missing and _there(ledger, f"{ground.name}/{row}", digests[ground.name]))
        ]
        for figures in _all(pool, measure, _in_time(tasks, begun, settings.until), settings.workers):
            _keep(settings, ledger, figures, on_row)
    return ledger


def read_rows(path: Path) -> dict[str, Any]:
    """What was measured so far."""
    if not path.exists():
        return {"kind": "ladder", "format_version": FORMAT_VERSION, "rows": {}}
    ledger = read_json(path)
    check_format(ledger, path, kind="ladder", newest=FORMAT_VERSION)
    return ledger


def make(ground: Ground) -> tuple[str, str, str]:
    """Name, digest and what was done: in a process of the pool, for what is read there stays there."""
    line = ground.make()
    return ground.name, ground.digest, line


def _there(ledger: Mapping[str, Any], key: str, digest: str) -> bool:
    """Was the row measured on these very sequences?"""
    return key in ledger["rows"] and ledger["rows"][key]["digest"] == digest


def _in_time(tasks: Iterable[T], begun: float, until: float | None) -> Iterator[T]:
    for task in tasks:
        if until is not None and time.monotonic() - begun >= until:
            return
        yield task


def _all(
    pool: ProcessPoolExecutor, work: Callable[..., T], tasks: Iterable[tuple[Any, ...]], most: int = 0
) -> Iterator[T]:
    """Results as they come; with `most`, only so many tasks are begun at a time."""
    waiting: set[Future[T]] = set()
    for task in tasks:
        waiting.add(pool.submit(work, *task))
        if most and len(waiting) > most:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            yield from (one.result() for one in done)
    while waiting:
        done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
        yield from (one.result() for one in done)


def measure(ground: Ground, digest: str, row: str, quick: bool = False) -> dict[str, Any]:
    """The figures of one row on one ground; `left_out` where a package or a pool is missing."""
    import torch

    torch.set_num_threads(1)
    told: dict[str, Any] = {"key": f"{ground.name}/{row}", "digest": digest}
    answers: dict[Pair, Answer] = {}
    best: dict[Pair, Answer] = {}
    passes, chosen, extra, seconds = [], [], [], 0.0
    unit: Callable[[str], str] = same
    try:
        for part in ground.parts():
            begun = time.monotonic()
            found = (QUICK_METHODS if quick else METHODS)[row](part)
            seconds += time.monotonic() - begun
            answers |= found.answers
            passes.append((found.passes, len(part.test)))
            chosen.append(dict(found.chosen))
            extra.append((dict(found.extra), len(part.test)))
            best |= perfect_boundary(part).answers
            unit = part.unit
    except (MissingExtra, UsageError) as error:
        return {**told, "left_out": str(error)}
    scores, reference = (score(some, ground.scored, unit) for some in (answers, best))
    return {
        **told,
        **scores.figures(),
        "minus_presence": scores.minus(reference),
        "own": dict(ground.own(answers)),
        **{name: _mean([(some.get(name), count) for some, count in extra]) for name in (extra[0][0] if extra else ())},
        "passes": _mean(passes),
        "chosen": [some for some in chosen if some],
        "seconds": seconds,
        "facts": dict(ground.facts()),
    }


def _mean(passes: Sequence[tuple[float | None, int]]) -> float | None:
    known = [(value * count, count) for value, count in passes if value is not None]
    return sum(value for value, _ in known) / sum(count for _, count in known) if known else None


def _keep(settings: Measuring, ledger: dict[str, Any], figures: dict[str, Any], on_row: OnRow) -> None:
    key = figures.pop("key")
    if "left_out" in figures:
        on_row(f"{key}: left out, {figures['left_out']}")
        return
    name = key.rsplit("/", 1)[0]
    ledger.setdefault("grounds", {})[name] = figures.pop("facts")
    ledger["rows"][key] = {**figures, "commit": settings.commit, "machine": machine("cpu")}
    settings.path.parent.mkdir(parents=True, exist_ok=True)
    write_json(settings.path, ledger)
    if settings.record is not None:
        line = json.dumps({"key": key, "prediction": settings.record, **ledger["rows"][key]}, sort_keys=True)
        with (settings.path.parent / "record.jsonl").open("a", encoding="utf-8") as log:
            log.write(line + "\n")
    on_row(f"{key}: F1 {100 * figures['f1']:.1f}, {figures['seconds']:.0f} s")
