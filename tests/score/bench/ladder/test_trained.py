"""Estimators beside the product's, against known functions; what is chosen on validation; agreement between seeds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from oscar_causal.data.joining import joined
from oscar_causal.data.sequences import Dataset
from oscar_causal.density.folds import ModelSet
from oscar_causal.discovery.oneshot import DiscoveryConfig
from oscar_causal.score.bench.ladder import estimators_alone, trained
from oscar_causal.score.bench.ladder.interface import Answer, Explained, Part, Reasons
from oscar_causal.score.bench.ladder.models import ModelSettings
from oscar_causal.score.bench.ladder.trained import (
    ESTIMATORS,
    Estimator,
    agreement,
    explained,
    trained_rows,
    true_rows,
    with_agreement,
)
from oscar_causal.score.bench.ladder.tuning import Cut, grid

FEW = ModelSettings(steps=3, judged=10)
PAIR = ("night", "y")
WEIGHTS = (0.3, 0.25, 0.04, -0.1, 0.0)


def asked(known: Any, night: Dataset, estimator: Any, *weights: float) -> Explained:
    return explained(known(*weights), night, DiscoveryConfig(estimator=estimator))


@pytest.mark.parametrize("name", ["leave_one_out", "shapley_sampling", "kernel_shap", "input_x_gradient"])
def test_of_an_additive_function_every_score_is_the_weight(known: Any, night: Dataset, name: str) -> None:
    """Replacements are other types; those of the function that are not there could come in by chance, but have 0."""
    found = asked(known, night, getattr(estimators_alone, name), *WEIGHTS).answers[PAIR].scores
    assert set(found) == {f"E{k:02d}" for k in range(6)}
    for k, weight in enumerate((*WEIGHTS, 0.0)):
        assert found[f"E{k:02d}"] == pytest.approx(weight, abs=1e-6), k


def test_thresholds_at_defaults(known: Any, night: Dataset) -> None:
    """Leave-one-out: from delta on; slopes: from 0.4 of the strongest on; ratings: from half of the strongest on."""
    weights = (0.3, 0.14, 0.04, -0.1, 0.06)
    named = {
        "leave_one_out": {"E00", "E01", "E04"},
        "slopes_alone": {"E00", "E01"},
        "input_x_gradient": {"E00"},
        "shapley_sampling": {"E00"},
    }
    for name, causes in named.items():
        found = asked(known, night, getattr(estimators_alone, name), *weights)
        assert found.answers[PAIR].causes == causes, name


def test_passes_are_counted(known: Any, night: Dataset) -> None:
    """One for the sequence as it is; six types."""
    counts = {
        "leave_one_out": 1 + 1 + 3 * 6,
        "input_x_gradient": 1 + 3,
        "slopes_alone": 1 + 3 * 2,
        "shapley_sampling": 1 + 1 + 8 * 6,
        "kernel_shap": 1 + 2 + 2**6 - 2,
    }
    for name, passes in counts.items():
        assert asked(known, night, getattr(estimators_alone, name), *WEIGHTS).passes == passes, name


def test_events_that_the_model_does_not_know_are_left_alone(known: Any, night: Dataset) -> None:
    strange = replace(night, event_names=("STRANGE", *night.event_names[1:]))
    found = asked(known, strange, estimators_alone.leave_one_out, *WEIGHTS).answers[PAIR]
    assert set(found.scores) == {f"E{k:02d}" for k in range(1, 6)}


def test_settings_are_chosen_on_judge_and_never_on_test(part: Callable[..., Part]) -> None:
    """With the true P some cut is right everywhere; with reasons that are wrong none is; without any, defaults hold."""
    right = part(test=part().test.take(range(10)))
    rows = true_rows({"loo": Estimator(ESTIMATORS["leave-one-out"].config, ESTIMATORS["leave-one-out"].scored)})
    tuned = rows["true P: loo (tuned)"](right)
    assert tuned.chosen["sequences"] <= 20
    assert tuned.chosen["f1"] == pytest.approx(1.0)
    wrong = {pair: Reasons(frozenset({"READOUT"})) for pair in right.known}
    other = rows["true P: loo (tuned)"](replace(right, known=wrong))
    assert other.chosen["f1"] < tuned.chosen["f1"]
    unknown = rows["true P: loo (tuned)"](replace(right, known={}))
    assert not unknown.chosen
    assert unknown.answers == rows["true P: loo"](right).answers


def test_tuned_prefix_is_prefix_at_the_chosen_settings(part: Callable[..., Part]) -> None:
    given = part(test=part().test.take(range(8)))
    found = true_rows({"prefix": ESTIMATORS["prefix"]})["true P: prefix (tuned)"](given)
    c, k = found.chosen["context"], found.chosen["least"]
    assert (c, k) != (15, 2.75)  # the cause is recorded early here
    config = trained.prefix_settings(trained.PrefixConfig(context=c, threshold=k))
    model = trained.true_model(given, given.train, given.test)
    assert found.answers == explained(model, given.test, config).answers


def test_cuts() -> None:
    scores = {"A": 4.0, "B": 2.0, "C": 2.0, "D": 1.0, "E": -8.0, "F": 0.0}
    named = {
        Cut(): "ABCD",
        Cut(least=1.0): "ABC",
        Cut(share=0.6): "A",
        Cut(top=2): "ABC",
        Cut(top=9): "ABCD",
        Cut(least=5.0): "",
    }
    for cut, causes in named.items():
        assert cut.causes(scores) == set(causes), cut
    assert Cut().causes({}) == set()
    assert Cut(least=0.5).inhibitors(scores) == {"E"}
    answers = {PAIR: Answer(scores=scores)}
    lasts = {min((scores[event] for event in cut.causes(scores)), default=0.0) for cut in grid(answers)}
    assert lasts >= {4.0, 2.0, 1.0}  # every strength can be the last that passes


def test_agreement_is_over_the_causes_of_the_first() -> None:
    first = {("1", "y"): Answer(frozenset("AB")), ("2", "y"): Answer(frozenset("CD"))}
    second = {("1", "y"): Answer(frozenset("AX"), frozenset("B"))}
    assert agreement(first, second) == {"agreement": 0.25, "sign_changes": 0.25}
    assert agreement(first, first) == {"agreement": 1.0, "sign_changes": 0.0}
    assert agreement({}, first) == {}


def test_trained_rows_ask_one_model_that_is_kept(part: Callable[..., Part]) -> None:
    """On a network that has hardly learnt: every label of every sequence is answered, and the same again."""
    given = part(test=part().test.take(np.arange(4)))
    pairs = {(given.test.sequence_ids[i].as_py(), y) for i in range(4) for y in given.test.labels_of(i)}
    rows = trained_rows(ESTIMATORS, FEW)
    for name in ("input x gradient", "intervention"):
        found = rows[name](given)
        assert set(found.answers) == pairs, name
        assert found.passes is not None
        assert found.passes > 0
        assert found.answers == rows[name](given).answers, name


def test_what_chooses_has_not_learnt_from_judge(
    part: Callable[..., Part], known: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = part().train
    given, learnt = part(train=train, learn=train.take(range(100))), list[Any]()

    def model(data: Dataset, part: Part, seed: int, settings: ModelSettings) -> ModelSet:
        learnt.append((data, seed))
        return ModelSet((trained.true_model(given, given.train, joined([given.test, given.judge])),), ())  # type: ignore[arg-type]

    monkeypatch.setattr(trained, "trained_on", model)
    trained_rows({"loo": ESTIMATORS["leave-one-out"]}, FEW)["loo (tuned)"](replace(given, seed=7))
    assert [(data is given.learn, seed) for data, seed in learnt] == [(True, 7), (False, 7)]
    assert learnt[1][0] is given.train


def test_the_second_seed_is_asked_the_same(
    part: Callable[..., Part], known: Any, night: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first seed finds two causes, the second one of them and takes the other for an inhibitor."""
    weights = {3: (0.4, 0.3), 4: (0.4, -0.2)}
    monkeypatch.setattr(
        trained, "trained_on", lambda data, part, seed, settings: ModelSet((known(*weights[seed]),), ())
    )
    row = with_agreement(trained_rows({"intervention": ESTIMATORS["intervention"]}, FEW)["intervention"])
    found = row(part(test=night, seed=3))
    assert found.answers[PAIR].causes == {"E00", "E01"}
    assert found.extra == {"agreement": 0.5, "sign_changes": 0.5}
