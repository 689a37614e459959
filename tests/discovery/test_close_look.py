"""The close look against models whose every answer is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oscar_causal.discovery.close_look import CloseLook, close_look
from oscar_causal.discovery.subject import prepare

Rule = Callable[[np.ndarray], np.ndarray]


def look(workshop: Any, rule: Rule, candidates: list[int], budget: int = 20) -> tuple[CloseLook, Any]:
    """A sequence of the events e0 ... e9; P = 0.9 where the rule holds, else 0.1."""
    model = workshop.response(60, lambda present: np.where(rule(present), 0.9, 0.1)[:, None])
    subject = prepare(model, workshop.contexts(list(range(10))), sequence_id="s", seed=0, shuffle=False)
    model.asked.clear()
    found = close_look(model, subject, np.array([0]), np.array([0.9]), np.array(candidates, np.int64), budget)
    return found, model


def test_needed_events_answer_alone_and_others_not(workshop: Any) -> None:
    found, _ = look(workshop, lambda present: present[:, 0] & present[:, 1], [0, 1, 2, 3])
    assert found.alone[:, 0] == pytest.approx([0.8, 0.8, 0, 0], abs=1e-6)
    assert found.responses[:, 0] == pytest.approx([8 / 9, 8 / 9, 0, 0], abs=1e-6)


def test_events_that_stand_in_for_each_other_answer_in_pairs(workshop: Any) -> None:
    found, _ = look(workshop, lambda present: (present[:, 0] | present[:, 1]) & present[:, 2], [0, 1, 2, 3, 4])
    assert found.alone[:, 0] == pytest.approx([0, 0, 0.8, 0, 0], abs=1e-6)
    assert found.responses[:, 0] == pytest.approx([8 / 9, 8 / 9, 8 / 9, 0, 0], abs=1e-6)


def test_two_complete_routes_answer_in_pairs(workshop: Any) -> None:
    rule = lambda present: (present[:, 0] & present[:, 1]) | (present[:, 2] & present[:, 3])  # noqa: E731
    found, _ = look(workshop, rule, [0, 1, 2, 3, 4])
    assert found.responses[:, 0] == pytest.approx([8 / 9] * 4 + [0], abs=1e-6)


def test_a_bystander_does_not_answer_for_a_pair(workshop: Any) -> None:
    found, model = look(workshop, lambda present: present[:, 0], [1, 2, 3])
    assert found.responses[:, 0] == pytest.approx([0, 0, 0], abs=1e-6)
    assert found.contexts == 3 + 1 + 3  # each alone, all together, and second draws: no pairs were worth asking


@pytest.mark.parametrize("budget", [5, 6, 9, 20])
def test_the_budget_is_kept_and_counted(workshop: Any, budget: int) -> None:
    found, model = look(workshop, lambda present: present[:, 0] | present[:, 1], [0, 1, 2, 3, 4], budget)
    asked = sum(len(ids) for ids in model.asked)
    assert asked == found.contexts <= budget


def test_nothing_to_look_at(workshop: Any) -> None:
    found, model = look(workshop, lambda present: present[:, 0], [])
    assert found.responses.shape == (0, 1)
    assert found.contexts == 0
    assert not model.asked


def test_only_candidates_are_ever_replaced(workshop: Any) -> None:
    _, model = look(workshop, lambda present: present[:, 4] | present[:, 5], [4, 5])
    asked = np.concatenate(model.asked)
    kept = [0, 1, 2, 3, 6, 7, 8, 9]
    assert (asked[:, kept] == np.array(kept) + 3).all()
    assert (asked[:, [4, 5]] != np.array([7, 8])).any(0).all()
