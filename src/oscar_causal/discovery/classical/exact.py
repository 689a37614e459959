"""The exact law of G² and χ² on binary data: what the tests say where counts are too small for the χ² law.

The χ² law errs both ways. It calls three coincidences in sixty rows one in a million (G² = 23.8, p = 1e-6) where the
truth is 3e-5; over 29,100 candidates that is thirty times the stated error rate. And it charges a full degree of
freedom for a stratum where the candidate is hardly ever expected, which hides real causes of rare labels.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import special

from oscar_causal.data.sequences import ragged_offsets
from oscar_causal.discovery.classical.ci_tests import Cells, Statistic, chi2_of_cells, g2_of_cells, xlogx_table

Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]
FEW_EXPECTED = 5
"""The χ² law is trusted when every cell of every table expects at least this many rows."""
NEGLIGIBLE = 1e-25
"""Outcomes less likely than this are left out of the convolution."""


def needs_exact(cells: Cells) -> bool:
    """Does some table expect fewer than 5 rows in one of its cells?"""
    x, y = np.minimum(cells.n_x, cells.n - cells.n_x), np.minimum(cells.n_y, cells.n - cells.n_y)
    return bool((x * y < FEW_EXPECTED * cells.n).any())


def exact_p_value(cells: Cells, statistic: Statistic, *, bins: int = 1024, ceiling: float = np.inf) -> float:
    """P(statistic ≥ observed) given all margins: each 2 × 2 table hypergeometric, tables independent.

    This is the law of the statistic when the target is permuted inside the strata, so the p-value is valid whatever the
    counts. `cells` are the tables of one candidate. The sum over tables is convolved on a grid of about `bins` steps up
    to the observed value; each table's value is rounded to the nearest step, the observed one alike. No table takes
    back what the others have reached, so the sum stops once it is above `ceiling`: the answer is then above it too.

    >>> one = Cells(*(np.array([v]) for v in (0, 60, 3, 3, 3)))
    >>> f"{exact_p_value(one, 'g2'):.2e}"  # 1 / (60 choose 3)
    '2.92e-05'
    """
    offsets, values, probs = _laws_of_tables(cells, statistic)
    low = np.maximum(0, cells.n_x + cells.n_y - cells.n)
    seen = values[offsets[:-1] + cells.n_xy - low]
    if seen.sum() <= 0:
        return 1.0
    top = int(np.rint(seen * (bins / seen.sum())).sum())  # stands for the observed value and all beyond
    steps = np.minimum(np.rint(values * (bins / seen.sum())).astype(np.int64), top)
    law = np.zeros(top + 1)
    for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        one = np.asarray(np.bincount(steps[begin:end], probs[begin:end], top + 1), np.float64)
        law = _law_of_sum(law, one) if begin else np.where(one > NEGLIGIBLE, one, 0.0)
        if law[-1] > ceiling:
            break
    return float(min(law[-1], 1.0))


def _laws_of_tables(cells: Cells, statistic: Statistic) -> tuple[Int64, Float64, Float64]:
    """All values each table's statistic can take given its margins, and their probabilities, end to end."""
    low = np.maximum(0, cells.n_x + cells.n_y - cells.n)
    sizes = np.minimum(cells.n_x, cells.n_y) - low + 1
    offsets = ragged_offsets(sizes)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    both = np.arange(offsets[-1]) - np.repeat(offsets[:-1] - low, sizes)
    n, x, y = cells.n[owner], cells.n_x[owner], cells.n_y[owner]
    every = Cells(owner, n, x, y, both)
    size = 1 << int(n.max()).bit_length()
    values = g2_of_cells(every, xlogx_table(size)) if statistic == "g2" else chi2_of_cells(every)
    log_probs = _log_choose(x, both, size) + _log_choose(n - x, y - both, size) - _log_choose(n, y, size)
    return offsets, values, np.exp(log_probs)


def _log_choose(n: Int64, k: Int64, size: int) -> Float64:
    table = _log_factorials(size)
    return table.take(n) - table.take(k) - table.take(n - k)


@lru_cache(maxsize=32)
def _log_factorials(size: int) -> Float64:
    """ln k! for k = 0 .. size; sizes are powers of two, so there are few tables."""
    return np.asarray(special.gammaln(np.arange(size + 1) + 1.0), np.float64)


def _law_of_sum(left: Float64, right: Float64) -> Float64:
    """The law of a sum of two capped variables; what reaches the last step stays there. No cancellation in the tail."""
    top = len(left) - 1
    at_least = np.cumsum(left[::-1])  # at_least[k] = P(left ≥ top - k)
    out = np.zeros_like(left)
    for step in np.flatnonzero(right > NEGLIGIBLE).tolist():
        out[step:top] += right[step] * left[: top - step]
        out[top] += right[step] * at_least[step]
    return out
