"""Many clients' questions in one pass get the answers each would get alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from oscar_causal.data.sequences import Dataset
from oscar_causal.density.folds import MEAN, ModelSet
from oscar_causal.density.model import OscarModel, sequence_contexts
from oscar_causal.errors import DataError
from oscar_causal.serve.payloads import Sequence
from oscar_causal.serve.predictions import Question, predict
from oscar_causal.serve.prepared import Prepared, judge, prepare

ROUNDING = 2e-6


def alone(models: ModelSet, prepared: Prepared, positions: list[int]) -> np.ndarray:
    """The library's own answer: one sequence, one context."""
    every = torch.arange(len(models.vocabulary.labels))
    contexts = sequence_contexts(prepared.encoded, 0)
    return judge(models, prepared.route).label_probs(contexts, every, torch.tensor(positions))[0].numpy()


def test_company_changes_nothing(models: ModelSet, draw_sequence: Callable[..., Sequence]) -> None:
    parts = [prepare(models, draw_sequence(length, seed)) for length in (1, 7, 24, 40) for seed in (0, 1)]
    questions = [Question(part, each_event=bool(k % 2)) for k, part in enumerate(parts)]
    for question, answer in zip(questions, predict(models, questions), strict=True):
        length = question.prepared.length
        wanted = alone(models, question.prepared, list(range(1, length + 1)) if question.each_event else [length])
        assert answer.shape == wanted.shape
        np.testing.assert_allclose(answer, wanted, atol=ROUNDING)


def test_many_passes_when_there_is_too_much_for_one(
    models: ModelSet, draw_sequence: Callable[..., Sequence], monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [prepare(models, draw_sequence(3 + k % 9, k)) for k in range(20)]
    whole = predict(models, [Question(part) for part in parts])
    rows: list[int] = []
    asked = OscarModel.label_logits_at

    def counted(self: OscarModel, encoded: object, indices: np.ndarray, positions: np.ndarray) -> torch.Tensor:
        rows.append(len(indices))
        return asked(self, encoded, indices, positions)  # type: ignore[arg-type]

    monkeypatch.setattr(OscarModel, "label_logits_at", counted)
    monkeypatch.setitem(__import__("oscar_causal.density.quality", fromlist=["x"]).TOKENS_PER_PASS, "cpu", 48)
    cut = predict(models, [Question(part) for part in parts])
    assert sum(rows) == 20
    assert 1 < len(rows) < 20
    np.testing.assert_allclose(np.stack(cut), np.stack(whole), atol=ROUNDING)


def test_each_subject_meets_the_fold_that_never_saw_it(folds: ModelSet, fleet: Dataset) -> None:
    known = [prepare(folds, Sequence(subject_id=f"owner {k}", events=fleet.events_of(k))) for k in range(8)]
    new = prepare(folds, Sequence(subject_id="somebody new", events=fleet.events_of(0)))
    assert {part.route for part in known} == {0, 1}
    assert new.route == MEAN
    assert not any(part.seen for part in [*known, new])
    for part, answer in zip([*known, new], predict(folds, [Question(p) for p in [*known, new]]), strict=True):
        np.testing.assert_allclose(answer, alone(folds, part, [part.length]), atol=ROUNDING)
    routes = [judge(folds, part.route) for part in known]
    assert [folds.for_sequence(f"owner {k}") is route for k, route in enumerate(routes)] == [True] * 8


def test_channels_reach_the_model(models: ModelSet, draw_sequence: Callable[..., Sequence]) -> None:
    plain = draw_sequence(10)
    driven = plain.model_copy(update={"channels": {"mileage": [1e6] * 10}})
    first, second = predict(models, [Question(prepare(models, item)) for item in (plain, driven)])
    assert np.abs(first - second).max() > 10 * ROUNDING


@pytest.mark.bits
def test_a_channel_of_nulls_is_a_missing_channel(models: ModelSet, draw_sequence: Callable[..., Sequence]) -> None:
    parts = [prepare(models, draw_sequence(6, channels=channels)) for channels in ({}, {"mileage": [None] * 6})]
    (first,), (second,) = (
        predict(models, [Question(part)]) for part in parts
    )  # one pass each: company rounds otherwise
    np.testing.assert_array_equal(first, second)


def test_a_foreign_channel_is_refused(models: ModelSet, draw_sequence: Callable[..., Sequence]) -> None:
    with pytest.raises(DataError, match="speed"):
        prepare(models, draw_sequence(3, channels={"speed": [1.0, 2.0, 3.0]}))


def test_flags_tell_what_the_model_does_not_see(models: ModelSet) -> None:
    strange = prepare(models, Sequence(events=["zebra", "A", "zebra", "lion"]))
    assert strange.flags == ["2 event types the model does not know: zebra, lion"]
    long = prepare(models, Sequence(events=["A"] * 30))
    assert long.flags == ["the oldest 6 events are not read"]
    assert long.length == 24
