"""The logistic regression on presence is scikit-learn's, and is left out where it would take too long."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from oscar_causal.data.batches import encode
from oscar_causal.data.sequences import Dataset
from oscar_causal.data.vocabulary import build_vocabulary
from oscar_causal.density import reference
from oscar_causal.density.reference import base_rates, reference_of


def test_it_is_scikit_learns(fleet: Dataset) -> None:
    vocabulary = build_vocabulary(fleet, min_count=1)
    half = len(fleet) // 2
    parts = [fleet.take(np.arange(half)), fleet.take(np.arange(half, len(fleet)))]
    train, test = (encode(part, vocabulary, max_length=100) for part in parts)
    found = reference_of(train, test, parts[1].subject_ids, vocabulary)
    present = [
        np.array([[name in part.events_of(row) for name in vocabulary.events] for row in range(len(part))])
        for part in parts
    ]
    known = [
        np.array([[name in part.labels_of(row) for name in vocabulary.labels] for row in range(len(part))])
        for part in parts
    ]
    assert found.logistic is not None
    for column in range(len(vocabulary.labels)):
        fitted = LogisticRegression(tol=1e-8, max_iter=1000)
        fitted.fit(present[0][parts[0].labelled], known[0][parts[0].labelled][:, column])
        wanted = fitted.predict_proba(present[1][parts[1].labelled])[:, 1]
        assert found.logistic[:, column] == pytest.approx(wanted, abs=2e-3)
    rates = (known[0][parts[0].labelled].sum(0) + 0.5) / (parts[0].labelled.sum() + 1)
    assert found.base_rates == pytest.approx(rates)


def test_it_is_left_out_where_it_is_too_large(fleet: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "LARGEST", 10)
    vocabulary = build_vocabulary(fleet, min_count=1)
    encoded = encode(fleet, vocabulary, max_length=100)
    found = reference_of(encoded, encoded, fleet.subject_ids, vocabulary)
    assert found.logistic is None
    assert "is more than 10" in str(found.logistic_left_out)


def test_a_label_of_one_kind_alone_has_a_rate_inside() -> None:
    assert base_rates(np.array([[True, False]] * 3)).tolist() == [0.875, 0.125]
