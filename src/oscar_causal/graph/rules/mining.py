"""What the data themselves say: where each label was observed, where events usually stand, which rules hold where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from oscar_causal.data.rules import And, EventIndex, Not, Or, Rule, evaluate
from oscar_causal.data.rules.logic import distinct_atoms, plain_atom
from oscar_causal.data.rules.tree import Atom
from oscar_causal.data.sequences import Dataset

Bool = npt.NDArray[np.bool_]
Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]
EXAMPLES = 10
"""Sequences named as examples of a kind."""
FEW_PLACES = 5
"""With fewer occurrences among the positives, an event's places are taken from all sequences."""


@dataclass(frozen=True)
class Mined:
    """A labelled dataset, indexed for rules."""

    dataset: Dataset

    @cached_property
    def index(self) -> EventIndex:
        """Where each event occurs."""
        data = self.dataset
        ids = {name: number for number, name in enumerate(data.event_names)}
        return EventIndex(data.events.offsets, data.events.ids, data.times, ids)

    @cached_property
    def _holders(self) -> dict[str, Int64]:
        """Label -> the sequences that have it."""
        order = np.argsort(self.dataset.labels.ids, kind="stable")
        rows = self.dataset.labels.rows()[order]
        bounds = np.searchsorted(self.dataset.labels.ids[order], np.arange(len(self.dataset.label_names) + 1))
        return {name: rows[bounds[k] : bounds[k + 1]] for k, name in enumerate(self.dataset.label_names)}

    def with_label(self, label: str) -> Bool:
        """Which sequences have the label: (n,)."""
        mask = np.zeros(len(self.dataset), bool)
        mask[self._holders.get(label, np.empty(0, np.int64))] = True
        return mask

    def places(self, event: str, label: str) -> Float64:
        """Where an event stands, as a share of its sequence's length: in sequences with the label, or else in all."""
        rows = self.index.rows_of(event)
        owner = self.index.sequence_of[rows]
        place = (rows - self.index.offsets[owner] + 0.5) / self.dataset.lengths[owner]
        among = self.with_label(label)[owner]
        return place[among] if among.sum() >= FEW_PLACES else place

    def ids(self, mask: Bool) -> tuple[str, ...]:
        """Ids of the marked sequences."""
        return tuple(self.dataset.sequence_ids.filter(pa.array(mask)).to_pylist())

    def patterns(self, events: Sequence[str]) -> Int64:
        """Which of at most 62 events each sequence holds, as a number with bit i for event i: (n,)."""
        pattern = np.zeros(len(self.dataset), np.int64)
        for bit, event in enumerate(events):
            pattern[np.unique(self.index.sequence_of[self.index.rows_of(event)])] |= 1 << bit
        return pattern


def agreement(rule: Rule, label: str, mined: Mined) -> float:
    """F1 of a rule against the observed labels."""
    holds, has = evaluate(rule, mined.index), mined.with_label(label)
    total = int(holds.sum() + has.sum())
    return 2 * int((holds & has).sum()) / total if total else 0.0


def pivotal(rule: Rule, index: EventIndex) -> dict[Atom, tuple[Bool, Bool]]:
    """For each atom of the rule: the sequences where it holds and decides, and those where it fails and decides.

    An atom decides where the rule would say otherwise if the atom alone were turned round.
    """
    atoms = distinct_atoms([rule])
    masks = {atom: evaluate(atom, index) for atom in atoms}
    found = {}
    for atom in atoms:
        decides = with_masks(rule, {**masks, atom: np.ones_like(masks[atom])}) != with_masks(
            rule, {**masks, atom: np.zeros_like(masks[atom])}
        )
        found[atom] = (decides & masks[atom], decides & ~masks[atom])
    return found


def with_masks(rule: Rule, masks: dict[Atom, Bool]) -> Bool:
    """Where the rule holds, given where each of its atoms does: (n,)."""
    match rule:
        case Not(item):
            return ~with_masks(item, masks)
        case And(items):
            every: Bool = np.logical_and.reduce([with_masks(item, masks) for item in items])
            return every
        case Or(items):
            some: Bool = np.logical_or.reduce([with_masks(item, masks) for item in items])
            return some
        case _:
            return masks[plain_atom(rule)]
