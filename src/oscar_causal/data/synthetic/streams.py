"""Random draws that come out alike everywhere: keyed streams of uniform numbers, and tables that turn them into others.

Only `Generator.random` is used: its bits are fixed by the PCG64 stream, while numpy may change its other distributions
from version to version. Every other distribution is a table of quantiles, rounded to whole numbers where it is a time
or a count, so that the last bit of a logarithm on another machine leaves no trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import special

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

PURPOSES = ("names", "laws", "roles", "subjects", "background", "scenarios", "outcomes", "shuffle", "mileage")
"""Each purpose has a stream of its own, so that a knob moves only what it is about."""
QUANTILES = 4096


def stream(seed: int, purpose: str, block: int = 0, *, shadow: bool = False) -> np.random.Generator:
    """The generator of one purpose in one block; `shadow` gives a second, independent set of streams."""
    key = [PURPOSES.index(purpose), block, int(shadow), seed]  # the seed last: it may take more than one word
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(key)))


def below(rng: np.random.Generator, limits: npt.ArrayLike) -> Ints:
    """One whole number in 0 ... limit - 1 for each limit."""
    bounds = np.asarray(limits, np.int64)
    return (rng.random(bounds.shape) * bounds).astype(np.int64)


def permutation(rng: np.random.Generator, count: int) -> Ints:
    """The numbers 0 ... count - 1 in random order."""
    return np.argsort(rng.random(count), kind="stable")


def choose(rng: np.random.Generator, eligible: Ints, count: int) -> Ints:
    """`count` different ones of the eligible numbers (all of them when there are fewer), rising."""
    return np.sort(eligible[permutation(rng, len(eligible))[:count]])


def apportion(sizes: Sequence[tuple[int, float]], count: int) -> Ints:
    """`count` values whose frequencies follow the weights as exactly as whole numbers can, rising.

    >>> apportion(((1, 1), (2, 2), (5, 1)), 8).tolist()
    [1, 1, 2, 2, 2, 2, 5, 5]
    """
    values = np.array([value for value, _ in sizes], np.int64)
    shares = np.cumsum([weight for _, weight in sizes])
    at = np.searchsorted(shares / shares[-1], midpoints(count), side="left")
    return values[np.minimum(at, len(values) - 1)]


def midpoints(count: int) -> Floats:
    """`count` probabilities spread evenly over (0, 1)."""
    return (np.arange(count) + 0.5) / count


def look_up(table: npt.NDArray[np.generic], rng: np.random.Generator, shape: int | tuple[int, ...]) -> Ints:
    """Draws from a table of equally likely whole numbers."""
    return np.asarray(table[(rng.random(shape) * len(table)).astype(np.int64)], np.int64)


@lru_cache(maxsize=8)
def length_table(mean: float, sd: float, *, least: int) -> Ints:
    """Quantiles of a gamma distribution with this mean and standard deviation, as whole numbers of at least `least`."""
    if sd == 0:
        return np.full(1, max(round(mean), least), np.int64)
    shape = (mean / sd) ** 2
    values = special.gammaincinv(shape, midpoints(QUANTILES)) * (mean / shape)
    return np.asarray(np.maximum(np.rint(values), least), np.int64)


def gap_table(mean: float, *, zeros: float) -> Ints:
    """Quantiles of whole seconds between neighbours: a share of zeros (ties), the rest exponential."""
    at = np.maximum(midpoints(QUANTILES) - zeros, 0) / (1 - zeros)
    return np.where(at > 0, np.ceil(-mean * np.log1p(-at)), 0).astype(np.int64)


def span_table(median: float, spread: float, *, least: int) -> Ints:
    """Quantiles of a log-normal number of whole seconds."""
    values = median * np.exp(spread * special.ndtri(midpoints(QUANTILES)))
    return np.asarray(np.maximum(np.rint(values), least), np.int64)


def poisson_table(mean: float) -> Floats:
    """Cumulative probabilities of 0, 1, 2, ... events; `np.searchsorted(table, u, side='right')` is a draw."""
    most = int(mean + 10 * np.sqrt(mean) + 20)
    return np.asarray(special.pdtr(np.arange(most), mean), np.float64)
