"""Dependence of two yes/no columns within strata: pooled correlation, and a test exact for small counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Bool = npt.NDArray[np.bool_]
Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]

FEW = 10.0
"""With less variance than this the chi-squared tail is replaced by redraws of the counts."""
REDRAWS = 9_999


@dataclass(frozen=True)
class Dependence:
    """What is left of the dependence of two columns once strata are held."""

    correlation: float
    """Pooled within strata; 0 where no stratum lets both columns vary."""
    p_value: float
    """Of no dependence in any stratum (Cochran, Mantel, Haenszel)."""
    settled: float
    """Share of the rows with both that lie in strata of at least `SIZE` rows: low = the strata are too fine to tell."""


SIZE = 5


def dependence(a: Bool, b: Bool, strata: Int64, rng: np.random.Generator) -> Dependence:
    """Dependence of columns a and b (n,) given the stratum of each row (n,).

    >>> a = np.array([True, True, False, False] * 10)
    >>> round(dependence(a, a, np.zeros(40, int), np.random.default_rng(0)).correlation, 3)
    1.0
    """
    _, stratum = np.unique(strata, return_inverse=True)
    n, with_a, with_b, both = (np.bincount(stratum, weights=column) for column in (np.ones(len(a)), a, b, a & b))
    in_a, in_b = with_a * (n - with_a) / n, with_b * (n - with_b) / n  # n times the variances
    informative = (in_a > 0) & (in_b > 0)
    excess = float((both - with_a * with_b / n).sum())
    scale = float(np.sqrt(in_a.sum() * in_b.sum()))
    variance = float((in_a * in_b / np.maximum(n - 1, 1))[informative].sum())
    counts = np.stack([n, with_a, with_b], axis=1)[informative].astype(np.int64)
    settled = float(both[n >= SIZE].sum() / both.sum()) if both.any() else 1.0
    return Dependence(excess / scale if scale else 0.0, _p_value(excess, variance, counts, rng), settled)


def _p_value(excess: float, variance: float, counts: Int64, rng: np.random.Generator) -> float:
    """Two-sided p of the excess of rows with both; `counts` (S, 3) are rows, with a, with b of the strata."""
    if variance <= 0:
        return 1.0
    if variance >= FEW:
        from scipy.stats import chi2

        return float(chi2.sf(excess**2 / variance, 1))
    n, with_a, with_b = counts.T
    drawn = rng.hypergeometric(with_a, n - with_a, with_b, (REDRAWS, len(n)))  # (redraws, S)
    redrawn = (drawn - with_a * with_b / n).sum(1)
    return float((1 + (np.abs(redrawn) >= abs(excess) - 1e-9).sum()) / (REDRAWS + 1))
