"""Uniforms that are a function of their keys: no order, batch, shard or restart can change them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

UInt64 = npt.NDArray[np.uint64]
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def keyed_uniforms(key: tuple[int, int], rows: npt.ArrayLike, columns: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Uniforms in [0, 1), one for each (row, column) of the two broadcast arrays of whole numbers.

    >>> first = keyed_uniforms((1, 2), [0, 1], [5, 5])
    >>> bool(first[1] == keyed_uniforms((1, 2), 1, 5))
    True
    """
    first, second = (np.uint64(part) for part in key)
    row, column = np.asarray(rows).astype(np.uint64), np.asarray(columns).astype(np.uint64)
    with np.errstate(over="ignore"):  # scalars warn where arrays wrap
        mixed = _mix(_mix(row * _GOLDEN + first) ^ (column * _GOLDEN + second))
        mixed >>= np.uint64(11)
        uniforms = mixed.astype(np.float64)
        uniforms *= 2.0**-53
        return uniforms


def _mix(x: UInt64) -> UInt64:
    """The finaliser of SplitMix64: every input bit moves half of the output bits. Works in place."""
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return x
