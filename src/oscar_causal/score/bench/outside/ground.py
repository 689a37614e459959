"""Outside sets as grounds: raw files to a dataset, folds to parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from oscar_causal.data.digest import ContentDigest
from oscar_causal.data.schema import conform
from oscar_causal.data.sequences import Dataset, read_dataset
from oscar_causal.data.subjects import held_out
from oscar_causal.data.writer import write_dataset
from oscar_causal.score.bench.ladder.interface import Answers, Part, Truth
from oscar_causal.score.bench.outside import bpic, causrca, fault_trees, fines, telecom
from oscar_causal.score.bench.outside.outside_set import OutsideSet

SETS: Mapping[str, ModuleType] = {
    "telecom": telecom,
    "fines": fines,
    "bpic2011": bpic,
    "causrca": causrca,
    "fault trees": fault_trees,
}
"""Name -> its adapter: `FOLDER` and `FILES` under the data folder, `load(folder, seed, sequences)`."""
SIMULATED = 12_000
"""Sequences that are simulated from the fault trees."""
JUDGED = 0.25
"""Share of the training subjects on which settings are chosen."""


@dataclass(frozen=True)
class OutsideGround:
    """One set, split and simulated by one seed."""

    kind: str
    seed: int
    data: Path
    """Folder of all sets."""
    work: Path
    sequences: int = SIMULATED

    @property
    def name(self) -> str:
        """See `Ground`."""
        return f"{self.kind}/{self.seed}"

    @property
    def adapter(self) -> ModuleType:
        """What reads the set."""
        return SETS[self.kind]

    def missing(self) -> list[str]:
        """Which of the files it needs are not there."""
        return [name for name in self.adapter.FILES if not any((self.data / self.adapter.FOLDER).glob(name))]

    @cached_property
    def outside(self) -> OutsideSet:
        """The set from its raw files."""
        found: OutsideSet = self.adapter.load(self.data / self.adapter.FOLDER, self.seed, self.sequences)
        return found

    @cached_property
    def folder(self) -> Path:
        """Its dataset, named by content."""
        digest = ContentDigest()
        digest.update(conform(self.outside.sequences))
        return self.work / f"outside-{self.kind.replace(' ', '-')}-{digest.hexdigest()[:12]}"

    def make(self) -> str:
        """See `Ground`."""
        if self.folder.exists():
            return f"{self.name}: there already"
        write_dataset(self.folder, [self.outside.sequences])
        return f"{self.name}: made"

    @cached_property
    def sequences_read(self) -> Dataset:
        """What the methods see."""
        return read_dataset(self.folder)

    @property
    def digest(self) -> str:
        """See `Ground`; the folds are of the seed, which is in the name."""
        return str(self.sequences_read.info["digest"])

    @cached_property
    def scored(self) -> Truth:
        """See `Ground`."""
        tested = set(self.sequences_read.take(self.outside.fold >= 0).sequence_ids.to_pylist())
        return {pair: reasons for pair, reasons in self.outside.truth.items() if pair[0] in tested}

    def parts(self) -> Iterator[Part]:
        """See `Ground`; test: sequences with a scored pair."""
        known = {name for name, _ in self.outside.truth}
        asked = np.array([name in known for name in self.sequences_read.sequence_ids.to_pylist()], bool)
        for fold in sorted(set(self.outside.fold.tolist()) - {-1}):
            inside = self.outside.fold == fold
            if (inside & asked).any():
                yield self._part(self.sequences_read.take(~inside), self.sequences_read.take(inside & asked))

    def _part(self, train: Dataset, test: Dataset) -> Part:
        held = held_out(train.subject_ids, JUDGED, seed=self.seed + 1)
        learn, judge = train.take(~held), train.take(held)
        names = set(judge.sequence_ids.to_pylist()) if len(learn.labels.ids) else set()
        known = {pair: reasons for pair, reasons in self.outside.truth.items() if pair[0] in names}
        models, unit = self.folder.with_name(f"{self.folder.name}-models"), self.outside.unit
        return Part(train, test, learn, judge, known, models, self.seed, unit, boundaries=self._boundaries)

    @cached_property
    def _boundaries(self) -> dict[str, frozenset[str]]:
        causes: dict[str, set[str]] = {}
        for (_, label), reasons in self.outside.truth.items():
            causes.setdefault(label, set()).update(map(self.outside.unit, reasons.causes))
        return {label: frozenset(found) for label, found in causes.items()}

    def own(self, answers: Answers) -> Mapping[str, float]:
        """See `Ground`."""
        return self.outside.own(answers, self.scored)

    def facts(self) -> Mapping[str, Any]:
        """See `Ground`."""
        data, outside = self.sequences_read, self.outside
        return {
            "sequences": len(data),
            "types": len(data.event_names),
            "labels": len(data.label_names),
            "about": (self.adapter.__doc__ or "").strip(),
            "remarks": list(outside.remarks),
            "published": [[item.method, item.figure, item.value, item.remark] for item in outside.published],
        }
