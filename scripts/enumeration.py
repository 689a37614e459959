"""Every sequence of an exactly solvable process, with its probability and an oracle's forecast along it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
import numpy.typing as npt

from oscar_causal.data.rules import EventIndex, parse, reasons
from oscar_causal.data.solvable import SolvableProcess, bernoulli_entropy, bernoulli_kl

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Enumeration:
    """All M sequences of relevant types; an inert event at position i is written as inert type i.

    Inert types enter every law as one lump, so each row stands for all sequences that differ in the inert types alone.
    """

    process: SolvableProcess
    label: int
    sequences: Ints
    """(M, L) type ids."""
    probs: Floats
    """(M,) they add up to 1."""
    forecast: Floats
    """(M, L + 1) P(Y | first events), before the first event to after the last."""

    @cached_property
    def gain_nats(self) -> Floats:
        """Eq. 1 at every position, (M, L)."""
        return bernoulli_kl(self.forecast[:, 1:], self.forecast[:, :-1])

    @cached_property
    def drop_nats(self) -> Floats:
        """The right side of Eq. 2 at every position, (M, L)."""
        return bernoulli_entropy(self.forecast[:, :-1]) - bernoulli_entropy(self.forecast[:, 1:])

    @property
    def entropy(self) -> float:
        """H(Y)."""
        return float(bernoulli_entropy(self.forecast[0, 0]))

    def causes(self) -> list[frozenset[int]]:
        """For each sequence the types that made one of the label's rules hold there; empty where none holds."""
        rows, length = self.sequences.shape
        offsets = np.arange(rows + 1) * length
        ids = {name: k for k, name in enumerate(self.process.event_names)}
        index = EventIndex(offsets, self.sequences.reshape(-1), None, ids)
        found: list[set[int]] = [set() for _ in range(rows)]
        for effect in self.process.config.labels[self.label].effects:
            for own, why in zip(found, reasons(parse(effect.rule), index, np.arange(rows)), strict=True):
                own.update(ids[item.event] for item in why if item.role == "cause")
        return [frozenset(own) for own in found]


def enumerate_all(process: SolvableProcess, label: int = 0) -> Enumeration:
    """Every sequence of a process."""
    relevant, length = len(process.config.events), process.length
    symbols = np.array(list(product(range(relevant + (process.config.inert > 0)), repeat=length)))  # (M, L)
    sequences = np.where(symbols < relevant, symbols, relevant + np.arange(length))
    laws = process.next_event_probs_along(sequences)  # (M, L, V)
    lumped = np.concatenate([laws[..., :relevant], laws[..., relevant:].sum(-1, keepdims=True)], axis=-1)
    steps = np.take_along_axis(lumped, symbols[..., None], axis=-1)[..., 0]  # (M, L)
    forecast = process.label_probs_along(sequences)[..., label]
    return Enumeration(process, label, sequences, steps.prod(axis=1), forecast)
