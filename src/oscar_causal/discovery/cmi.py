"""Information between a label and an event, in nats, as pure functions of probabilities."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Float64 = npt.NDArray[np.float64]

EPSILON = 1e-6
"""Probabilities are kept this far from 0 and 1, so that logarithms stay finite (as in the paper's listing)."""


def bernoulli_kl(p: Float64, q: Float64) -> Float64:
    """D_KL(Bernoulli(p) || Bernoulli(q)): the information gain I_G of Eq. 1 with p after and q before the event.

    Not the entropy difference of Eq. 2: the two agree in expectation over the event, not for a single one.

    >>> float(bernoulli_kl(np.array(0.5), np.array(0.5)))
    0.0
    """
    p, q = np.clip(p, EPSILON, 1 - EPSILON), np.clip(q, EPSILON, 1 - EPSILON)
    return p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))


def bernoulli_entropy(p: Float64) -> Float64:
    """H(Bernoulli(p))."""
    p = np.clip(p, EPSILON, 1 - EPSILON)
    return -p * np.log(p) - (1 - p) * np.log(1 - p)


def paired_cmi(kept: Float64, removed: Float64) -> float:
    """I(Y; X | Z) when a fair coin X keeps or removes the event and Z is the context: mean over paired contexts.

    `kept` and `removed` are P(Y | Z, X) of the same contexts. H(mean of the two) - mean of the entropies; between 0 and
    log 2. Identified because the coin, not the process, decides X.
    """
    kept, removed = np.clip(kept, EPSILON, 1 - EPSILON), np.clip(removed, EPSILON, 1 - EPSILON)
    middle = bernoulli_entropy((kept + removed) / 2)  # of what the entropies below are about: never less than zero
    return float(np.mean(middle - (bernoulli_entropy(kept) + bernoulli_entropy(removed)) / 2))
