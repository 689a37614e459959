"""Preset looks: what they spend adds up to alpha, and stopping early keeps the promise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats

from oscar_causal.discovery.contexts import Stream
from oscar_causal.discovery.looks import focus_stage, plan_looks, redraws_for
from oscar_causal.discovery.significance import benjamini_hochberg, column_test
from oscar_causal.discovery.subject import Subject, prepare


@pytest.mark.parametrize("rows", [5, 20, 39, 40, 79, 80, 200, 1000])
def test_looks_end_with_all_rows_and_spend_alpha_once(rows: int) -> None:
    looks = plan_looks(rows)
    assert [look.rows for look in looks] == sorted({look.rows for look in looks})
    assert looks[-1].rows == rows
    assert sum(look.weight for look in looks) == pytest.approx(1.0)
    assert all(look.rows >= 20 for look in looks[:-1])
    assert [look.weight / looks[0].weight for look in looks] == pytest.approx([1, 4, 9][: len(looks)])


@pytest.mark.parametrize("finalists", [1, 6, 20])
@pytest.mark.parametrize("alpha", [0.001, 0.05])
def test_with_all_redraws_one_cause_can_pass_on_either_side(finalists: int, alpha: float) -> None:
    """The smallest p-value is 1 / (R + 1), over the side's share of the error; BH multiplies it by the finalists."""
    redraws = redraws_for(finalists, alpha)
    for share in (0.75, 0.25):
        p_values = np.append(1 / (redraws + 1) / share, np.ones(finalists - 1))
        assert scipy.stats.false_discovery_control(p_values)[0] <= alpha
    assert redraws <= 2 * finalists / (0.25 * alpha)


def subject_of(model: Any, workshop: Any, name: str = "s") -> Subject:
    return prepare(model, workshop.contexts(list(range(20))), sequence_id=name, seed=0, shuffle=True)


def run(model: Any, subject: Subject, rows: int, **changes: Any) -> Any:
    settings = {"alpha": 0.05, "delta": 0.05, "redraws": 999} | changes
    rates = np.where(np.arange(20) < 6, 0.3, 0.0)
    finalists = [np.arange(6)]
    return focus_stage(model, subject, np.array([0]), finalists, rates, plan_looks(rows), **settings)


def test_a_clear_cause_ends_the_search_early_and_a_flat_label_never(workshop: Any) -> None:
    clear = workshop.response(60, lambda present: np.where(present[:, 2], 0.95, 0.02)[:, None])
    stages = [run(clear, subject_of(clear, workshop, f"s{k}"), 160)[0] for k in range(12)]
    assert np.median([len(stage.outcomes) for stage in stages]) < 160
    flat = workshop.response(60, lambda present: np.full((len(present), 1), 0.4))
    assert len(run(flat, subject_of(flat, workshop), 160)[0].outcomes) == 160


def test_the_last_look_tests_all_rows_and_divides_by_its_weight(workshop: Any) -> None:
    """The q-values of the stage, literally: column_test on all rows, BH, over the weight of the look."""
    rng = np.random.default_rng(2)
    model = workshop.response(60, lambda present: rng.random((len(present), 1)))
    stage, (focus,) = run(model, subject_of(model, workshop), 60, redraws=499)
    rows = len(stage.outcomes)
    look = next(look for look in plan_looks(60) if look.rows == rows)
    uniforms = Stream(0, "s", "redraw").uniforms(499, 60)[:, :rows]
    tests = column_test(stage.outcomes[:, 0], stage.masks[:, :6].astype(float), np.full(6, 0.3), uniforms, delta=0.05)
    assert (focus.tests.p_values == tests.p_values).all()
    assert (focus.q_values == np.minimum(benjamini_hochberg(tests.p_values) / look.weight, 1.0)).all()


@pytest.mark.parametrize("seed", range(6))
def test_it_goes_on_while_a_finalist_is_open_and_stops_when_none_is(workshop: Any, seed: int) -> None:
    """Settled, literally: something is accepted at its share of alpha, all other p-values are above a quarter."""
    rng = np.random.default_rng(seed)

    def answer(present: np.ndarray) -> np.ndarray:
        clear = np.where(present[:, 2], 0.9, 0.1) - np.where(present[:, 4], 0.0, 0.25 * (seed % 2))
        return np.clip(clear + rng.normal(0, 0.15, len(present)), 0, 1)[:, None]

    model = workshop.response(60, answer)
    stage, _ = run(model, subject_of(model, workshop), 160, redraws=7000)
    uniforms = Stream(0, "s", "redraw").uniforms(7000, 160)
    settled = {}
    for look in plan_looks(160):
        rows = slice(0, look.rows)
        tests = column_test(
            stage.outcomes[rows, 0], stage.masks[rows, :6].astype(float), np.full(6, 0.3), uniforms[:, rows], delta=0.05
        )
        found = (scipy.stats.false_discovery_control(tests.p_values) / look.weight <= 0.05) & (
            np.abs(tests.effects) >= 0.05
        )
        settled[look.rows] = bool(found.any() and tests.p_values[~found].min(initial=1.0) > 0.25)
        if look.rows == len(stage.outcomes):
            break
    assert list(settled.values())[:-1] == [False] * (len(settled) - 1)
    assert len(stage.outcomes) == 160 or settled[len(stage.outcomes)]


def test_with_early_stopping_families_without_a_cause_stay_below_alpha(workshop: Any) -> None:
    """The model is a coin; a family is wrong when any finalist is accepted at the look where it stopped."""
    rng = np.random.default_rng(3)
    model = workshop.response(60, lambda present: (rng.random((len(present), 1)) < 0.5).astype(float))
    wrong = 0
    for k in range(250):
        _, (focus,) = run(model, subject_of(model, workshop, f"s{k}"), 80, alpha=0.2, delta=0.0, redraws=199)
        wrong += bool((focus.q_values <= 0.2).any())
    assert wrong <= scipy.stats.binom.ppf(1 - 1e-4, 250, 0.2)
    assert wrong > 0  # the test can fail: coins do reject now and then
