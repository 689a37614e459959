"""True information quantities in nats: the CMI of Eq. 3, and what Eq. 4 converges to under any proposal.

Facts that hold here and are tested:

- The pointwise gain of Eq. 1, KL(P(Y | x, z) || P(Y | z)), is in general *not* the entropy difference of Eq. 2: that
  difference can be negative, the gain cannot. Averaged over x ~ P(x | z) the two agree.
- The gain is not bounded by H(Y): an event that makes a rare label certain carries about -log P(Y | z) nats.
- Eq. 4 keeps the observed events from position c on, so even with endless contexts it is a score of *this* sequence;
  only its average over sequences and contexts drawn from the process is the CMI.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oscar_causal.data.solvable.law import FloatArray
from oscar_causal.data.solvable.tables import Tables
from oscar_causal.errors import UsageError


@dataclass(frozen=True)
class PrefixScores:
    """Moments over contexts of what each position's event does to P(Y | prefix); all (L, Y)."""

    gain_nats: FloatArray
    """Mean pointwise gain, Eq. 4 with endless contexts."""
    shift_mean: FloatArray
    """Mean of P(Y | z, x_i) - P(Y | z), the causal indicator as the paper's listing computes it."""
    shift_sd: FloatArray
    """Standard deviation of that shift over contexts."""


def bernoulli_kl(after: FloatArray, before: FloatArray) -> FloatArray:
    """KL(Bernoulli(after) || Bernoulli(before)) in nats, elementwise, with 0 log 0 = 0.

    >>> float(bernoulli_kl(np.array(1.0), np.array(0.5)).round(4))
    0.6931
    """
    return _term(after, before) + _term(1 - after, 1 - before)


def bernoulli_entropy(probs: FloatArray) -> FloatArray:
    """Entropy of Bernoulli(probs) in nats, elementwise.

    >>> float(bernoulli_entropy(np.array(0.5)).round(4))
    0.6931
    """
    return -_term(probs, np.ones_like(probs)) - _term(1 - probs, np.ones_like(probs))


def _term(weight: FloatArray, reference: FloatArray) -> FloatArray:
    """weight * log(weight / reference), 0 where the weight is 0 and infinite where only the reference is."""
    some = weight > 0
    with np.errstate(divide="ignore"):
        ratio = np.log(np.where(some, weight, 1.0)) - np.log(np.where(some, reference, 1.0))
    term: FloatArray = weight * ratio
    return term


def true_cmi(tables: Tables) -> FloatArray:
    """I(Y_j; X_i | X_<i) for every position and label, by summing over all prefixes, (L, Y)."""
    rows = [_moments(tables, i, mass, tables.next_probs(i))[0] for i, mass in enumerate(tables.masses())]
    return np.array(rows)


def prefix_scores(tables: Tables, symbol_probs: FloatArray) -> PrefixScores:
    """Scores under contexts whose symbols are drawn independently, position by position, from `symbol_probs` (L, K)."""
    moments = []
    mass = tables.start()
    for i, probs in enumerate(symbol_probs):
        moments.append(_moments(tables, i, mass, np.broadcast_to(probs, (*mass.shape, len(probs)))))
        mass = tables.push(i, mass[..., None] * probs)
    gain, mean, square = np.array(moments).transpose(1, 0, 2)  # each (L, Y)
    return PrefixScores(gain, mean, np.sqrt(np.maximum(square - mean**2, 0)))


def _moments(tables: Tables, position: int, mass: FloatArray, probs: FloatArray) -> FloatArray:
    """Mean gain, mean shift and mean squared shift at one position; mass (H_i, S), probs (H_i, S, K), result (3, Y)."""
    met = mass > 0
    before = tables.label_probs[position][met]  # (nodes, Y)
    total = np.zeros((3, before.shape[-1]))
    for symbol in range(tables.symbols):
        weight = mass[met] * probs[met][:, symbol]  # (nodes,)
        if weight.any():
            after = tables.after(position, symbol, tables.label_probs[position + 1])[met]
            shift = after - before
            total += [weight @ bernoulli_kl(after, before), weight @ shift, weight @ shift**2]
    return total


def truncate(probs: FloatArray, top_k: int | None = None, top_p: float | None = None) -> FloatArray:
    """Keep the likeliest types of each law (..., V) and renormalise, as the paper's listing does.

    First the `top_k` likeliest (lower id first among equals); of those, in falling order, as long as the mass kept of
    the untruncated law stays within `top_p`; the likeliest type always stays.

    >>> truncate(np.array([0.1, 0.5, 0.4]), top_k=2).round(3).tolist()
    [0.0, 0.556, 0.444]
    >>> truncate(np.array([0.1, 0.5, 0.4]), top_p=0.8).tolist()
    [0.0, 1.0, 0.0]
    """
    if top_k is not None and top_k < 1:
        raise UsageError(f"top_k: expected at least 1, got {top_k}")
    if top_p is not None and not 0 < top_p <= 1:
        raise UsageError(f"top_p: expected above 0 and at most 1, got {top_p}")
    order = np.argsort(-probs, axis=-1, kind="stable")
    falling = np.take_along_axis(probs, order, axis=-1)
    keep = np.ones(falling.shape, dtype=bool)
    keep[..., top_k:] = top_k is None
    if top_p is not None:
        keep &= np.cumsum(falling, axis=-1) <= top_p + 1e-12  # rounding of the sum must not drop the last type
    keep[..., 0] = True
    kept = np.zeros_like(probs)
    np.put_along_axis(kept, order, np.where(keep, falling, 0.0), axis=-1)
    normalised: FloatArray = kept / kept.sum(axis=-1, keepdims=True)
    return normalised
