"""What ranked the events of a sequence is what the model was asked, and is recorded with every verdict."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from oscar_causal.data.sequences import from_records
from oscar_causal.data.vocabulary import Vocabulary
from oscar_causal.density.interface import Contexts
from oscar_causal.density.slopes import has_slopes
from oscar_causal.discovery.extensions import OwnLaw
from oscar_causal.discovery.finalists import (
    Ranking,
    alternate,
    choose_finalists,
    focus_rates,
    forecast_moves,
    rank_by_screen,
)
from oscar_causal.discovery.intervention import InterventionConfig
from oscar_causal.discovery.oneshot import DiscoveryConfig, discover
from oscar_causal.discovery.results import boundary_table, read_table
from oscar_causal.discovery.subject import prepare

LABELS = tuple(f"fault {k}" for k in range(9))
EVENTS = [f"e{k}" for k in range(12)]
GOLDEN = Path(__file__).parents[1] / "golden" / "results-1"


@dataclass(frozen=True)
class Differentiable:
    """Label k hangs on event k; a model that says so in slopes too, and counts how often it was asked for them."""

    answering: Any
    asked: list[int]
    max_length: int = 100
    min_context: int = 1

    @property
    def vocabulary(self) -> Vocabulary:
        return self.answering.vocabulary

    def event_probs(self, sequence: Contexts) -> torch.Tensor:
        return self.answering.event_probs(sequence)

    def label_probs(self, contexts: Contexts, labels: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        return self.answering.label_probs(contexts, labels, positions)

    def label_slopes(self, sequence: Contexts, labels: torch.Tensor, law: torch.Tensor, shares: Any) -> torch.Tensor:
        self.asked.append(len(labels))
        own = sequence.event_ids[0][:, None] == labels[None] + sequence.event_ids.min()  # (L, Y')
        return own.double().expand(len(shares), -1, -1)


@pytest.fixture
def plain(workshop: Any) -> Any:
    return workshop.response(40, lambda present: np.where(present[:, : len(LABELS)], 0.9, 0.1), LABELS)


def explain(model: Any, labels: int, contexts: int) -> list[Any]:
    record = {"sequence_id": "s", "events": EVENTS, "times": list(range(12)), "labels": list(LABELS[:labels])}
    config = DiscoveryConfig(intervention=InterventionConfig(contexts=contexts))
    return next(discover(model, from_records([record]), config))


@pytest.mark.parametrize(
    ("labels", "contexts"), [(1, 16), (2, 16), (3, 16), (5, 32), (6, 32), (8, 64), (9, 64), (8, 256)]
)
def test_what_ranked_is_what_the_model_was_asked(plain: Any, labels: int, contexts: int) -> None:
    """Two fifths of the contexts, of few of them half, pay for slopes at three passes a label, or a screen ranks."""
    model = Differentiable(plain, [])
    found = explain(model, labels, contexts)
    assert {item.ranked_by for item in found} == {"slopes" if model.asked else "screen"}
    assert bool(model.asked) == (3 * labels <= max(2 * contexts // 5, min(contexts // 2, 24)))
    untested = [item for boundary in found for item in boundary.evidence if item.p_value is None]
    assert bool(untested) == (not model.asked)  # a screen says something about every event, slopes about finalists


def test_a_model_without_slopes_is_screened(plain: Any) -> None:
    assert [item.ranked_by for item in explain(plain, 2, 64)] == ["screen", "screen"]


def test_it_is_a_column_of_the_verdicts_and_null_where_nothing_was_ranked(plain: Any) -> None:
    found = explain(plain, 2, 64)
    assert boundary_table(found, "verdicts")["ranked_by"].to_pylist() == ["screen", "screen"]
    record = {"sequence_id": "s", "events": EVENTS, "times": list(range(12)), "labels": list(LABELS[:1])}
    nothing_to_test = DiscoveryConfig(excluded=tuple(EVENTS))
    assert [item.ranked_by for item in next(discover(plain, from_records([record]), nothing_to_test))] == [None]


def test_folders_from_before_the_column_read_as_unknown() -> None:
    assert set(read_table(GOLDEN, "verdicts")["ranked_by"].to_pylist()) == {None}


def test_slopes_are_seen_through_a_wrapper() -> None:
    """An own replacement or estimator wraps the model; the ranking must not depend on how Python checks protocols."""

    class Model:
        def label_slopes(self) -> None: ...

    class Wrapper:
        def __getattr__(self, name: str) -> object:
            return getattr(Model(), name)

    assert has_slopes(Wrapper())
    assert not has_slopes(OwnLaw(object(), None))


def test_finalists_are_allowed_strong_either_way_and_the_most_promising() -> None:
    pull = np.array([[0.1], [-0.9], [1.0], [0.5], [0.45], [3.0]])
    ranking = Ranking([np.array([5, 2, 1, 3, 4, 0])], np.ones(1), 3, pull=pull)
    allowed = np.array([[True, True, True, True, True, False]])  # without the strongest, 1.0 is the measure
    assert [part.tolist() for part in choose_finalists(ranking, allowed, 6)] == [[2, 1, 3, 4]]
    assert [part.tolist() for part in choose_finalists(ranking, allowed, 2)] == [[2, 1]]


def test_rates_are_one_over_the_size_and_the_smaller_of_two_labels() -> None:
    ranking = Ranking([], np.array([3.0, 5.0, 0.0, 40.0]), 0)
    finalists = [np.array([0, 1]), np.array([1, 2]), np.array([3]), np.array([4])]
    assert focus_rates(ranking, finalists, 6).tolist() == pytest.approx([1 / 3, 0.2, 0.2, 0.5, 0.12, 0.0])


def test_two_rankings_take_turns_and_the_first_begins() -> None:
    assert alternate(np.array([3, 1, 0, 2]), np.array([2, 3, 1, 0])).tolist() == [3, 2, 1, 0]


def test_a_type_moves_the_forecast_by_its_largest_step(workshop: Any) -> None:
    """Events 0, 1, 0, 0: the first is measured against nothing, the last moves less than the third."""
    steps = {1: 0.2, 2: 0.8, 3: 0.6, 4: 0.55}

    def answer(present: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    model = workshop.response(10, answer)
    object.__setattr__(
        model,
        "label_probs",
        lambda contexts, labels, at: torch.tensor([[[steps[p]] for p in at.tolist()]], dtype=torch.float64),
    )
    subject = prepare(model, workshop.contexts([0, 1, 0, 0]), sequence_id="s", seed=0, shuffle=True)

    def log_odds(p: float) -> float:
        return float(np.log(p / (1 - p)))

    moves = forecast_moves(model, subject, np.array([0]))[:, 0]
    assert moves.tolist() == pytest.approx([log_odds(0.8) - log_odds(0.6), log_odds(0.8) - log_odds(0.2)])


def test_the_guessed_size_is_that_of_needed_events(workshop: Any) -> None:
    """P falls a little without e9, which is no loss of the label; of two needed events both survive in (1 - rate)^2."""
    model = workshop.response(40, lambda p: p[:, [2]] * p[:, [5]] * np.where(p[:, [9]], 1.0, 0.8))
    subject = prepare(model, workshop.contexts(list(range(12))), sequence_id="s", seed=0, shuffle=True)
    ranking = rank_by_screen(model, subject, np.array([0]), np.ones(1), contexts=400, rate=0.15)
    assert ranking.sizes[0] == pytest.approx(2.0, abs=0.4)
    assert set(ranking.orders[0][:3].tolist()) >= {2, 5}
