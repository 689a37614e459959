"""The enumeration behind the page of findings: against the process's own tables, other formulas, and cases by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from oscar_causal.data.solvable import EXAMPLES, SolvableProcess

Script = Callable[[str], ModuleType]
NAMES = ["and", "announcer", "hidden", "mediator"]


def small(name: str, **changes: Any) -> SolvableProcess:
    return SolvableProcess(replace(EXAMPLES[name], **{"length": 4, **changes}))


@pytest.mark.parametrize("name", NAMES)
def test_all_sequences_are_there_once(script: Script, name: str) -> None:
    whole = script("enumeration").enumerate_all(small(name))
    assert whole.probs.sum() == pytest.approx(1, abs=1e-12)
    assert len(np.unique(whole.sequences, axis=0)) == len(whole.sequences) == 4**4
    assert whole.probs @ whole.forecast[:, -1] == pytest.approx(whole.forecast[0, 0], abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_mean_gain_and_mean_entropy_difference_are_the_cmi(script: Script, name: str) -> None:
    process = small(name)
    whole = script("enumeration").enumerate_all(process)
    wanted = [process.cmi(0, i) for i in range(4)]  # summed over states, not over sequences
    np.testing.assert_allclose(whole.probs @ whole.gain_nats, wanted, atol=1e-12)
    np.testing.assert_allclose(whole.probs @ whole.drop_nats, wanted, atol=1e-12)
    assert np.abs(whole.gain_nats - whole.drop_nats).max() > 0.1
    assert whole.drop_nats.min() < -0.01


def test_a_single_gain_can_exceed_the_entropy_of_the_label(script: Script) -> None:
    whole = script("enumeration").enumerate_all(small("rare"))
    assert whole.gain_nats.max() > 10 * whole.entropy
    assert (whole.probs @ whole.gain_nats).sum() <= whole.entropy  # the chain rule bounds the sum of the means


def test_causes_of_a_sequence(script: Script) -> None:
    whole = script("enumeration").enumerate_all(small("and"))
    for own, sequence in zip(whole.causes(), whole.sequences.tolist(), strict=True):
        assert own == (frozenset({0, 1}) if {0, 1} <= set(sequence) else frozenset())


def test_a_balanced_xor_hides_its_first_parent(script: Script) -> None:
    found = script("broken_assumptions").balanced_xor()
    assert found["cmi_nats"][0] == pytest.approx(0, abs=1e-12)
    assert found["cmi_nats"][1] > 0.3
    assert found["parents"] == ["A", "B"]


@pytest.mark.parametrize("k", [0.5, 2.0, 2.75, 3.0])
def test_fewest_positions_for_a_lone_spike_to_pass(script: Script, k: float) -> None:
    def passes(n: int) -> bool:
        values = np.eye(n)[0]
        return bool(values[0] > values.mean() + k * values.std(ddof=1))

    n = script("broken_assumptions").fewest_positions(k)
    assert passes(n)
    assert not any(passes(m) for m in range(2, n))


def test_scores_by_hand(script: Script) -> None:
    found = [frozenset({1, 2}), frozenset(), frozenset({3})]
    truth = [frozenset({1}), frozenset({4}), frozenset({3, 5})]
    got = script("broken_assumptions").score(found, truth, np.array([0.5, 0.25, 0.25]))
    assert (got.precision, got.recall) == (0.5 * 0.5 + 0.25, 0.5 + 0.25 * 0.5)
    assert got.f1 == pytest.approx(2 * 0.5 * 0.625 / 1.125)


def test_with_independent_events_and_one_cause_every_reading_is_right(script: Script) -> None:
    module = script("broken_assumptions")
    got = module.measure_case(SolvableProcess(replace(module.CASES["one cause"][1], length=4)))
    for reading in ("rises", "prefix", "direct", "inert"):
        assert got[reading]["f1"] == pytest.approx(1.0), reading


def test_an_announcer_raises_the_forecast_and_has_no_direct_effect(script: Script) -> None:
    got = script("broken_assumptions").measure_case(small("announcer"))
    assert got["parents"] == ["A"]
    assert got["rises"]["precision"] < 0.8
    assert got["direct"]["precision"] == pytest.approx(1.0)
    assert got["direct"]["recall"] == pytest.approx(1.0)


def test_a_hidden_driver_fools_the_direct_effect_too(script: Script) -> None:
    got = script("broken_assumptions").measure_case(small("hidden"))
    assert got["inert"]["precision"] < 0.95
    assert got["inert"]["recall"] == pytest.approx(1.0)


def test_what_a_window_can_find_grows_to_everything(script: Script) -> None:
    whole = script("enumeration").enumerate_all(small("and"))
    shares = script("broken_assumptions").window_recall(whole)
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1)
    assert shares[0] <= 0.5  # two causes, one place


def test_growth_is_the_slope_on_logarithmic_axes(script: Script) -> None:
    points = [{"at": float(n), "seconds": 3.0 * n**1.5} for n in (1, 10, 40)]
    assert script("speed_ratios").growth(points) == pytest.approx(1.5)


def test_the_limit_of_eq4_without_draws_is_the_gain(script: Script) -> None:
    module, process = script("bench_mathematics"), small("and")
    whole = script("enumeration").enumerate_all(process)
    row = 100
    got = process.eq4(0, whole.sequences[row], c=0)
    np.testing.assert_allclose(got, whole.gain_nats[row], atol=1e-12)
    moved = module._limit(process, whole.sequences[row], {"top_k": 2})
    assert math.isfinite(moved)
    assert moved != pytest.approx(float(got[module.POSITION]), abs=1e-6)
