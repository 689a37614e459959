"""How large a benchmark is: on which fleet, with which model, over how many sequences."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from oscar_causal.data.stream import read_info
from oscar_causal.errors import UsageError


@dataclass(frozen=True)
class BenchSettings:
    """What all rows of a benchmark share."""

    out: Path
    """Folder for the accumulated JSON, the Markdown page and the plot."""
    fleet: str = "hard"
    """Preset of the synthetic fleet."""
    sequences: int = 300_000
    """Sequences of the fleet."""
    preset: str = "base"
    """Size of the network."""
    steps: int = 1700
    """Optimiser steps of the (large) model."""
    test: int = 3072
    """Held-out sequences with a label that are explained and scored."""
    runs: int | None = None
    """Seeds per row where a table repeats runs; by default the paper's number."""
    time_limit: float = 240.0
    """Seconds for one classical method."""
    dataset: Path | None = None
    """A dataset folder with rules or reasons instead of a made fleet."""
    model: Path | None = None
    """A model folder instead of a trained one."""
    work: Path | None = None
    """Folder that keeps fleets, models and results for the next rows; by default `work` inside `out`."""
    estimator: str | None = None
    """An estimator of one's own, `module:function`: one more row of Table 1."""
    rows: str | None = None
    """Which rows: names or patterns with `*`, separated by commas; by default all."""
    missing: bool = False
    """Only rows that are not there yet, measured with the same settings."""
    until: float | None = None
    """Begin no row after so many seconds; 0: only make pages and plots anew from the rows that are there."""
    sweep: bool = False
    """speed: also over one size at a time."""
    workers: int = 1
    device: str = "cpu"
    commit: str | None = None
    """Of the program, for the record."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("sequences", "steps", "test", "runs", "workers"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UsageError(f"{name}: expected at least 1, got {value}")
        if self.seed < 0:
            raise UsageError(f"seed: expected 0 or more, got {self.seed}")
        if not self.time_limit > 0:
            raise UsageError(f"time limit: expected a number of seconds above 0, got {self.time_limit}")
        if self.until is not None and not self.until >= 0:
            raise UsageError(f"until: expected a number of seconds, got {self.until}")

    @property
    def work_folder(self) -> Path:
        """Where fleets, models and results are kept."""
        return self.work or self.out / "work"

    @property
    def fleet_name(self) -> str:
        """The preset, or the name of the given dataset folder."""
        return self.fleet if self.dataset is None else self.dataset.resolve().name

    def repeats(self, papers: int) -> int:
        """How many seeds a row is run with."""
        return self.runs or papers

    def to_json(self) -> dict[str, Any]:
        """What decides a row's figures; a given dataset and a given model by their content."""
        kept = ("sequences", "preset", "steps", "test", "runs", "time_limit", "seed")
        return {"fleet": self.fleet_name, **{name: getattr(self, name) for name in kept}, **self._given}

    @cached_property
    def _given(self) -> dict[str, Any]:
        from oscar_causal.density.checkpoint import model_digest

        given: dict[str, Any] = {} if self.dataset is None else {"dataset": read_info(self.dataset).get("digest")}
        return given if self.model is None else {**given, "model": model_digest(self.model)}


QUICK: dict[str, Any] = {
    "fleet": "demo",
    "sequences": 8000,
    "preset": "tiny",
    "steps": 600,
    "test": 120,
    "runs": 3,
    "time_limit": 30.0,
}
"""`--quick`: the demo fleet and a tiny model."""


def bench_settings(out: Path, *, quick: bool = False, **given: Any) -> BenchSettings:
    """Settings from what was given; the rest are those of a full or a quick run.

    >>> bench_settings(Path("out"), quick=True, test=10).test
    10
    """
    known = {field.name for field in fields(BenchSettings)}
    unknown = sorted(set(given) - known)
    if unknown:
        raise UsageError(f"bench: unknown setting {unknown[0]!r}")
    chosen = {key: value for key, value in given.items() if value is not None}
    return BenchSettings(out, **{**(QUICK if quick else {}), **chosen})
