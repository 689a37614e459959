"""The two screens: what they must see, what they must not, how often they cry wolf."""

from __future__ import annotations

import numpy as np
import pytest

from oscar_causal.data.sequences import Dataset, from_records
from oscar_causal.density.associations import residual_pairs, xor_like


def fleet_of(present: np.ndarray, labels: np.ndarray) -> Dataset:
    return from_records(
        {
            "sequence_id": str(i),
            "events": ["pad", *(f"E{k}" for k in np.flatnonzero(present[i]))],
            "times": list(range(int(present[i].sum()) + 1)),
            "labels": [f"y{j}" for j in np.flatnonzero(labels[i])],
        }
        for i in range(len(present))
    )


def test_xor_is_seen_and_and_is_not() -> None:
    rng = np.random.default_rng(0)
    present = rng.random((1500, 8)) < 0.5
    noise = rng.random((1500, 3))
    xor = np.where(present[:, 1] ^ present[:, 4], noise[:, 0] < 0.8, noise[:, 0] < 0.1)
    conjunction = np.where(present[:, 2] & present[:, 3], noise[:, 1] < 0.9, noise[:, 1] < 0.1)
    found, tested = xor_like(fleet_of(present, np.stack([xor, conjunction, noise[:, 2] < 0.3], axis=1)))
    assert tested == 3 * 8 * 7 // 2
    assert [(item["label"], sorted(item["events"])) for item in found] == [("y0", ["E1", "E4"])]
    assert found[0]["z"] < 0  # together or neither: the label stays away
    product = (present[:, 1] - present[:, 1].mean()) * (present[:, 4] - present[:, 4].mean())
    assert found[0]["correlation"] == pytest.approx(np.corrcoef(product, xor)[0, 1], abs=0.02)


def test_the_screens_rarely_cry_wolf() -> None:
    rng = np.random.default_rng(1)
    alarms = 0
    for _ in range(20):
        present = rng.random((400, 12)) < rng.uniform(0.1, 0.9, 12)
        labels = rng.random((400, 4)) < [0.5, 0.3, 0.1, 0.7]
        alarms += bool(xor_like(fleet_of(present, labels))[0])
        probs = rng.uniform(0.05, 0.95, (400, 6))
        alarms += bool(residual_pairs(probs, rng.random((400, 6)) < probs).pairs)
    assert alarms <= 3  # 40 screens at level 0.01


def test_nothing_to_screen() -> None:
    present = np.zeros((30, 2), bool)
    assert xor_like(fleet_of(present, np.ones((30, 1), bool))) == ([], 0)
    few = residual_pairs(np.full((3, 2), 0.5), np.ones((3, 2), bool))
    assert (few.pairs, few.tested) == ([], 0)


def test_a_hidden_driver_shows_in_the_residuals() -> None:
    rng = np.random.default_rng(2)
    driver = rng.random(2000) < 0.5
    rates = np.full((2000, 3), 0.3)
    rates[:, 0] += np.where(driver, 0.25, -0.25)
    rates[:, 2] += np.where(driver, -0.25, 0.25)
    truth = rng.random((2000, 3)) < rates
    found = residual_pairs(np.full((2000, 3), 0.3), truth)  # the model knows the mean alone
    assert found.pairs == [(0, 2)]
    assert found.z[0, 2] < -5
    assert found.size[0, 2] == pytest.approx(np.corrcoef(truth[:, 0], truth[:, 2])[0, 1], abs=0.02)
    informed = residual_pairs(rates, truth)  # the model sees the driver: no residual is left
    assert informed.pairs == []
