"""Worlds as grounds: a training part without reasons, test sequences with them, some more to choose settings by."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from oscar_causal.data.folders import read_json
from oscar_causal.data.sequences import Dataset, read_dataset
from oscar_causal.data.synthetic.worlds.write import world_of, write_world
from oscar_causal.score.bench.ladder.interface import Answers, Part, Reasons, Truth
from oscar_causal.score.matching import Pair


@dataclass(frozen=True)
class WorldGround:
    """One world of one seed."""

    kind: str
    seed: int
    work: Path
    train: int = 20_000
    test: int = 1_500
    judge: int = 300
    """Sequences with reasons on which settings are chosen."""

    @property
    def name(self) -> str:
        """See `Ground`."""
        return f"{self.kind}/{self.seed}"

    @property
    def folder(self) -> Path:
        """Of its two datasets."""
        return self.work / f"{self.kind}-{self.seed}-{self.train}-{self.test}"

    def make(self) -> str:
        """See `Ground`."""
        if self.folder.exists():
            return f"{self.name}: there already"
        begun = time.monotonic()
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        write_world(self.kind, self.seed, self.folder, train=self.train, test=self.test + self.judge)
        return f"{self.name}: made in {time.monotonic() - begun:.0f} s"

    @property
    def digest(self) -> str:
        """See `Ground`."""
        parts = (read_json(self.folder / part / "dataset.json")["digest"] for part in ("train", "test"))
        return " ".join([*map(str, parts), str(self.test)])

    @cached_property
    def _explained(self) -> Dataset:
        return read_dataset(self.folder / "test")

    def parts(self) -> Iterator[Part]:
        """See `Ground`."""
        train, world = read_dataset(self.folder / "train"), world_of(self.kind, self.seed)
        rows = np.arange(self.test + self.judge)
        test, judge = (self._explained.take(rows[part]) for part in (slice(self.test), slice(self.test, None)))
        names = {m.label: frozenset(world.event_names[m.types[t]] for t in m.causes) for m in world.mechanisms}
        known = read_reasons(judge)
        yield Part(train, test, train, judge, known, self.folder / "models", self.seed, world=world, boundaries=names)

    @property
    def scored(self) -> Truth:
        """See `Ground`."""
        return read_reasons(self._explained.take(np.arange(self.test)))

    def own(self, answers: Answers) -> Mapping[str, float]:
        """See `Ground`: worlds have no field of their own."""
        return {}

    def facts(self) -> Mapping[str, Any]:
        """See `Ground`: shares of decoys and neutral types, F1 of the perfect boundary by presence."""
        return dict(self._explained.info["truth"])


def read_reasons(data: Dataset) -> dict[Pair, Reasons]:
    """Reasons of every label that came, also where there are none."""
    assert data.path is not None  # noqa: S101 - worlds are read from folders
    causes: dict[Pair, set[str]] = {
        (data.sequence_ids[i].as_py(), label): set() for i in range(len(data)) for label in data.labels_of(i)
    }
    neutral: dict[Pair, set[str]] = {pair: set() for pair in causes}
    for row in pq.read_table(data.path / "why").to_pylist():
        pair = (row["sequence_id"], row["label"])
        if pair in causes and row["role"] in ("cause", "neutral"):
            (causes if row["role"] == "cause" else neutral)[pair].add(row["event"])
    return {pair: Reasons(frozenset(found), frozenset(neutral[pair])) for pair, found in causes.items()}
