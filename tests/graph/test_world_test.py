"""The world test: valid p-values under the null with the right odds, power for causes, an exactly known process."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from oscar_causal.data.sequences import from_records
from oscar_causal.data.solvable import EXAMPLES, SolvableProcess
from oscar_causal.density.exact import ExactDensity
from oscar_causal.graph.world_test import HeldOut, Trial, permutation_p_value


def trials(rng: np.random.Generator, effect: float, *, right_odds: bool = True) -> list[Trial]:
    """40 sequences; a hidden trait moves both the event and the label; `effect` is the event's own, in log odds."""
    made = []
    for _ in range(40):
        trait = rng.normal()
        has = bool(rng.random() < 1 / (1 + np.exp(-2 * trait)))
        came = bool(rng.random() < 1 / (1 + np.exp(-(2 * trait + effect * has))))
        gain = 0.5 if came else -0.5  # a label model that has learnt that the event goes with the label
        made.append(Trial(has, 2 * trait if right_odds else 0.0, gain))
    return made


def test_p_values_are_valid_under_the_null_even_for_a_prejudiced_label_model() -> None:
    rng = np.random.default_rng(0)
    p_values = np.array([permutation_p_value(trials(rng, 0.0), rng) for _ in range(160)])
    for level in (0.05, 0.1, 0.3):
        assert (p_values <= level).mean() <= level + 2.5 * np.sqrt(level / 160)
    wrong = np.array([permutation_p_value(trials(rng, 0.0, right_odds=False), rng) for _ in range(40)])
    assert (wrong <= 0.05).mean() > 0.2  # without the odds the trait is taken for the event


def test_a_real_effect_is_found() -> None:
    rng = np.random.default_rng(1)
    p_values = np.array([permutation_p_value(trials(rng, 4.0), rng) for _ in range(30)])
    assert (p_values <= 0.05).mean() > 0.6


@pytest.fixture(scope="module")
def held_out() -> HeldOut:
    process = SolvableProcess(replace(EXAMPLES["announcer"], length=10))
    drawn = process.sample(600, np.random.default_rng(3))
    data = from_records(
        {
            "sequence_id": f"s{k}",
            "events": [process.event_names[e] for e in drawn.event_ids[k]],
            "times": drawn.times[k].tolist(),
            "labels": [name for name, on in zip(process.label_names, drawn.labels[k], strict=True) if on],
        }
        for k in range(600)
    )
    return HeldOut.of(ExactDensity(process), data)


def test_on_an_exact_process_the_cause_is_found_and_its_announcer_is_not(held_out: HeldOut) -> None:
    label = held_out.model.vocabulary.labels[0]
    assert held_out.p_value((label, "A"), seed=0) == pytest.approx(0.002)
    announcer = [held_out.p_value((label, "N"), seed=seed) for seed in range(5)]
    assert np.median([p for p in announcer if p is not None]) > 0.05


def test_too_few_sequences_and_unknown_names_give_no_p_value(held_out: HeldOut) -> None:
    label = held_out.model.vocabulary.labels[0]
    assert held_out.p_value((label, "no such event"), seed=0) is None
    assert held_out.p_value(("no such label", "A"), seed=0) is None
