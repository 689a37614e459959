"""Evaluation over batches against a literal per-sequence evaluator."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oscar_causal.data.rules import EventIndex, evaluate, parse
from oscar_causal.errors import DataError


@settings(deadline=None)
@given(data=st.data())
def test_batches_agree_with_the_literal_reading(kit, data):
    rules = data.draw(st.lists(kit.rules(kit.letters, chains=True), min_size=1, max_size=5))
    sequences = data.draw(st.lists(kit.sequences(kit.letters), max_size=8))
    index = kit.index(sequences)
    for rule in rules:
        answer = evaluate(rule, index)
        assert answer.dtype == np.bool_
        assert answer.tolist() == [kit.holds(rule, sequence) for sequence in sequences]


@settings(deadline=None)
@given(data=st.data())
def test_the_order_inside_a_tie_never_decides(kit, data):
    rule = data.draw(kit.rules(kit.letters[:4], chains=True))
    sequence = data.draw(kit.sequences(kit.letters[:4]))
    order = data.draw(st.permutations(range(len(sequence.events))))
    shuffled = sorted(order, key=lambda place: sequence.times[place])  # only events of one time change places
    other = kit.Timed(tuple(sequence.events[i] for i in shuffled), tuple(sequence.times[i] for i in shuffled))
    first, second = evaluate(rule, kit.index([sequence, other]))
    assert first == second


def test_window_edges(kit):
    sequences = [kit.Timed(("A", "B"), (0.0, gap)) for gap in (0.0, 1e-9, 3600.0, np.nextafter(3600.0, 4000.0))]
    index = kit.index(sequences)
    assert evaluate(parse("A then B within 1h"), index).tolist() == [False, True, True, False]
    assert evaluate(parse("A then B"), index).tolist() == [False, True, True, True]
    assert not evaluate(parse("B then A"), index).any()


def test_the_nearest_earlier_occurrence_counts_not_the_first(kit):
    index = kit.index([kit.Timed(("A", "A", "B"), (0.0, 9.0, 10.0)), kit.Timed(("A", "B", "A"), (0.0, 5.0, 5.0))])
    assert evaluate(parse("A then B within 2s"), index).tolist() == [True, False]
    assert evaluate(parse("A then A"), index).tolist() == [True, True]


def test_chains_do_not_cross_sequences(kit):
    index = kit.index([kit.Timed(("A",), (0.0,)), kit.Timed(("B",), (1.0,)), kit.Timed((), ())])
    assert not evaluate(parse("A then B"), index).any()
    assert evaluate(parse("!A & !B"), index).tolist() == [False, False, True]


def test_without_times_positions_are_the_order(kit):
    index = kit.index([kit.Timed(("A", "B"), (0.0, 0.0))], with_times=False)
    assert evaluate(parse("A then B"), index).all()
    assert not evaluate(parse("B then A"), index).any()
    with pytest.raises(DataError, match="expected times for 'within'"):
        evaluate(parse("A then B within 5s"), index)


def test_unknown_names_and_foreign_ids_are_absent():
    index = EventIndex([0, 3], np.array([-1, 70_000, 5], dtype=np.int32), [0, 1, 2], {"A": 5, "B": 70_000, "C": 6})
    assert evaluate(parse("A & B & (B then A) & !C & !nowhere & !(nowhere >= 2)"), index).tolist() == [True]


def test_an_empty_batch():
    index = EventIndex([0], np.array([], dtype=np.int32), np.array([]), {"A": 0})
    assert evaluate(parse("A then A within 2s | !A"), index).shape == (0,)


def test_the_index_is_left_unchanged_by_rules(kit):
    index = kit.index([kit.Timed(("A", "B"), (0.0, 1.0))])
    before = index.rows_of("A").copy()
    for text in ("A & !A", "A | B", "!A", "A then B"):
        evaluate(parse(text), index)
    assert (index.rows_of("A") == before).all()
    assert evaluate(parse("A"), index).all()


@pytest.mark.parametrize(
    ("offsets", "ids", "times", "message"),
    [
        ([0, 2], [1, 2, 3], None, "expected offsets from 0 to 3 events, got 0 to 2"),
        ([1, 3], [1, 2, 3], None, "got 1 to 3"),
        ([0, 2, 1, 3], [1, 2, 3], None, "expected offsets that never fall, got a fall at 1"),
        ([], [1, 2, 3], None, "got none"),
        ([0, 3], [1, 2, 3], [0.0], "expected 3 times"),
        ([0, 3], [1.5, 2, 3], None, "whole event ids"),
    ],
)
def test_bad_batches_are_refused(offsets, ids, times, message):
    with pytest.raises(DataError, match=message):
        EventIndex(offsets, ids, times, {})


@pytest.mark.parametrize("times", [[0.0, 0.0, 2.0, 1.0], [0.0, 0.0, 2.0, np.nan]])
def test_falling_times_are_named_where_order_matters(times):
    index = EventIndex([0, 1, 4], [0, 1, 0, 1], times, {"A": 0, "B": 1})
    with pytest.raises(DataError, match="sequence 1 of the batch, position 2: expected times that never fall"):
        evaluate(parse("A then B"), index)


def test_a_block_of_the_paper_size():
    rng = np.random.default_rng(0)
    lengths = rng.integers(60, 240, 1024)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    event_ids = (29_100 * rng.random(offsets[-1]) ** 3).astype(np.int32)
    ids = {f"E{i}": i for i in range(29_100)}
    picks = rng.integers(0, 3000, (474, 4))
    rules = [parse(f"E{a} & (E{b} | E{c}) & !E{d}") for a, b, c, d in picks]
    index = EventIndex(offsets, event_ids, np.arange(offsets[-1], dtype=float), ids)
    answers = [evaluate(rule, index) for rule in rules]
    present = [set(event_ids[offsets[i] : offsets[i + 1]].tolist()) for i in range(1024)]
    for (a, b, c, d), answer in list(zip(picks, answers, strict=True))[::40]:
        assert answer.tolist() == [a in p and (b in p or c in p) and d not in p for p in present]
