"""P(label | features) as a logistic function of a sum over features: a guess for patterns that were hardly ever met."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

Float64 = npt.NDArray[np.float64]
RIDGE = 1.0
"""Every feature starts with a weight of 0, as sure as one sequence with even chances would make it four times over."""
ROUNDS, STEP, TOLERANCE = 30, 5.0, 1e-4
"""Of Newton's method: most rounds, longest step, when to stop."""


def additive_chances(holds: npt.NDArray[np.bool_], number: Float64, came: Float64) -> Float64:
    """The chance of the label with each pattern, from how often patterns were met and met with the label.

    `holds` (patterns, features): which features hold. `number` and `came` (..., patterns): several counts of the same
    patterns are fitted each by itself, at once.

    >>> holds = np.array([[False, False], [True, False], [False, True], [True, True]])
    >>> additive_chances(holds, np.array([900.0, 50.0, 50.0, 0.0]), np.array([1.0, 25.0, 25.0, 0.0])).round(2).tolist()
    [0.01, 0.42, 0.42, 0.98]
    """
    weights = additive_weights(holds, number, came)
    found: Float64 = expit(weights[..., :1] + weights[..., 1:] @ holds.T)
    return found


def additive_weights(holds: npt.NDArray[np.bool_], number: Float64, came: Float64) -> Float64:
    """The log odds with no feature, then what each feature adds to them: (..., 1 + features)."""
    columns = np.column_stack([np.ones(len(holds)), holds])  # (P, K)
    ridge = np.append(0.0, np.full(holds.shape[1], RIDGE))
    weights = np.zeros((*number.shape[:-1], len(ridge)))
    weights[..., 0] = logit((came.sum(-1) + 0.5) / (number.sum(-1) + 1.0))
    for _ in range(ROUNDS):
        chance = expit(weights @ columns.T)  # (..., P)
        slope = (came - number * chance) @ columns - ridge * weights
        spread = number * chance * (1 - chance) + 1e-9
        bend = (spread[..., None, :] * columns.T) @ columns + np.diag(ridge)  # (..., K, K)
        step = np.linalg.solve(bend, slope[..., None])[..., 0]
        step *= np.minimum(1.0, STEP / np.maximum(np.abs(step).max(-1, keepdims=True), 1e-12))
        weights += step
        if np.abs(step).max() < TOLERANCE:
            break
    return weights
