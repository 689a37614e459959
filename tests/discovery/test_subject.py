"""Contexts of many sequences built at once: bit by bit what numpy makes of each alone, whatever stands beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from oscar_causal.data.vocabulary import SPECIAL_IDS
from oscar_causal.discovery.contexts import Stream, draw
from oscar_causal.discovery.subject import Subject, Variants, build_contexts, prepare, respond_at

TYPES = 30


def subject_of(workshop: Any, name: str, length: int, *, tied: bool) -> Subject:
    rng = np.random.default_rng(length)
    times = np.cumsum(rng.integers(0, 2, length)).astype(float).tolist() if tied else None
    model = workshop.response(TYPES, lambda present: np.full((len(present), 1), 0.5))
    sequence = workshop.contexts(rng.integers(0, 9, length), times)
    return prepare(model, sequence, sequence_id=name, seed=3, shuffle=True)


def literal(part: Variants) -> np.ndarray:
    """One context after the other, from the numpy generator and a running sum of the law."""
    subject = part.subject
    shape = part.masks.shape
    streams = {
        what: Stream(3, subject.sequence_id, f"{what} {part.purpose}").uniforms(*shape) for what in ("draw", "tie")
    }
    law = np.ones((shape[1], TYPES + SPECIAL_IDS))
    law[:, :SPECIAL_IDS] = 0
    law[:, np.unique(subject.event_ids)] = 0
    draws = draw(torch.as_tensor(law / law.sum(1, keepdims=True)), streams["draw"])
    ids = np.where(part.masks, draws, subject.event_ids)
    if not part.shuffled or subject.ties is None:
        return ids
    order = np.lexsort((streams["tie"], np.broadcast_to(subject.ties, shape)), axis=-1)
    return np.take_along_axis(ids, order, axis=1)


def some_parts(workshop: Any) -> list[Variants]:
    rng = np.random.default_rng(0)
    cases = [("a", 7, True, True, 5), ("b", 12, False, True, 1), ("c", 3, True, False, 4), ("d", 12, True, True, 9)]
    return [
        Variants(
            subject_of(workshop, name, length, tied=tied), rng.random((rows, length)) < 0.4, f"look {name}", shuffled
        )
        for name, length, tied, shuffled, rows in cases
    ]


@pytest.mark.bits
def test_contexts_built_together_are_those_of_each_alone(workshop: Any) -> None:
    parts = some_parts(workshop)
    assert any(part.subject.ties is not None for part in parts)
    wanted = [literal(part) for part in parts]
    for which in ([0, 1, 2, 3], [3, 1], [2], [1]):
        built = build_contexts([parts[k] for k in which])
        for k, ids in zip(which, built, strict=True):
            assert (ids.numpy() == wanted[k]).all()
    assert build_contexts([]) == []


def test_a_masked_type_is_absent_from_its_context_and_draws_ignore_masks(workshop: Any) -> None:
    rng = np.random.default_rng(2)
    subject = subject_of(workshop, "s", 30, tied=False)
    masks = rng.random((200, len(subject.types))) < 0.3
    spread = masks[:, subject.owner]
    contexts, others, draws = (
        build_contexts([Variants(subject, where, "x")])[0].numpy() for where in (spread, ~spread, np.ones_like(spread))
    )
    for n, (k, event) in ((n, pair) for n in range(200) for pair in enumerate(subject.types)):
        assert (event in contexts[n]) == (not masks[n, k])
    assert (contexts[~spread] == np.broadcast_to(subject.event_ids, spread.shape)[~spread]).all()
    assert contexts[spread].min() >= SPECIAL_IDS  # no padding, unknown or start token is drawn
    assert (np.where(spread, contexts, others) == draws).all()  # whichever mask asked, the same draw answered


@pytest.mark.parametrize("responsive", [False, True])
def test_models_that_build_contexts_themselves_are_left_to_it(workshop: Any, responsive: bool) -> None:
    subject = subject_of(workshop, "s", 8, tied=True)
    masks = np.random.default_rng(1).random((6, 8)) < 0.5

    class Model:
        def label_probs(self, contexts: Any, labels: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
            assert not responsive
            assert positions.tolist() == [8]
            return contexts.event_ids.double().mean(1)[:, None, None] * (1 + labels)

    class Itself(Model):
        def responses(self, variants: Variants, labels: torch.Tensor) -> torch.Tensor:
            return build_contexts([variants])[0].double().mean(1)[:, None, None] * (1 + labels)

    model: Any = Itself() if responsive else Model()
    got = respond_at(model, subject, masks, np.array([0, 3]), "x")
    mean = literal(Variants(subject, masks, "x")).mean(1)
    assert got == pytest.approx(np.stack([mean, 4 * mean], axis=1))
