"""G² and χ² tests of conditional independence from counts, and what it takes to believe many of them at once.

A test asks whether candidate x tells anything about target y inside the strata of a conditioning set. The tables count
(`sparse`, `categorical`), this file turns counts into a statistic, degrees of freedom, a p-value and a verdict.

- G² = 2 Σ n_xys ln(n_xys n_s / (n_xs n_ys)), which is 2 n times the plug-in conditional mutual information in nats.
  χ² = Σ (n_xys - e)² / e with e = n_xs n_ys / n_s. Both are compared with a χ² law. Known bias: that law is too light
  for small expected counts; `exact.exact_p_value` is the remedy for binary data.
- Degrees of freedom are adjusted: a stratum adds (values of x seen in it - 1)(values of y seen in it - 1), so empty
  strata and empty margins add nothing. With nothing left to vary there is no test.
- Reliability: by the χ² law a test with fewer than `rows_per_dof` rows for each degree of freedom is not made. It then
  neither admits nor removes anybody, and does not enter the number of tests. The exact law needs no such rule.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
from scipy import special

from oscar_causal.errors import UsageError

Statistic = Literal["g2", "chi2"]
Correction = Literal["bonferroni", "bh", "none"]
Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class CiConfig:
    """How a conditional-independence test is made and when it rejects."""

    alpha: float = 0.01
    """Error rate of one family: the candidates examined together for one target."""
    correction: Correction = "bonferroni"
    """For the number of tests in the family: bonferroni (family-wise), bh (false discovery rate), none."""
    statistic: Statistic = "g2"
    """g2 (likelihood ratio) or chi2 (Pearson)."""
    rows_per_dof: float = 10.0
    """Where the χ² law judges: fewest rows for each degree of freedom; below, no test is made."""
    exact: bool = True
    """Binary tables: where an expected count is below 5, the exact law judges instead of the χ² law."""
    max_given: int = 3
    """Largest conditioning set where an algorithm searches subsets. IAMB does not: it takes the whole boundary."""

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise UsageError(f"alpha: expected a number between 0 and 1, got {self.alpha}")
        if self.correction not in get_args(Correction):
            raise UsageError(f"correction: expected one of {', '.join(get_args(Correction))}, got {self.correction!r}")
        if self.statistic not in get_args(Statistic):
            raise UsageError(f"statistic: expected one of {', '.join(get_args(Statistic))}, got {self.statistic!r}")
        if not self.rows_per_dof >= 0:
            raise UsageError(f"rows_per_dof: expected a number of at least 0, got {self.rows_per_dof}")
        if self.max_given < 0:
            raise UsageError(f"max_given: expected at least 0, got {self.max_given}")


@dataclass(frozen=True)
class Cells:
    """Sufficient statistics of binary tests: one 2 × 2 table for each (candidate, stratum) that can tell something.

    `owner` indexes the candidates; `n` rows in the stratum, `n_x` with the candidate, `n_y` with the target, `n_xy`
    with both. Tables with an empty margin are left out: they carry no information and no degree of freedom.
    """

    owner: Int64
    n: Int64
    n_x: Int64
    n_y: Int64
    n_xy: Int64

    def of(self, candidate: int) -> Cells:
        """The tables of one candidate."""
        return self.chosen(np.flatnonzero(self.owner == candidate))

    def chosen(self, tables: Int64) -> Cells:
        """Some of the tables, in the given order."""
        return Cells(*(part[tables] for part in (self.owner, self.n, self.n_x, self.n_y, self.n_xy)))


@dataclass(frozen=True)
class Associations:
    """Tests of several candidates against one target given one conditioning set. Arrays are (candidates,)."""

    candidates: Int64
    statistic: Float64
    dof: Int64
    rows: Int64
    """Rows in the strata that count for this candidate."""
    cells: Cells | None = None
    """Of binary tables, for what the χ² law cannot tell (`exact`)."""
    largest: Float64 | None = None
    """Of binary tables: the largest statistic the margins would have allowed."""

    def testable(self, rows_per_dof: float) -> npt.NDArray[np.bool_]:
        """Which tests can be made: something varies and there are rows enough."""
        return (self.dof > 0) & (self.rows >= rows_per_dof * self.dof)

    @cached_property
    def log_p(self) -> Float64:
        """Natural logarithm of the asymptotic p-value; 0 where there is no test."""
        return log_chi2_tail(self.statistic, self.dof)


def g2_of_cells(cells: Cells, xlogx: Float64 | None = None) -> Float64:
    """G² of each 2 × 2 table. `xlogx[k]` = k ln k for every count that can occur saves time on many tables.

    >>> one = Cells(*(np.array([v]) for v in (0, 40, 20, 20, 20)))
    >>> round(float(g2_of_cells(one)[0]), 3)  # 2 · 40 · ln 2
    55.452
    """
    return _g2(cells, _inside_of(cells), _margins_of(cells, xlogx), xlogx)


def _g2(cells: Cells, inside: tuple[Int64, ...], margins: Float64, xlogx: Float64 | None) -> Float64:
    """G² of tables with these counts inside; Σ k ln k over the margins is `margins`."""
    total = _xlogx_sum((*inside, cells.n), xlogx)
    total -= margins
    total *= 2.0
    return np.maximum(total, 0.0, out=total)


def _inside_of(cells: Cells) -> tuple[Int64, ...]:
    n, x, y, both = cells.n, cells.n_x, cells.n_y, cells.n_xy
    return both, x - both, y - both, n - x - y + both


def _margins_of(cells: Cells, xlogx: Float64 | None) -> Float64:
    n, x, y = cells.n, cells.n_x, cells.n_y
    return _xlogx_sum((x, n - x, y, n - y), xlogx)


def _xlogx_sum(parts: tuple[Int64, ...], xlogx: Float64 | None) -> Float64:
    total = np.zeros(len(parts[0]))
    for part in parts:
        total += special.xlogy(part, part) if xlogx is None else xlogx.take(part)
    return total


def chi2_of_cells(cells: Cells) -> Float64:
    """Pearson's χ² of each 2 × 2 table (no continuity correction)."""
    n, x, y, xy = (part.astype(np.float64) for part in (cells.n, cells.n_x, cells.n_y, cells.n_xy))
    return np.asarray(n * (n * xy - x * y) ** 2 / (x * (n - x) * y * (n - y)), np.float64)


def binary_associations(candidates: Int64, cells: Cells, statistic: Statistic, xlogx: Float64) -> Associations:
    """Sum the tables of each candidate over the strata."""
    margins = _margins_of(cells, xlogx) if statistic == "g2" else None
    values = chi2_of_cells(cells) if margins is None else _g2(cells, _inside_of(cells), margins, xlogx)
    size = len(candidates)
    return Associations(
        candidates,
        _sums(cells.owner, values, size),
        np.bincount(cells.owner, minlength=size),
        np.bincount(cells.owner, cells.n, size).astype(np.int64),
        cells,
        _sums(cells.owner, _largest(cells, margins, xlogx), size),
    )


def _sums(owner: Int64, values: Float64, size: int) -> Float64:
    return np.asarray(np.bincount(owner, values, size), np.float64)


def table_associations(candidates: Int64, counts: Int64, statistic: Statistic) -> Associations:
    """Tests from full tables of counts.

    `counts` is (candidates, strata, values of x, values of y). Rows of strata where x or y is constant are not counted:
    they carry no information.
    """
    n_x, n_y, n = counts.sum(3), counts.sum(2), counts.sum((2, 3))  # (C, S, X), (C, S, Y), (C, S)
    free = np.maximum((n_x > 0).sum(2) - 1, 0) * np.maximum((n_y > 0).sum(2) - 1, 0)  # (C, S)
    if statistic == "g2":
        xlogx = xlogx_table(int(n.max(initial=0)))
        inside = xlogx[counts].sum((1, 2, 3)) + xlogx[n].sum(1)
        values = np.maximum(2.0 * (inside - xlogx[n_x].sum((1, 2)) - xlogx[n_y].sum((1, 2))), 0.0)
    else:
        expected = n_x[..., :, None] * n_y[..., None, :] / np.maximum(n, 1)[..., None, None]  # (C, S, X, Y)
        values = ((counts - expected) ** 2 / np.where(expected > 0, expected, 1.0)).sum((1, 2, 3))
    return Associations(candidates, values, free.sum(1), np.where(free > 0, n, 0).sum(1))


def largest_of_cells(cells: Cells, statistic: Statistic, xlogx: Float64) -> Float64:
    """The largest value each table's statistic could have taken, given its margins.

    It is that of the most rows in common, or of the fewest; of the most wherever x and y each hold in at most half of
    the rows, as nearly always (then the rest of y is spread more unevenly).
    """
    return _largest(cells, _margins_of(cells, xlogx) if statistic == "g2" else None, xlogx)


def _largest(cells: Cells, margins: Float64 | None, xlogx: Float64) -> Float64:
    """As `largest_of_cells`: of G² with these `margins`, of χ² with none."""
    n, x, y = cells.n, cells.n_x, cells.n_y
    fewer, more = np.minimum(x, y), np.maximum(x, y)
    if margins is None:
        values = chi2_of_cells(replace(cells, n_xy=fewer))
    else:
        values = _g2(cells, (fewer, more - fewer, n - more), margins, xlogx)
    often = np.flatnonzero(2 * more > n)
    if len(often):
        some = cells.chosen(often)
        some = replace(some, n_xy=np.maximum(0, some.n_x + some.n_y - some.n))
        values[often] = np.maximum(values[often], chi2_of_cells(some) if margins is None else g2_of_cells(some, xlogx))
    return values


def attainable_family(largest: Float64, alpha: float) -> int:
    """Number of tests to correct for when some could not have rejected whatever came (Tarone 1990).

    `largest` holds the largest value each test's statistic could have taken given its margins, compared with one degree
    of freedom. The answer is the smallest k with at most k tests able to reach alpha / k; correcting for k instead of
    all tests keeps the family-wise error at alpha, as long as only those tests may reject.

    >>> attainable_family(np.array([50.0, 40.0, 3.0, 3.0, 3.0, 3.0]), 0.01)
    2
    """
    low, high = 1, max(len(largest), 1)
    while low < high:
        k = (low + high) // 2
        reach = int((largest >= special.chdtri(1, alpha / k)).sum())
        low, high = (low, k) if reach <= k else (k + 1, high)
    return low


@lru_cache(maxsize=32)
def xlogx_table(largest: int) -> Float64:
    """k ln k for k = 0 .. largest; one table for all who ask for the same, so it is not to be written to."""
    counts = np.arange(largest + 1, dtype=np.float64)
    table = np.asarray(special.xlogy(counts, counts), np.float64)
    table.setflags(write=False)
    return table


def log_chi2_tail(statistic: Float64, dof: Int64) -> Float64:
    """ln P(χ²_dof ≥ statistic), also where the probability itself underflows; 0 for dof = 0.

    >>> log_chi2_tail(np.array([3.841458820694124, 4000.0]), np.array([1, 1])).round(3).tolist()
    [-2.996, -2004.373]
    """
    out = np.zeros(len(statistic))
    one, more = dof == 1, dof > 1
    out[one] = np.log(2.0) + special.log_ndtr(-np.sqrt(statistic[one]))
    half_dof, half = dof[more] / 2.0, statistic[more] / 2.0
    tail = special.gammaincc(half_dof, half)
    tiny = tail < 1e-290
    logs = np.log(np.where(tiny, 1.0, tail))
    if tiny.any():
        logs[tiny] = _log_gamma_tail(half_dof[tiny], half[tiny])
    out[more] = logs
    return np.minimum(out, 0.0)


def _log_gamma_tail(a: Float64, x: Float64) -> Float64:
    """ln Q(a, x) for x far beyond a, by Legendre's continued fraction (evaluated from the inside out)."""
    fraction = np.zeros_like(x)
    for k in range(60, 0, -1):
        fraction = k * (k - a) / (x + 2 * k + 1 - a - fraction)
    return np.asarray(a * np.log(x) - x - special.gammaln(a) - np.log(x + 1 - a - fraction), np.float64)


def rejected(log_p: Float64, config: CiConfig, family: int | None = None) -> npt.NDArray[np.bool_]:
    """Which of a family of tests reject, with the correction for their number.

    `family` is the number of tests when those with p > alpha (which never reject) are not among `log_p`.

    >>> rejected(np.log([0.001, 0.004, 0.02, 0.5]), CiConfig(alpha=0.01, correction="bh")).tolist()
    [True, True, False, False]
    """
    size = len(log_p) if family is None else family
    if config.correction == "none" or size == 0:
        return np.asarray(log_p <= np.log(config.alpha))
    if config.correction == "bonferroni":
        return np.asarray(log_p <= np.log(config.alpha / size))
    ordered = np.sort(log_p)
    passing = np.flatnonzero(ordered <= np.log(config.alpha * np.arange(1, len(log_p) + 1) / size))
    limit = ordered[passing[-1]] if len(passing) else -np.inf
    return np.asarray(log_p <= limit)
