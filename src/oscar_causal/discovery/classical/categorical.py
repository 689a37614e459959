"""Dense tables of categorical variables (Bayesian-network benchmarks, static covariates): counts for the tests.

Values are codes 0, 1, 2, ...; one pass over the rows counts every candidate inside every stratum that occurs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from oscar_causal.discovery.classical.ci_tests import Associations, Statistic, table_associations
from oscar_causal.errors import DataError

Int64 = npt.NDArray[np.int64]
CELLS_AT_ONCE = 1 << 23
"""Most counts held at a time; more candidates are taken in turns."""


class CategoricalTable:
    """Rows of codes, one column per variable."""

    def __init__(self, codes: npt.NDArray[Any], names: Sequence[str]) -> None:
        if codes.ndim != 2 or codes.shape[1] != len(names):
            raise DataError(f"table: expected one column for each of {len(names)} names, got shape {codes.shape}")
        if not np.issubdtype(codes.dtype, np.integer) or (codes.size and codes.min() < 0):
            raise DataError("table: expected codes 0, 1, 2, ..., got other values")
        self.names = tuple(names)
        self.n_rows = len(codes)
        self._codes = np.ascontiguousarray(codes, np.int64)
        self._sizes = self._codes.max(axis=0, initial=-1) + 1

    @property
    def n_columns(self) -> int:
        """Number of variables."""
        return len(self.names)

    def associations(self, target: int, given: Sequence[int], candidates: Int64, statistic: Statistic) -> Associations:
        """Test every candidate against `target` inside the strata of `given`."""
        strata, n_strata = self._strata(given)
        width, height = int(self._sizes[candidates].max(initial=1)), int(self._sizes[target])
        turn = max(1, CELLS_AT_ONCE // max(n_strata * width * height, 1))
        parts = []
        for begin in range(0, len(candidates), turn):
            chosen = candidates[begin : begin + turn]
            cell = (strata * width)[:, None] + self._codes[:, chosen]  # (rows, C)
            cell = (cell + (np.arange(len(chosen)) * n_strata * width)) * height + self._codes[:, [target]]
            shape = (len(chosen), n_strata, width, height)
            counts = np.bincount(cell.ravel(), minlength=int(np.prod(shape))).reshape(shape)
            parts.append(table_associations(chosen, counts, statistic))
        return _join(parts)

    def entropies(self, columns: Int64) -> npt.NDArray[np.float64]:
        """Entropy of each column in nats."""
        shares = [np.bincount(self._codes[:, column]) / self.n_rows for column in columns]
        return np.array([-np.sum(special.xlogy(share, share)) for share in shares])

    def _strata(self, given: Sequence[int]) -> tuple[Int64, int]:
        strata, size = np.zeros(self.n_rows, np.int64), 1
        for column in given:
            cell = strata * self._sizes[column] + self._codes[:, column]
            used = np.zeros(size * int(self._sizes[column]), bool)
            used[cell] = True
            number = np.cumsum(used) - 1  # strata that occur, numbered anew
            strata, size = number[cell], int(number[-1]) + 1
        return strata, size


def _join(parts: Sequence[Associations]) -> Associations:
    if len(parts) == 1:
        return parts[0]
    if not parts:
        none = np.zeros(0, np.int64)
        return Associations(none, np.zeros(0), none, none)
    return Associations(
        np.concatenate([part.candidates for part in parts]),
        np.concatenate([part.statistic for part in parts]),
        np.concatenate([part.dof for part in parts]),
        np.concatenate([part.rows for part in parts]),
    )
