"""Everything about a process that is summed once: who follows whom, what each prefix says about driver and labels.

A prefix of i events is summarised by its *node*: a history h (of the event law) and a state s (of the label machine).
Two prefixes of one length with the same node have the same future, the same P(Y | prefix), the same P(driver | prefix).
Tables over nodes give every conditional law by dynamic programming, exactly, in float64.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from oscar_causal.data.solvable.config import SolvableConfig
from oscar_causal.data.solvable.law import FloatArray, IntArray, build_law
from oscar_causal.data.solvable.outcome import build_outcome
from oscar_causal.errors import UsageError

MAX_CELLS = 40_000_000
"""Most numbers in all tables of label probabilities together (320 MB)."""


class Tables:
    """The tables of one process. Lists run over prefix lengths i = 0 .. L, or over positions i = 0 .. L-1."""

    def __init__(self, config: SolvableConfig) -> None:
        self.config = config
        self.law = build_law(config)
        self.outcome = build_outcome(config)
        self.symbols: int = self.law.probs[0].shape[-1]
        self.relevant = len(config.events)
        drivers, states, labels = self.outcome.probs.shape
        cells = sum(self.law.histories) * states * max(labels, self.symbols) * (drivers + 1)
        if cells > MAX_CELLS:
            raise UsageError(f"solvable process: expected tables of at most {MAX_CELLS:,} cells, got {cells:,}")
        self.state_step = [self.outcome.step[int(i in config.tied)] for i in range(config.length)]
        """state_step[i][s, x]: label state after symbol x at position i, (S, K+1)."""
        self.driver_given = [self._driver_given(i) for i in range(config.length + 1)]
        """P(driver | i events that lead to state s), (D, S)."""
        self.values_by_driver = self._values_by_driver()
        """E[Y | node, driver] with the future drawn by the process, (D, H_i, S, Y)."""
        self.label_probs = [
            np.einsum("ds,dhsy->hsy", given, values)
            for given, values in zip(self.driver_given, self.values_by_driver, strict=True)
        ]
        """P(Y = 1 | prefix), (H_i, S, Y)."""

    def _driver_given(self, length: int) -> FloatArray:
        hidden, counts = self.config.hidden, self.outcome.driven
        if hidden is None:
            return np.ones((1, len(counts)))
        rates = np.array([[hidden.low], [hidden.high]])
        others = np.maximum(length - counts, 0)  # states with more occurrences than events are never met
        weights = self.law.driver[:, None] * rates**counts * (1 - rates) ** others  # (D, S)
        shares: FloatArray = weights / weights.sum(axis=0)
        return shares

    def _values_by_driver(self) -> list[FloatArray]:
        values = [self.outcome.probs[:, None]]  # (D, 1, S, Y)
        for i in reversed(range(self.config.length)):
            probs, step = self.law.probs[i], self.law.step[i]
            value = np.zeros((*probs.shape[:2], *self.outcome.probs.shape[1:]))  # (D, H_i, S, Y)
            for x in range(self.symbols):
                value += probs[:, :, x, None, None] * values[-1][:, step[:, x]][:, :, self.state_step[i][:, x]]
            values.append(value)
        return values[::-1]

    def start(self) -> FloatArray:
        """All mass on the node of the empty prefix, (1, S)."""
        mass = np.zeros((1, len(self.outcome.driven)))
        mass[0, self.outcome.start] = 1
        return mass

    def next_probs(self, position: int) -> FloatArray:
        """P(symbol at `position` | node), driver summed out, (H_i, S, K)."""
        probs: FloatArray = np.einsum("ds,dhk->hsk", self.driver_given[position], self.law.probs[position])
        return probs

    def push(self, position: int, mass: FloatArray) -> FloatArray:
        """Move mass on (node, symbol) pairs, (H_i, S, K), to the nodes after that symbol, (H_{i+1}, S)."""
        states = mass.shape[1]
        into = self.law.step[position][:, None, :] * states + self.state_step[position][None, :, : self.symbols]
        size = self.law.histories[position + 1] * states
        moved: FloatArray = np.bincount(into.ravel(), weights=mass.ravel(), minlength=size).astype(np.float64)
        return moved.reshape(-1, states)

    def masses(self, driver: int | None = None) -> Iterator[FloatArray]:
        """P(node of the first i events [| driver]) for i = 0, 1, ..., L-1, (H_i, S)."""
        mass = self.start()
        for i in range(self.config.length):
            yield mass
            probs = self.next_probs(i) if driver is None else self.law.probs[i][driver][:, None]
            mass = self.push(i, mass[..., None] * probs)

    def after(self, position: int, symbol: int, table: FloatArray) -> FloatArray:
        """A table of the nodes after a position, read where `symbol` leads from each node before it, (H_i, S, ...)."""
        picked: FloatArray = table[self.law.step[position][:, symbol]][:, self.state_step[position][:, symbol]]
        return picked

    def walk(self, symbols: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
        """History and state of every prefix of sequences of symbols (n, l): l + 1 pairs of arrays (n,)."""
        history = np.zeros(len(symbols), dtype=np.int64)
        state = np.full(len(symbols), self.outcome.start)
        yield history, state
        for i, column in enumerate(symbols.T):
            history, state = self.law.step[i][history, column], self.state_step[i][state, column]
            yield history, state

    def lump(self, event_ids: IntArray) -> IntArray:
        """Event ids to symbols: all inert types become one."""
        return np.minimum(event_ids, self.relevant)

    def lump_probs(self, probs: FloatArray) -> FloatArray:
        """Probabilities of types (..., V) to those of symbols (..., K)."""
        lump = probs[..., self.relevant :].sum(axis=-1, keepdims=True)
        return np.concatenate([probs[..., : self.relevant], lump], axis=-1)[..., : self.symbols]

    def spread(self, probs: FloatArray) -> FloatArray:
        """Probabilities of symbols (..., K) to those of types (..., V)."""
        inert = probs[..., self.relevant :] * self.law.within_inert
        return np.concatenate([probs[..., : self.relevant], inert], axis=-1)
