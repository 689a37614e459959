"""The boundary from a pool that predicts labels of other folds best: features join one by one, and leave again.

A boundary is judged by the log likelihood that `Readings.log_likelihood` gives it, minus a price for each of its
features: many are tried, and one that adds next to nothing still hides others from a reader. Asked for are the few
features only that add most by counts alone (`gains.parted`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from oscar_causal.discovery.additive import additive_weights
from oscar_causal.discovery.gains import parted
from oscar_causal.discovery.pools import Pool
from oscar_causal.discovery.reading import cross_fold_likelihood

Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]
LIMIT = 16
"""Features of a boundary from which no more join."""
TRIED = 4
"""Features whose likelihood is asked for before one joins."""


class Search:
    """Boundaries from one pool, as the places of their features; each is judged once."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self._sums = pool.counts.reshape(len(pool.codes), -1)
        self._numbers = pool.counts.sum(2)  # (patterns, 2)
        self._holds = _bits(pool.codes, range(len(pool.atoms)))
        self._known: dict[frozenset[int], float] = {}

    def score(self, chosen: Sequence[int]) -> float:
        """The log likelihood of the labels, each predicted from all other folds, minus the price of the features."""
        key = frozenset(chosen)
        if key not in self._known:
            price = sum(self.pool.prices[k] for k in sorted(key))
            self._known[key] = cross_fold_likelihood(*self._counts(chosen)) - price
        return self._known[key]

    def weights(self, chosen: Sequence[int]) -> Float64:
        """What each feature, in the order of the pool, adds to the log odds of the label given the others."""
        holds, counts = self._counts(chosen)
        number, came = counts.sum(2).T.astype(np.float64)
        return additive_weights(holds, number, came)[1:]

    def gains(self, chosen: Sequence[int]) -> Float64:
        """Nats that each feature of the pool would add, by counts alone."""
        _, order, begins = self._strata(chosen)
        whole, came = np.add.reduceat(self._numbers[order], begins, axis=0).T
        mixed = np.flatnonzero((came > 0) & (came < whole))
        ends = np.append(begins[1:], len(order))
        total = np.zeros(len(self.pool.atoms))
        for stratum in mixed.tolist():
            inside = order[begins[stratum] : ends[stratum]]
            number, positives = self._numbers[inside].T @ self._holds[inside]  # (features,) each
            total += parted(whole[stratum], came[stratum], number, positives)
        return total

    def improve(self, chosen: Sequence[int]) -> list[int]:
        """Forward, then backward."""
        return self.backward(self.forward(chosen))

    def forward(self, chosen: Sequence[int]) -> list[int]:
        """Each time the feature joins with which the score is best, as long as it rises."""
        found, best = list(chosen), self.score(chosen)
        while len(found) < LIMIT:
            gains = self.gains(found)
            others = [k for k in np.argsort(-gains, kind="stable").tolist() if gains[k] > 0 and k not in found][:TRIED]
            scores = [self.score([*found, k]) for k in others]
            if not scores or max(scores) <= best:
                break
            best = max(scores)
            found.append(others[scores.index(best)])
        return found

    def backward(self, chosen: Sequence[int]) -> list[int]:
        """Each time the feature leaves without which the score is best, as long as it does not fall."""
        found, best = list(chosen), self.score(chosen)
        while found:
            scores = [self.score([k for k in found if k != out]) for out in found]
            if max(scores) < best:
                break
            best = max(scores)
            found.pop(scores.index(best))
        return found

    def _counts(self, chosen: Sequence[int]) -> tuple[npt.NDArray[np.bool_], Int64]:
        """Which of the chosen features, in the order of the pool, hold in each of their patterns, and its counts."""
        codes, order, begins = self._strata(chosen)
        counts = np.add.reduceat(self._sums[order], begins, axis=0)
        return _bits(codes, sorted(chosen)), counts.reshape(len(codes), *self.pool.counts.shape[1:])

    def _strata(self, chosen: Sequence[int]) -> tuple[npt.NDArray[np.uint64], Int64, Int64]:
        """Patterns of the chosen features, the pool's patterns in their order, and where in it each begins."""
        mask = np.uint64(sum(1 << k for k in chosen))
        masked = self.pool.codes & mask
        order = np.argsort(masked, kind="stable")
        begins = np.flatnonzero(np.append(True, np.diff(masked[order]) > 0))
        return masked[order][begins], order, begins


def _bits(codes: npt.NDArray[np.uint64], places: Sequence[int]) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = (codes[:, None] >> np.array(places, np.uint64) & np.uint64(1)).astype(bool)
    return found
