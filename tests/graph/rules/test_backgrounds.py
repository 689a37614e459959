"""Taking out, putting in, asking."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oscar_causal.discovery.contexts import Stream
from oscar_causal.graph.rules.backgrounds import (
    ABSENT,
    Question,
    answers,
    choose_backgrounds,
    cleared,
    distinct,
    inserted,
    open_background,
)
from oscar_causal.graph.rules.laboratory import encode_for

RULES = {"y": "A & B", "z": "C"}


@pytest.fixture(scope="module")
def opened(garage: Any) -> Any:
    fleet = garage.fleet(RULES, count=60)
    model = garage.model(fleet, RULES)
    encoded = encode_for(model, fleet)
    return model, [open_background(model, encoded, k, f"s{k}") for k in range(12)]


def test_cleared_types_are_gone_and_nothing_else_changed(opened: Any) -> None:
    model, backgrounds = opened
    gone = np.array([model.vocabulary.event_ids[name] for name in "AB"])
    touched = 0
    for background in backgrounds:
        before = background.event_ids
        after = cleared(background, gone, Stream(0, background.sequence_id, "test"))
        assert not np.isin(after, gone).any()
        same = ~np.isin(before, gone)
        assert (after[same] == before[same]).all()
        touched += int((~same).sum())
    assert touched > 5


def test_inserted_puts_events_where_told() -> None:
    rows = inserted(np.arange(5), np.array([[1, 3], [0, 4]]), np.array([[9, 8], [ABSENT, 7]]))
    assert rows.tolist() == [[0, 9, 2, 8, 4], [0, 1, 2, 3, 7]]


def test_positions_of_a_row_become_distinct() -> None:
    rng = np.random.default_rng(0)
    positions = distinct(rng.integers(0, 6, (200, 6)), 6)
    assert (np.sort(positions, axis=1) == np.arange(6)).all()
    assert distinct(np.array([[1, 1, 2]]), 9).tolist() == [[1, 2, 3]]


@pytest.mark.bits
def test_questions_of_several_labels_share_a_pass_and_keep_their_own_answer(opened: Any) -> None:
    model, backgrounds = opened
    labels = [model.vocabulary.label_ids[name] for name in RULES]
    rows = [b.event_ids[None, :].repeat(k + 1, 0) for k, b in enumerate(backgrounds)]
    none = [b.event_ids[None, :][:0] for b in backgrounds]
    together = answers(backgrounds, [Question(labels[0], rows), Question(labels[1], rows), Question(labels[0], none)])
    for number, label in enumerate(labels):
        alone = answers(backgrounds, [Question(label, rows)])[0]
        for a, b in zip(together[number], alone, strict=True):
            np.testing.assert_array_equal(a, b)
    assert [len(part) for part in together[0]] == list(range(1, 13))
    assert all(len(part) == 0 for part in together[2])


def test_backgrounds_are_long_enough_and_have_the_fewest_labels(garage: Any) -> None:
    fleet = garage.fleet({"y": "A | B | C"}, count=80)
    encoded = encode_for(garage.model(fleet, {"y": "A | B | C"}), fleet)
    chosen = choose_backgrounds(encoded, 10, 16, seed=0)
    assert len(set(chosen.tolist())) == 10
    assert encoded.labels.lengths[chosen].max() <= np.sort(encoded.labels.lengths)[9]
    assert len(choose_backgrounds(encoded, 10, 17, seed=0)) == 0
