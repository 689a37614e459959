"""Shapley values by weighted regression (Kernel SHAP, Lundberg and Lee 2017), as TimeSHAP takes them for sequences.

A coalition is the set of types that are kept; the others are replaced. Sizes whose coalitions fit into the budget are
taken whole, the smallest and largest first; the rest of the budget is drawn from the other sizes, each with its
complement. No variables are selected beforehand, as SHAP does by default with few samples.
"""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np

from oscar_causal.discovery.contexts import Bool, Float64, Stream


def coalitions(types: int, samples: int, stream: Stream) -> tuple[Bool, Float64]:
    """Coalitions of some, not all, of the types (N, types) and their weights (N,); at most about `samples`."""
    sizes = np.arange(1, types // 2 + 1)  # each stands for itself and its complement
    mass = np.array([_kernel(types, size) for size in sizes.tolist()])
    mass, kept, weights = mass / mass.sum() if len(mass) else mass, list[Bool](), list[Float64]()
    left, rest = samples, mass.copy()
    for index, size in enumerate(sizes.tolist()):
        every = _every(types, size) if _number(types, size) <= left * rest[index] / rest.sum() + 1e-8 else None
        if every is None:
            break
        kept.append(every)
        weights.append(np.full(len(every), mass[index] / len(every)))
        left, rest[index] = left - len(every), 0.0
    if rest.any() and left >= 2:
        drawn = _drawn(types, rest, left // 2, stream)
        kept.append(np.concatenate([drawn, ~drawn]))
        weights.append(np.full(2 * len(drawn), rest.sum() / (2 * len(drawn))))
    if not kept:
        return np.zeros((0, types), bool), np.zeros(0)
    return np.concatenate(kept), np.concatenate(weights)


def kernel_values(kept: Bool, weights: Float64, outcomes: Float64, none: Float64, everything: Float64) -> Float64:
    """Shapley values (types, Y') of outcomes (N, Y') of coalitions; they add up to `everything` - `none` (Y',).

    >>> kept = np.array([[True, False], [False, True]])
    >>> outcome = np.array([[0.3], [0.6]])
    >>> kernel_values(kept, np.ones(2), outcome, np.array([0.1]), np.array([0.8])).ravel().round(3).tolist()
    [0.2, 0.5]
    """
    total, types = everything - none, kept.shape[1]
    if types == 1:
        return total[None, :].copy()
    design = kept[:, :-1].astype(float) - kept[:, -1:]  # the last value is what the others leave
    target = outcomes - none - kept[:, -1:] * total
    root = np.sqrt(weights)[:, None]
    values = np.linalg.lstsq(root * design, root * target, rcond=None)[0]
    return np.concatenate([values, (total - values.sum(0))[None, :]])


def _kernel(types: int, size: int) -> float:
    """Weight of all coalitions of a size together, and of those of the complement's size."""
    both = 1 if 2 * size == types else 2
    return both * (types - 1) / (size * (types - size))


def _number(types: int, size: int) -> int:
    return comb(types, size) * (1 if 2 * size == types else 2)


def _every(types: int, size: int) -> Bool:
    chosen = np.array(list(combinations(range(types), size)))
    kept = np.zeros((len(chosen), types), bool)
    kept[np.arange(len(chosen))[:, None], chosen] = True
    return kept if 2 * size == types else np.concatenate([kept, ~kept])


def _drawn(types: int, mass: Float64, count: int, stream: Stream) -> Bool:
    """Coalitions of at most half of the types: a size by its mass, then types."""
    uniforms = stream.uniforms(count, types + 1)
    size = 1 + np.searchsorted(np.cumsum(mass) / mass.sum(), uniforms[:, 0], side="right").clip(max=len(mass) - 1)
    drawn: Bool = uniforms[:, 1:].argsort(1).argsort(1) < size[:, None]
    return drawn
