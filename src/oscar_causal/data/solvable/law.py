"""The order-2 law of the next event, as tables over the histories that it can tell apart.

Without ties the history is the last two events. Tied events are drawn independently, all from the history before their
tie, and later events see the tie in canonical (sorted) order: so the order inside a tie carries no information, and the
probability of a sequence does not change when tied events change places.

The lump of inert types is one symbol here. K symbols; the marker K stands for "before the start".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from oscar_causal.data.solvable.config import INERT, SolvableConfig
from oscar_causal.errors import UsageError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_History = tuple[int, int, tuple[int, ...]]
"""The two symbols before the running tie, and the (two largest) symbols of the tie so far."""


@dataclass(frozen=True)
class EventLaw:
    """Histories, their steps and next-symbol probabilities, one table per position i = 0 .. L-1."""

    step: tuple[IntArray, ...]
    """step[i][h, x]: the history after symbol x at position i, (H_i, K); after the last position there is only one."""
    probs: tuple[FloatArray, ...]
    """probs[i][d, h, x]: probability of symbol x at position i while the hidden driver is in state d, (D, H_i, K)."""
    driver: FloatArray
    """P(driver state), (D,); D = 1 without a driver."""
    within_inert: FloatArray
    """Share of each inert type inside the lump, (inert,)."""

    @property
    def histories(self) -> tuple[int, ...]:
        """Number of histories for each prefix length 0 .. L."""
        return tuple(len(table) for table in self.step) + (1,)


def build_law(config: SolvableConfig) -> EventLaw:
    """Tabulate the law of a process."""
    by_pair = _probs_by_pair(config)  # (D, K+1, K+1, K)
    if not by_pair.all():
        raise UsageError("solvable process, weights: expected every type to keep a positive probability, got 0 for one")
    symbols = by_pair.shape[-1]
    layer: list[_History] = [(symbols, symbols, ())]
    steps, probs = [], []
    for i in range(config.length):
        pairs = np.array([history[:2] for history in layer])  # (H_i, 2)
        probs.append(by_pair[:, pairs[:, 0], pairs[:, 1]])  # (D, H_i, K)
        after = [[_advance(history, x, tied=i + 1 in config.tied) for x in range(symbols)] for history in layer]
        layer = sorted({history for row in after for history in row})
        index = {history: h for h, history in enumerate(layer)}
        if i + 1 == config.length:  # nothing follows: all histories are alike
            index = dict.fromkeys(layer, 0)
        steps.append(np.array([[index[history] for history in row] for row in after], dtype=np.int64))  # (H_i, K)
    driver = np.ones(1) if config.hidden is None else np.array([1 - config.hidden.rate, config.hidden.rate])
    return EventLaw(tuple(steps), tuple(probs), driver, _within_inert(config))


def _advance(history: _History, symbol: int, *, tied: bool) -> _History:
    """The history that the next position sees; `tied` = it shares the timestamp of `symbol`."""
    older, newer, tie = history
    tie = tuple(sorted((*tie, symbol))[-2:])
    if tied:
        return older, newer, tie
    older, newer = (older, newer, *tie)[-2:]
    return older, newer, ()


def _probs_by_pair(config: SolvableConfig) -> FloatArray:
    """P(next symbol | driver, symbol two before, symbol one before), (D, K+1, K+1, K)."""
    names = config.events + ((INERT,) if config.inert else ())
    symbols = len(names)
    weights = np.array(config.weights or (0.0,) * len(config.events))
    logits = np.zeros((symbols + 1, symbols + 1, symbols))
    logits += np.append(weights, [config.inert_weight] * (config.inert > 0))
    for pull in config.pulls:
        source, target = names.index(pull.source), names.index(pull.target)
        where = (slice(None), source) if pull.lag == 1 else (source, slice(None))
        logits[*where, target] += pull.weight
    logits[:, np.arange(symbols), np.arange(symbols)] += config.repeat
    logits += config.memory * np.random.default_rng(config.seed).standard_normal(logits.shape)
    if config.hidden is None:
        return _softmax(logits)[None]
    return _drive(logits, names.index(config.hidden.event), (config.hidden.low, config.hidden.high))


def _softmax(logits: FloatArray) -> FloatArray:
    weights: FloatArray = np.exp(logits - logits.max(axis=-1, keepdims=True))
    probs: FloatArray = weights / weights.sum(axis=-1, keepdims=True)
    return probs


def _drive(logits: FloatArray, driven: int, rates: tuple[float, float]) -> FloatArray:
    """Give one symbol its probability by driver state; the others share the rest as the logits say, (2, ..., K)."""
    others = np.arange(logits.shape[-1]) != driven
    probs = np.empty((2, *logits.shape))
    for state, rate in enumerate(rates):
        probs[state][..., driven] = rate
        probs[state][..., others] = (1 - rate) * _softmax(logits[..., others])
    return probs


def _within_inert(config: SolvableConfig) -> FloatArray:
    shares = np.arange(1.0, config.inert + 1) ** -config.inert_tail
    return shares / shares.sum() if config.inert else shares
