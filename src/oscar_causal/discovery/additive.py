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

    `holds` (patterns, features): which features hold.

    >>> holds = np.array([[False, False], [True, False], [False, True], [True, True]])
    >>> additive_chances(holds, np.array([900.0, 50.0, 50.0, 0.0]), np.array([1.0, 25.0, 25.0, 0.0])).round(2).tolist()
    [0.01, 0.42, 0.42, 0.98]
    """
    columns = np.column_stack([np.ones(len(holds)), holds])
    weights, ridge = np.zeros(columns.shape[1]), np.full(columns.shape[1], RIDGE)
    weights[0], ridge[0] = logit((came.sum() + 0.5) / (number.sum() + 1.0)), 0.0
    for _ in range(ROUNDS):
        chance = expit(columns @ weights)
        slope = columns.T @ (came - number * chance) - ridge * weights
        bend = (columns * (number * chance * (1 - chance) + 1e-9)[:, None]).T @ columns + np.diag(ridge)
        step = np.linalg.solve(bend, slope)
        step *= min(1.0, STEP / max(float(np.abs(step).max()), 1e-12))
        weights += step
        if np.abs(step).max() < TOLERANCE:
            break
    found: Float64 = expit(columns @ weights)
    return found
