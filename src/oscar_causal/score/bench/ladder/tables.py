"""`oscar bench ladder` and `oscar bench outside`: which grounds and rows, then JSON, page and picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oscar_causal.data.folders import write_text
from oscar_causal.data.synthetic.worlds import CORE, RECORD_ONLY
from oscar_causal.data.synthetic.worlds.write import WORLDS
from oscar_causal.errors import UsageError
from oscar_causal.score.bench.ladder.interface import Ground
from oscar_causal.score.bench.ladder.measuring import Measuring, OnRow, run
from oscar_causal.score.bench.ladder.page import draw, ladder_page, outside_page
from oscar_causal.score.bench.ladder.rows import FEW_WORLDS, METHODS, OUTSIDE, TRAINED
from oscar_causal.score.bench.ladder.worlds import WorldGround
from oscar_causal.score.bench.outside.ground import SETS, OutsideGround
from oscar_causal.score.bench.running import choose_rows

QUICK = {"train": 2_000, "test": 60, "judge": 60}
DEAR = ("decay", "xor")
"""Worlds on which the rows run that take thousands of passes."""
QUICK_TRAINED = ("decay", "static", "chain")
"""Worlds on which `--quick` trains a network."""


@dataclass(frozen=True)
class RodSettings:
    """What both tables are asked; None: the table's own."""

    out: Path
    work: Path | None = None
    grounds: str | None = None
    """Kinds of worlds, or sets, separated by commas."""
    rows: str | None = None
    """Names or patterns."""
    seed: int | None = None
    """The first one: 1 on worlds, 0 on outside sets."""
    runs: int | None = None
    """Seeds of each ground; by default three on the core and on outside sets, one elsewhere."""
    train: int | None = None
    test: int | None = None
    data: Path = Path("../shared/data")
    """Folder of the outside sets."""
    workers: int = 1
    missing: bool = False
    until: float | None = None
    record: str | None = None
    commit: str | None = None
    quick: bool = False

    @property
    def work_folder(self) -> Path:
        """Where worlds and models are kept."""
        return self.work or self.out / "work"

    def seeds(self, first: int, usual: int) -> range:
        """The seeds of a ground."""
        begin = first if self.seed is None else self.seed
        return range(begin, begin + (self.runs or (1 if self.quick else usual)))

    def sizes(self) -> dict[str, int]:
        """Sequences of a world, where they are not the usual ones."""
        given = {"train": self.train, "test": self.test}
        return (QUICK if self.quick else {}) | {key: value for key, value in given.items() if value is not None}


def bench_ladder(settings: RodSettings, on_row: OnRow) -> dict[str, Any]:
    """Every method on every world."""
    usual = [kind for kind in WORLDS if kind not in RECORD_ONLY]
    grounds = [
        WorldGround(kind, seed, settings.work_folder, **settings.sizes())
        for kind in _chosen(settings.grounds, WORLDS, usual)
        for seed in settings.seeds(1, 3 if kind in CORE else 1)
    ]
    only: dict[str, Sequence[str]] = {}
    if settings.quick:
        only |= dict.fromkeys(TRAINED, QUICK_TRAINED)
    only |= dict.fromkeys(FEW_WORLDS, () if settings.quick else DEAR)
    return _table("ladder", settings, grounds, list(METHODS), on_row, lambda found: ladder_page(found["rows"]), only)


def bench_outside(settings: RodSettings, on_row: OnRow) -> dict[str, Any]:
    """Every method that needs no world on the outside sets that are there; the others are told and left out."""
    some = {} if settings.train is None else {"sequences": settings.train}
    grounds = []
    for kind in _chosen(settings.grounds, list(SETS), list(SETS)):
        found = [
            OutsideGround(kind, seed, settings.data, settings.work_folder, **some) for seed in settings.seeds(0, 3)
        ]
        missing = found[0].missing()
        if missing:
            on_row(f"{kind}: skipped, there is no {missing[0]} in {settings.data / found[0].adapter.FOLDER}")
        else:
            grounds += found
    known = [row for row in OUTSIDE if row not in FEW_WORLDS]
    return _table(
        "outside", settings, grounds, known, on_row, lambda found: outside_page(found["rows"], found["grounds"]), {}
    )


def _chosen(given: str | None, known: Sequence[str], usual: Sequence[str]) -> list[str]:
    names = [part.strip() for part in given.split(",")] if given is not None else list(usual)
    for name in names:
        if name not in known:
            raise UsageError(f"--worlds: expected some of {', '.join(known)}, got {name!r}")
    return names


def _table(
    name: str,
    settings: RodSettings,
    grounds: Sequence[Ground],
    known: Sequence[str],
    on_row: OnRow,
    to_page: Callable[[dict[str, Any]], str],
    only: Mapping[str, Sequence[str]],
) -> dict[str, Any]:
    path = settings.out / f"{name}.json"
    asked = ("workers", "missing", "until", "record", "commit", "quick")
    measuring = Measuring(
        path, grounds, choose_rows(known, settings.rows), only=only, **{key: getattr(settings, key) for key in asked}
    )
    found = run(measuring, on_row)
    if not found["rows"]:
        return {**found, "files": {}}
    files = {kind: path.with_suffix(f".{kind}") for kind in ("json", "md", "png")}
    write_text(files["md"], to_page(found))
    draw(found["rows"], files["png"])
    return {**found, "files": {kind: str(file) for kind, file in files.items()}}
