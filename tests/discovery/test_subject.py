"""Contexts of many sequences built at once: bit by bit what numpy makes of each alone, whatever stands beside it."""

from __future__ import annotations

from dataclasses import replace
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
        for k, contexts in zip(which, built, strict=True):
            assert (contexts.event_ids.numpy() == wanted[k]).all()
    assert build_contexts([]) == []


def test_a_masked_type_is_absent_from_its_context_and_draws_ignore_masks(workshop: Any) -> None:
    rng = np.random.default_rng(2)
    subject = subject_of(workshop, "s", 30, tied=False)
    masks = rng.random((200, len(subject.types))) < 0.3
    spread = masks[:, subject.owner]
    contexts, others, draws = (
        build_contexts([Variants(subject, where, "x")])[0].event_ids.numpy()
        for where in (spread, ~spread, np.ones_like(spread))
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
            return build_contexts([variants])[0].event_ids.double().mean(1)[:, None, None] * (1 + labels)

    model: Any = Itself() if responsive else Model()
    got = respond_at(model, subject, masks, np.array([0, 3]), "x")
    mean = literal(Variants(subject, masks, "x")).mean(1)
    assert got == pytest.approx(np.stack([mean, 4 * mean], axis=1))


def with_channel(part: Variants) -> Variants:
    """The same contexts of a sequence with one channel: its values number the positions."""
    subject = part.subject
    values = torch.arange(len(subject.event_ids)).float()[:, None]
    return replace(part, subject=replace(subject, sequence=replace(subject.sequence, channels=values)))


@pytest.mark.bits
def test_channel_values_travel_with_their_event_and_end_with_it(workshop: Any) -> None:
    parts = [with_channel(part) for part in some_parts(workshop)]
    together = build_contexts(parts)
    for part, contexts in zip(parts, together, strict=True):
        alone = build_contexts([part])[0]
        assert np.array_equal(contexts.channels.numpy(), alone.channels.numpy(), equal_nan=True)
        sources, ids = contexts.channels[..., 0].numpy(), contexts.event_ids.numpy()
        kept = ~np.isnan(sources)
        assert (part.subject.event_ids[sources[kept].astype(int)] == ids[kept]).all()
        for row, mask in zip(sources, part.masks, strict=True):  # whatever was kept still has its value, once
            assert sorted(row[~np.isnan(row)]) == np.flatnonzero(~mask).tolist()
    moved = together[3].channels[..., 0]
    assert (moved != torch.arange(moved.shape[1])).logical_and(~moved.isnan()).any()  # ties were shuffled


def test_replacing_an_event_whose_channel_value_decides_moves_the_label(workshop: Any) -> None:
    """P hangs on one number and on no event: it falls where that number's event is replaced, and nowhere else."""
    sequence = workshop.contexts([1, 2, 3, 4])
    sequence = replace(sequence, channels=torch.tensor([[0.0], [9.0], [0.0], [torch.nan]]))

    class Reader(type(workshop.response(TYPES, lambda present: present))):  # type: ignore[misc]
        def label_probs(self, contexts: Any, labels: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
            loud = (contexts.channels.expand(len(contexts.event_ids), -1, 1)[..., 0] > 5).any(1)
            return torch.where(loud, 0.9, 0.1)[:, None, None].expand(-1, len(positions), len(labels))

    plain = workshop.response(TYPES, lambda present: np.full((len(present), 1), 0.5))
    subject = prepare(plain, sequence, sequence_id="s", seed=0, shuffle=True)
    model = Reader(plain.vocabulary, None)
    masks = np.vstack([np.zeros((1, 4), bool), np.eye(4, dtype=bool)])
    assert respond_at(model, subject, masks, np.array([0]), "x")[:, 0] == pytest.approx([0.9, 0.9, 0.1, 0.9, 0.9])
