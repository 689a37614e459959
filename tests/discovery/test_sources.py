"""What stands where an event was: each source finds the same causes, by draws of its own kind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from oscar_causal.data.sequences import Dataset, from_records
from oscar_causal.data.vocabulary import Vocabulary
from oscar_causal.density.adapters import from_function
from oscar_causal.discovery.boundary import Boundary
from oscar_causal.discovery.intervention import InterventionConfig
from oscar_causal.discovery.oneshot import DiscoveryConfig, discover
from oscar_causal.discovery.sources import REPLACEMENTS
from oscar_causal.errors import UsageError

CONFIG = DiscoveryConfig(intervention=InterventionConfig(contexts=64))
NAMES = Vocabulary(tuple(f"e{k}" for k in range(30)), ("fault",))


def function(asked: list[list[str]]) -> Any:
    """A plain function: the fault comes with e3 before e4. Remembers what it was asked."""

    def answer(rows: list[list[str]]) -> list[list[float]]:
        asked.extend(rows)
        return [[0.9 if _before(row, "e3", "e4") else 0.1] for row in rows]

    return from_function(answer, NAMES)


def _before(row: list[str], first: str, second: str) -> bool:
    return first in row and second in row and row.index(first) < row.index(second)


@pytest.fixture(scope="module")
def data() -> Dataset:
    rng = np.random.default_rng(0)
    rows = [[f"e{k}" for k in range(9)], *([f"e{k}" for k in rng.integers(0, 30, 9)] for _ in range(40))]
    return from_records(
        {"sequence_id": f"s{n}", "events": row, "times": list(range(9)), "labels": ["fault"]}
        for n, row in enumerate(rows)
    )


def explain(model: Any, data: Dataset, replacement: str, **options: Any) -> Boundary:
    ((found,),) = discover(model, data, replace(CONFIG, replacement=replacement), indices=[0], **options)
    return found


@pytest.mark.parametrize("replacement", ["marginal", "donors", "delete"])
def test_a_plain_function_is_explained_without_a_next_event_model(data: Dataset, replacement: str) -> None:
    asked: list[list[str]] = []
    found = explain(function(asked), data, replacement)
    assert {item.event for item in found.causes} == {"e3", "e4"}
    shorter = [row for row in asked if len(row) < 9]
    changed = [row for row in asked if len(row) == 9 and row != data.events_of(0)]
    if replacement == "delete":
        assert not changed
        whole = data.events_of(0)
        assert all(row == [event for event in whole if event in row] for row in shorter)
    else:
        assert changed
        drawn = {event for row in changed for event in row} - set(data.events_of(0))
        assert drawn <= {name for i in range(len(data)) for name in data.events_of(i)}


def test_a_model_without_tf_x_says_what_to_choose(data: Dataset) -> None:
    with pytest.raises(UsageError, match="marginal, donors or delete"):
        explain(function([]), data, "model")


def test_frequencies_are_those_of_the_background(data: Dataset) -> None:
    asked: list[list[str]] = []
    other = from_records([{"sequence_id": "b", "events": ["e20", "e21"], "times": [0, 1]}])
    explain(function(asked), data, "marginal", background=other)
    drawn = {event for row in asked for event in row} - set(data.events_of(0))
    assert drawn == {"e20", "e21"}


def test_a_model_with_tf_x_can_borrow_another_law(workshop: Any) -> None:
    model = workshop.response(30, lambda present: np.where(present[:, [3]], 0.9, 0.1))
    rows = [{"sequence_id": "a", "events": [f"e{k}" for k in range(9)], "times": list(range(9)), "labels": ["fault"]}]
    other = from_records([{"sequence_id": "b", "events": ["e20"], "times": [0]}])
    found = explain(model, from_records(rows), "marginal", background=other)
    assert [item.event for item in found.causes] == ["e3"]
    ids = np.unique(np.concatenate(model.asked))
    assert set(ids.tolist()) == {*(model.vocabulary.event_ids[f"e{k}"] for k in (*range(9), 20))}
    assert found.contexts_logp is not None  # the model's own Tf_x still says how plausible that was


def test_an_event_named_like_the_mark_is_an_event(data: Dataset) -> None:
    names = Vocabulary(("<deleted>", *(f"e{k}" for k in range(12))), ("fault",))
    model = from_function(lambda rows: [[0.9 if "<deleted>" in row else 0.1] for row in rows], names)
    events = ["e0", "<deleted>", *(f"e{k}" for k in range(1, 9))]
    one = from_records([{"sequence_id": "a", "events": events, "times": list(range(10)), "labels": ["fault"]}])
    found = explain(model, one, "delete")
    assert [(item.event, item.positions) for item in found.causes] == [("<deleted>", (1,))]


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(UsageError, match=", ".join(REPLACEMENTS)):
        DiscoveryConfig(replacement="magic")
    with pytest.raises(UsageError, match="prefix"):
        DiscoveryConfig(estimator="prefix", replacement="delete")
