"""What ideal models answer about a solvable process, and the same answers with a small, reproducible error.

`ExactOracle` is a perfect Tf_x and Tf_y. `PerturbedOracle` is a model that is slightly wrong everywhere: its error is a
fixed function of the prefix (inert types included), so it is neither noise nor zero for events without influence.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from oscar_causal.data.solvable.law import FloatArray, IntArray
from oscar_causal.data.solvable.tables import Tables
from oscar_causal.errors import UsageError

_UintArray = npt.NDArray[np.uint64]


class ExactOracle:
    """Conditional laws of a process. Methods take event ids (..., l) and keep the leading shape."""

    def __init__(self, tables: Tables) -> None:
        self.length = tables.config.length
        self.event_names = tables.config.event_names
        self.label_names = tuple(label.name for label in tables.config.labels)
        self._tables = tables

    def next_event_probs(self, prefix: npt.ArrayLike) -> FloatArray:
        """P(x_l | x_0 .. x_{l-1}) for prefixes (..., l) with l < L, (..., V)."""
        flat, shape = self._read(prefix, 0, self.length - 1)
        *_, (history, state) = self._walk(flat)
        return self._next_events(flat, history, state).reshape(*shape, -1)

    def next_event_probs_along(self, event_ids: npt.ArrayLike) -> FloatArray:
        """P(x_i | x_<i) at every position i of (..., l), each given the events before it, (..., l, V)."""
        flat, shape = self._read(event_ids, 1, self.length)
        rows = [self._next_events(flat[:, :i], *at) for i, at in enumerate(self._walk(flat[:, :-1]))]
        return np.stack(rows, axis=1).reshape(*shape, len(rows), rows[0].shape[-1])

    def label_probs_prefix(self, prefix: npt.ArrayLike) -> FloatArray:
        """P(Y = 1 | x_0 .. x_{l-1}), all futures summed out, for prefixes (..., l) with l <= L, (..., Y)."""
        flat, shape = self._read(prefix, 0, self.length)
        *_, (history, state) = self._walk(flat)
        return self._labels(flat, history, state).reshape(*shape, -1)

    def label_probs_along(self, event_ids: npt.ArrayLike) -> FloatArray:
        """P(Y = 1 | x_<i) for i = 0 .. l along (..., l): before the first event, ..., after the last, (..., l+1, Y)."""
        flat, shape = self._read(event_ids, 0, self.length)
        rows = [self._labels(flat[:, :i], *at) for i, at in enumerate(self._walk(flat))]
        return np.stack(rows, axis=1).reshape(*shape, len(rows), rows[0].shape[-1])

    def label_probs(self, sequence: npt.ArrayLike) -> FloatArray:
        """P(Y = 1 | whole sequence) for sequences (..., L), a hidden driver summed out, (..., Y)."""
        flat, shape = self._read(sequence, self.length, self.length)
        return self.label_probs_prefix(flat).reshape(*shape, -1)

    def sequence_logp(self, sequence: npt.ArrayLike) -> FloatArray:
        """log P(x_0 .. x_{l-1}) of sequences or prefixes (..., l), (...)."""
        event_ids = np.asarray(sequence)
        probs = self.next_event_probs_along(event_ids)  # (..., l, V)
        own = np.take_along_axis(probs, event_ids[..., None], axis=-1)[..., 0]
        total: FloatArray = np.log(own).sum(axis=-1)
        return total

    def two_sided_probs(self, sequence: npt.ArrayLike) -> FloatArray:
        """P(x_i | all other events) at every position of one sequence (L,), (L, V)."""
        observed = self._whole(sequence)
        changed = np.tile(observed, (self.length, len(self.event_names), 1))  # (L, V, L)
        changed[np.arange(self.length), :, np.arange(self.length)] = np.arange(len(self.event_names))
        logp = self.sequence_logp(changed)  # (L, V)
        weights = np.exp(logp - logp.max(axis=1, keepdims=True))
        probs: FloatArray = weights / weights.sum(axis=1, keepdims=True)
        return probs

    def _read(self, event_ids: npt.ArrayLike, shortest: int, longest: int) -> tuple[IntArray, tuple[int, ...]]:
        """Check event ids (..., l); give them as (n, l) with their leading shape."""
        ids = np.asarray(event_ids)
        if ids.size == 0:
            ids = ids.astype(np.int64)
        if ids.ndim == 0 or not np.issubdtype(ids.dtype, np.integer):
            raise UsageError(f"event ids: expected an integer array (..., l), got {ids.dtype} of shape {ids.shape}")
        if not shortest <= ids.shape[-1] <= longest:
            raise UsageError(f"event ids: expected {shortest} to {longest} events, got {ids.shape[-1]}")
        if ids.size and not 0 <= ids.min() <= ids.max() < len(self.event_names):
            raise UsageError(f"event ids: expected 0 to {len(self.event_names) - 1}, got {ids.min()} to {ids.max()}")
        rows = int(np.prod(ids.shape[:-1]))
        return ids.reshape(rows, ids.shape[-1]).astype(np.int64), ids.shape[:-1]

    def _whole(self, sequence: npt.ArrayLike) -> IntArray:
        """Check one whole sequence (L,)."""
        flat, shape = self._read(sequence, self.length, self.length)
        if shape:
            raise UsageError(f"sequence: expected one sequence ({self.length},), got shape {(*shape, self.length)}")
        return flat.reshape(-1)

    def _walk(self, flat: IntArray) -> list[tuple[IntArray, IntArray]]:
        return list(self._tables.walk(self._tables.lump(flat)))

    def _next_events(self, prefix: IntArray, history: IntArray, state: IntArray) -> FloatArray:
        """Law of the event after each prefix (n, l) that leads to the given node, (n, V)."""
        i = prefix.shape[1]
        given = self._tables.driver_given[i][:, state]  # (D, n)
        return self._tables.spread(np.einsum("dn,dnk->nk", given, self._tables.law.probs[i][:, history]))

    def _labels(self, prefix: IntArray, history: IntArray, state: IntArray) -> FloatArray:
        """P(Y = 1) after each prefix (n, l) that leads to the given node, (n, Y)."""
        probs: FloatArray = self._tables.label_probs[prefix.shape[1]][history, state]
        return probs


class PerturbedOracle(ExactOracle):
    """An oracle whose log-odds are off by a fixed function of the prefix.

    Each label's log-odds move by at most `error`, so each probability by at most error / 4; each event's log-weight
    moves by at most `error` before the law is normalised again. Which way is decided by a hash of (seed, prefix).
    """

    def __init__(self, tables: Tables, error: float, seed: int) -> None:
        if not 0 <= error < np.inf or seed < 0:
            raise UsageError(f"perturbed oracle: expected a finite error and a seed from 0, got {error} and {seed}")
        super().__init__(tables)
        self.error = error
        self.seed = seed

    def _next_events(self, prefix: IntArray, history: IntArray, state: IntArray) -> FloatArray:
        exact = super()._next_events(prefix, history, state)
        weights = exact * np.exp(self.error * self._signs(prefix, exact.shape[1], salt=1))
        normalised: FloatArray = weights / weights.sum(axis=1, keepdims=True)
        return normalised

    def _labels(self, prefix: IntArray, history: IntArray, state: IntArray) -> FloatArray:
        exact = super()._labels(prefix, history, state)
        odds = np.exp(self.error * self._signs(prefix, exact.shape[1], salt=2))
        moved: FloatArray = exact * odds / (1 - exact + exact * odds)
        return moved

    def _signs(self, prefix: IntArray, width: int, *, salt: int) -> FloatArray:
        """Numbers in [-1, 1) keyed by (seed, prefix, column), (n, width)."""
        key = _mix(np.full(len(prefix), 2 * self.seed + salt, dtype=np.uint64))
        for column in prefix.T:
            key = _mix(key ^ (column.astype(np.uint64) + np.uint64(1)))
        keys = _mix(key[:, None] ^ _mix(np.arange(width, dtype=np.uint64) + np.uint64(1)))  # (n, width)
        return (keys >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1


def _mix(keys: _UintArray) -> _UintArray:
    """Scramble 64-bit integers (a bijection: add, then twice xor-shift and multiply by an odd number, modulo 2^64)."""
    keys = keys + np.uint64(0x9E3779B97F4A7C15)
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))
