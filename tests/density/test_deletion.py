"""Deleting events: the model is asked about exactly the events, times and channels that are left."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
import torch

from oscar_causal.data.vocabulary import SPECIAL_IDS, UNKNOWN_ID, Vocabulary
from oscar_causal.density.deletion import Deleting
from oscar_causal.density.interface import Contexts, EventDensity, LabelDensity

NAMES = Vocabulary(("a", "b", "c", "d", "<deleted>"), ("x", "y"))


@dataclass
class Witness:
    """Answers with a number that depends on every event, time and channel of the prefix, and on the label."""

    vocabulary: Vocabulary = NAMES
    max_length: int = 50
    min_context: int = 1
    rows: list[int] = field(default_factory=list)

    def label_probs(self, contexts: Contexts, labels: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        self.rows.append(len(contexts.event_ids))
        per_event = contexts.event_ids * 0.01 + contexts.times * 0.001 + contexts.channels[:, 0] * 0.0001  # (N, L)
        order = torch.arange(1, per_event.shape[1] + 1)
        sums = torch.cat([torch.zeros(len(per_event), 1), (per_event * order).cumsum(1)], dim=1)
        return (sums[:, positions][:, :, None] * (1 + labels)).float()


def sequence(ids: list[list[int]]) -> Contexts:
    length = len(ids[0])
    times, channels = torch.arange(length).double() * 7, torch.arange(length, dtype=torch.float32)[:, None]
    return Contexts(torch.tensor(ids) + SPECIAL_IDS, times, channels)


def test_the_protocols_are_kept_and_the_vocabulary_has_one_more_event() -> None:
    model = Deleting(Witness())
    assert isinstance(model, LabelDensity)
    assert isinstance(model, EventDensity)
    assert model.vocabulary.size == NAMES.size + 1
    assert model.mark == NAMES.size
    assert (model.max_length, model.min_context, model.vocabulary.labels) == (50, 1, NAMES.labels)
    law = model.event_probs(sequence([[0, 1, 2]]))
    assert law.shape == (3, NAMES.size + 1)
    assert (law[:, model.mark] == 1).all()
    assert law.sum() == 3


def test_each_context_is_asked_as_what_is_left_of_it() -> None:
    witness = Witness()
    model, rng = Deleting(witness), np.random.default_rng(0)
    contexts = sequence(rng.integers(0, 4, (12, 6)).tolist())
    gone = torch.as_tensor(rng.random((12, 6)) < 0.4)
    gone[3] = gone[4]  # two that miss the same positions
    gone[:, 2] = False
    contexts.event_ids[gone] = model.mark
    labels, positions = torch.tensor([1, 0]), torch.tensor([3, 6])
    found = model.label_probs(contexts, labels, positions)
    for n in range(12):
        left = ~gone[n]
        alone = Contexts(contexts.event_ids[n][left][None], contexts.times[left], contexts.channels[left])
        counts = torch.tensor([int(left[:3].sum()), int(left.sum())])
        assert torch.equal(found[n], Witness().label_probs(alone, labels, counts)[0])
    assert sum(witness.rows) == 12
    assert max(witness.rows) >= 2


def test_where_nothing_is_left_one_unknown_event_stands() -> None:
    model = Deleting(Witness())
    contexts = sequence([[0, 1, 2]])
    contexts.event_ids[:] = model.mark
    alone = Contexts(torch.tensor([[UNKNOWN_ID]]), contexts.times[-1:], contexts.channels[-1:])
    expected = Witness().label_probs(alone, torch.tensor([0]), torch.tensor([1]))
    assert torch.equal(model.label_probs(contexts, torch.tensor([0]), torch.tensor([3])), expected)


def test_an_event_of_that_name_is_no_mark() -> None:
    witness = Witness()
    contexts = sequence([[0, 4, 2]])  # the dataset's own "<deleted>"
    found = Deleting(witness).label_probs(contexts, torch.tensor([0]), torch.tensor([3]))
    assert torch.equal(found, Witness().label_probs(contexts, torch.tensor([0]), torch.tensor([3])))


@pytest.mark.parametrize("count", [1, 5])
def test_untouched_contexts_share_one_pass(count: int) -> None:
    witness = Witness()
    Deleting(witness).label_probs(sequence([[0, 1, 2]] * count), torch.tensor([0]), torch.tensor([3]))
    assert witness.rows == [count]
