"""`oscar bench all`: every table and figure of the paper from one fleet, one model and one set of processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from oscar_causal.errors import OscarError
from oscar_causal.score.bench import contexts, length, nades, rivals, sampling, table_1, threshold
from oscar_causal.score.bench.place import ShowProgress, no_progress
from oscar_causal.score.bench.running import Bench, Say, Session, at_work, choose_rows, say_nothing
from oscar_causal.score.bench.settings import BenchSettings

BENCHES: tuple[Bench, ...] = tuple(
    module.BENCH for module in (table_1, length, sampling, contexts, threshold, nades, rivals)
)
DEFAULTS: Mapping[str, Any] = {"test": 300, "runs": 1}
"""Smaller than the paper's, which are on every page, so that a few calls with `until` measure all of it."""

ONE_POPULATION = ("fused", "fused N=64", "large fused")
"""Rows that share one population, except in `threshold`, where every level has its own."""


@dataclass
class Told:
    """What became of the chosen rows of one benchmark."""

    measured: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


def measure_all(
    settings: BenchSettings, show: ShowProgress = no_progress, say: Say = say_nothing
) -> dict[str, dict[str, Any]]:
    """Measure the chosen rows of all benchmarks.

    A row that fails is told at the end, after all others; what was measured is kept.
    """
    told = {bench.name: Told() for bench in BENCHES}
    waiting, files = chosen_rows(settings, told), {}
    try:
        with at_work(settings, show, say) as session:
            if any(part.kept for part in told.values()) and not session.late():
                waiting = chosen_rows(settings, told, session.place.explained_digest)
            if waiting and not session.late():
                session.place.model()  # what all rows need: without it there is nothing to go on with
            for bench, name in waiting:
                _measure(session, bench, name, told[bench.name])
    finally:
        files = {bench.name: bench.draw(settings)[1] for bench in BENCHES}
    failed = [f"{name}, {row}: {why}" for name, part in told.items() for row, why in part.failed.items()]
    if failed:
        raise OscarError(f"bench all: {len(failed)} of {len(waiting)} rows failed; first {failed[0]}")
    return {name: {**vars(part), "files": files[name]} for name, part in told.items()}


def chosen_rows(
    settings: BenchSettings, told: Mapping[str, Told], explained: str | None = None
) -> list[tuple[Bench, str]]:
    """Which rows to measure, in order; those that are there are noted as kept where only missing ones are wanted."""
    every = {bench.name: list(bench.rows(settings)) for bench in BENCHES}
    known = list(dict.fromkeys(name for names in every.values() for name in names))
    wanted, waiting = set(choose_rows(known, settings.rows)), []
    for bench in BENCHES:
        names = [name for name in every[bench.name] if name in wanted]
        there = bench.there(settings, names, explained)  # read in any case: a damaged file is told before the work
        told[bench.name].kept = there if settings.missing else []
        waiting += [(bench, name) for name in names if name not in told[bench.name].kept]
    return sorted(waiting, key=_turn)


def _turn(item: tuple[Bench, str]) -> int:
    """Rows of `fused` come last, of which the paper has none, and last of all those with a population of their own."""
    bench, name = item
    if "fused" not in name:
        return 0
    return 1 if name in ONE_POPULATION and bench.name != threshold.BENCH.name else 2


def _measure(session: Session, bench: Bench, name: str, told: Told) -> None:
    if session.late():
        told.left_out.append(name)
        return
    try:
        bench.measure(session, name)
        told.measured.append(name)
    except Exception as error:  # the other rows are worth having; it is told at the end
        told.failed[name] = str(error).splitlines()[0] if isinstance(error, OscarError) else repr(error)
        session.say(f"[{session.elapsed:6.1f} s] {bench.name}, {name}: failed: {told.failed[name]}")


BENCH = measure_all
