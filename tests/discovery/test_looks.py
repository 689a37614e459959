"""Preset looks: what they spend adds up to alpha, and stopping early keeps the promise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats

from oscar_causal.discovery.looks import focus_stage, plan_looks
from oscar_causal.discovery.significance import benjamini_hochberg, column_test
from oscar_causal.discovery.subject import Subject, prepare


@pytest.mark.parametrize("rows", [5, 20, 39, 40, 79, 80, 200, 1000])
def test_looks_end_with_all_rows_and_spend_alpha_once(rows: int) -> None:
    looks = plan_looks(rows)
    assert [look.rows for look in looks] == sorted({look.rows for look in looks})
    assert looks[-1].rows == rows
    assert sum(look.weight for look in looks) == pytest.approx(1.0)
    assert all(look.rows >= 20 for look in looks[:-1])


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
    from oscar_causal.discovery.contexts import Stream

    uniforms = Stream(0, "s", "redraw").uniforms(499, 60)[:, :rows]
    tests = column_test(stage.outcomes[:, 0], stage.masks[:, :6].astype(float), np.full(6, 0.3), uniforms, delta=0.05)
    assert (focus.tests.p_values == tests.p_values).all()
    assert (focus.q_values == np.minimum(benjamini_hochberg(tests.p_values) / look.weight, 1.0)).all()


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
