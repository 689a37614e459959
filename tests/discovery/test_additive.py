"""Additive chances against scikit-learn's logistic regression."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from oscar_causal.discovery.additive import RIDGE, additive_chances


def test_the_fit_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    holds = rng.random((40, 5)) < 0.4
    number = rng.integers(1, 30, 40).astype(float)
    chance = 1 / (1 + np.exp(2 - holds @ np.array([2.0, 1.0, 0.0, -1.0, 3.0])))
    came = rng.binomial(number.astype(int), chance).astype(float)
    rows, labels = np.concatenate([holds, holds]), np.repeat([1, 0], 40)
    wanted = LogisticRegression(C=1 / RIDGE, tol=1e-8, max_iter=1000)
    wanted.fit(rows, labels, sample_weight=np.concatenate([came, number - came]))
    assert additive_chances(holds, number, came) == pytest.approx(wanted.predict_proba(holds)[:, 1], abs=1e-4)


def test_patterns_nobody_met_and_labels_that_never_or_always_came_have_finite_chances() -> None:
    holds = np.array([[False], [True], [True]])
    for came in ([0.0, 0.0, 0.0], [50.0, 7.0, 0.0]):
        found = additive_chances(holds, np.array([50.0, 7.0, 0.0]), np.array(came))
        assert np.isfinite(found).all()
        assert ((found > 0) & (found < 1)).all()
        assert found[1] == found[2]
    assert additive_chances(np.zeros((1, 0), bool), np.array([9.0]), np.array([3.0]))[0] == pytest.approx(
        1 / 3, abs=0.02
    )
