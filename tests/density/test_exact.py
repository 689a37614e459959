"""The oracle as a model: the solvable process's own answers, through the protocols, by hand for the ids."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from oscar_causal.data.solvable import SolvableProcess, example
from oscar_causal.data.vocabulary import SPECIAL_IDS
from oscar_causal.density.exact import ExactDensity
from oscar_causal.density.interface import Contexts, EventDensity, LabelDensity
from oscar_causal.errors import UsageError


def contexts_of(types: np.ndarray) -> Contexts:
    ids = torch.as_tensor(types.astype(np.int64) + SPECIAL_IDS)
    return Contexts(ids, torch.arange(ids.shape[1], dtype=torch.float64), torch.zeros(ids.shape[1], 0))


@pytest.mark.bits
@pytest.mark.parametrize("name", ["graded", "hidden", "order"])
def test_label_probs_are_the_process_own(name: str) -> None:
    process = example(name)
    density = ExactDensity(process)
    assert isinstance(density, LabelDensity)
    assert isinstance(density, EventDensity)
    types = process.sample(7, np.random.default_rng(2)).event_ids
    labels = torch.arange(len(process.label_names)).flip(0)
    positions = torch.tensor([0, 3, process.length])
    found = density.label_probs(contexts_of(types), labels, positions)
    assert found.dtype == torch.float32
    for p, position in enumerate(positions.tolist()):
        expected = process.label_probs_prefix(types[:, :position])[:, ::-1]
        np.testing.assert_allclose(found[:, p], expected, rtol=1e-6)
        alone = density.label_probs(contexts_of(types), labels, positions[p : p + 1])[:, 0]
        np.testing.assert_array_equal(alone, found[:, p])
    whole = process.label_probs(types)[:, ::-1]
    np.testing.assert_allclose(found[:, -1], whole, rtol=1e-6)


def test_a_short_context_is_a_prefix(process: SolvableProcess) -> None:
    density = ExactDensity(process)
    types = process.sample(5, np.random.default_rng(0)).event_ids[:, :4]
    found = density.label_probs(contexts_of(types), torch.tensor([1]), torch.tensor([4]))
    np.testing.assert_allclose(found[:, 0], process.label_probs_prefix(types)[:, [1]], rtol=1e-6)


def test_event_probs_follow_the_chain(process: SolvableProcess) -> None:
    density = ExactDensity(process)
    types = process.sample(1, np.random.default_rng(3)).event_ids
    law = density.event_probs(contexts_of(types))
    assert law.shape == (process.length, density.vocabulary.size)
    assert not law[:, :SPECIAL_IDS].any()
    for i in range(process.length):
        np.testing.assert_allclose(law[i, SPECIAL_IDS:], process.next_event_probs(types[0, :i]), rtol=1e-6)
    own = law[torch.arange(process.length), torch.as_tensor(types[0].astype(np.int64)) + SPECIAL_IDS]
    assert float(own.log().sum()) == pytest.approx(float(process.sequence_logp(types[0])), rel=1e-5)


def test_the_perturbed_twin_is_off_by_no_more_than_said(process: SolvableProcess) -> None:
    types = process.sample(50, np.random.default_rng(4)).event_ids
    labels, positions = torch.arange(2), torch.tensor([2, 6])
    exact = ExactDensity(process).label_probs(contexts_of(types), labels, positions).double().logit()
    wrong = ExactDensity(process, error=0.3, seed=1).label_probs(contexts_of(types), labels, positions).double().logit()
    off = (wrong - exact).abs()
    assert 0.2 < float(off.max()) < 0.3 + 1e-4
    other = ExactDensity(process, error=0.3, seed=2).label_probs(contexts_of(types), labels, positions).double().logit()
    assert not torch.equal(wrong, other)
    law = ExactDensity(process, error=0.3).event_probs(contexts_of(types[:1]))
    np.testing.assert_allclose(law.sum(-1), 1, rtol=1e-5)
    assert not torch.equal(law, ExactDensity(process).event_probs(contexts_of(types[:1])))


def test_foreign_events_are_refused(process: SolvableProcess) -> None:
    with pytest.raises(UsageError, match="<unknown>"):
        ExactDensity(process).event_probs(contexts_of(np.array([[0, -2]])))
    with pytest.raises(UsageError, match="one sequence, got 2"):
        ExactDensity(process).event_probs(contexts_of(np.zeros((2, 3), int)))
