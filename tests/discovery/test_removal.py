"""What one sequence loses: stand-ins are named, occurrences told apart, conditional information as defined."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from oscar_causal.data.sequences import from_records
from oscar_causal.data.vocabulary import SPECIAL_IDS
from oscar_causal.discovery.boundary import Boundary, EventEvidence
from oscar_causal.discovery.cmi import paired_cmi
from oscar_causal.discovery.intervention import InterventionConfig
from oscar_causal.discovery.oneshot import DiscoveryConfig, discover
from oscar_causal.discovery.removal import Removed, _note_pair


def explain(model: Any, events: list[str], contexts: int = 128, seed: int = 0) -> Boundary:
    data = from_records([{"sequence_id": "s", "events": events, "times": list(range(len(events)))}])
    config = DiscoveryConfig(intervention=InterventionConfig(contexts=contexts), labels=("fault",), seed=seed)
    ((boundary,),) = discover(model, data, config)
    return boundary


def evidence(boundary: Boundary, event: str) -> EventEvidence:
    (item,) = (item for item in boundary.evidence if item.event == event)
    return item


def names(count: int) -> list[str]:
    return [f"e{k}" for k in range(count)]


def test_two_events_that_stand_in_for_each_other_are_named_and_measured_together(workshop: Any) -> None:
    model = workshop.response(40, lambda present: np.where(present[:, [2, 5]].any(1), 0.9, 0.1)[:, None])
    told = 0
    for seed in range(6):
        boundary = explain(model, names(15), seed=seed)
        for event, other in (("e2", "e5"), ("e5", "e2")):
            item = evidence(boundary, event)
            if item.partner is not None:
                told += 1
                assert item.partner == other
                assert item.alone == pytest.approx(0.0, abs=1e-6)
                assert item.jointly == pytest.approx(0.8, abs=1e-6)
                assert item.cmi_nats == pytest.approx(paired_cmi(np.array([0.9]), np.array([0.1])), abs=1e-6)
    assert told >= 8


def test_a_cause_that_is_needed_has_no_partner(workshop: Any) -> None:
    model = workshop.response(40, lambda present: np.where(present[:, 3], 0.9, 0.1)[:, None])
    item = evidence(explain(model, names(15)), "e3")
    assert (item.partner, item.jointly) == (None, None)
    assert item.alone == pytest.approx(0.8, abs=1e-6)
    assert item.cmi_nats == pytest.approx(paired_cmi(np.array([0.9]), np.array([0.1])), abs=1e-6)


class Positioned:
    """A model that reads event ids as they stand: P = high where `rule(ids)` holds for a row of ids (L,)."""

    max_length, min_context = 100, 1

    def __init__(self, workshop: Any, rule: Any) -> None:
        self.inner = workshop.response(30, lambda present: present[:, :1] * 0.0)
        self.vocabulary, self.rule = self.inner.vocabulary, rule

    def event_probs(self, sequence: Any) -> torch.Tensor:
        return self.inner.event_probs(sequence)

    def label_probs(self, contexts: Any, labels: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        ids = contexts.event_ids.numpy() - SPECIAL_IDS
        answers = [[0.95 if self.rule(row[:p].tolist()) else 0.02 for p in positions.tolist()] for row in ids]
        return torch.tensor(answers)[:, :, None]


def test_the_occurrence_that_mattered_is_told(workshop: Any) -> None:
    """a must stand before b: only the first of three a's does."""
    events = ["e7", "e0", "e8", "e1", "e0", "e9", "e0", "e10"]
    model = Positioned(workshop, lambda ids: 0 in ids and 1 in ids[ids.index(0) :])
    item = evidence(explain(model, events), "e0")
    assert item.verdict == "cause"
    assert item.positions == (1, 4, 6)
    assert item.mattered == (1,)
    assert evidence(explain(model, events), "e1").mattered is None  # occurs once


def test_the_occurrence_that_inhibits_is_told(workshop: Any) -> None:
    """a forbids the label while it stands before b."""
    events = ["e7", "e0", "e8", "e1", "e0", "e9", "e0", "e10"]
    model = Positioned(workshop, lambda ids: 1 in ids and 0 not in ids[: ids.index(1)])
    item = evidence(explain(model, events), "e0")
    assert item.verdict == "inhibitor"
    assert item.mattered == (1,)


def test_of_several_stand_ins_the_one_that_costs_most_is_the_partner() -> None:
    removed = Removed()
    for pair, left in (((1, 2), 0.5), ((1, 3), 0.2), ((2, 3), 0.4), ((3, 4), 0.88)):
        _note_pair(removed, pair, left, reference=0.9, delta=0.05)
    assert removed.partner == {1: 3, 2: 3, 3: 1}
    assert removed.without_both == {1: 0.2, 2: 0.4, 3: 0.2}


def test_where_any_occurrence_will_do_all_are_named_and_where_two_are_needed_none(workshop: Any) -> None:
    events = ["e7", "e0", "e8", "e0", "e9", "e10"]
    anywhere = Positioned(workshop, lambda ids: 0 in ids)
    assert evidence(explain(anywhere, events), "e0").mattered == (1, 3)
    twice = Positioned(workshop, lambda ids: ids.count(0) >= 2)
    assert evidence(explain(twice, events), "e0").mattered == ()
