"""Encoding, planning, padding and packing against literal twins that go one sequence and one event at a time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oscar_causal.data.batches import Encoded, encode, pack, pad, plan_batches
from oscar_causal.data.sequences import Dataset, from_records
from oscar_causal.data.vocabulary import PAD_ID, START_ID, UNKNOWN_ID, Vocabulary

VOCABULARY = Vocabulary(("B", "A", "C"), ("y", "x"))


@st.composite
def datasets(draw: st.DrawFn) -> Dataset:
    records: list[dict[str, Any]] = []
    for i in range(draw(st.integers(1, 6))):
        times = sorted(draw(st.lists(st.floats(0, 1e6) | st.just(5.0), min_size=1, max_size=7)))
        labels = draw(st.none() | st.lists(st.sampled_from(["x", "y", "z"]), unique=True))
        size = {"min_size": len(times), "max_size": len(times)}
        records.append(
            {
                "sequence_id": str(i),
                "events": draw(st.lists(st.sampled_from("ABCD"), **size)),
                "times": times,
                "mileage": draw(st.lists(st.none() | st.floats(-1e3, 1e3, width=32), **size)) or None,
                "labels": labels,
                "label_times": None if labels is None else [draw(st.none() | st.floats(0, 1e6)) for _ in labels],
            }
        )
    records[0]["mileage"][0] = 1.5  # a column of nulls alone has no type
    records[0]["labels"] = records[0]["labels"] if records[0]["labels"] is not None else ["x"]
    records[0]["label_times"] = [1.0 for _ in records[0]["labels"]]
    records.append(
        {
            "sequence_id": "last",
            "events": ["A"],
            "times": [0.0],
            "mileage": [None],
            "labels": ["y"],
            "label_times": [3.0],
        }
    )
    return from_records(records)


@given(datasets(), st.integers(1, 8))
@settings(max_examples=60, deadline=None)
def test_encode_keeps_the_newest_events_and_known_labels(data: Dataset, longest: int) -> None:
    found = encode(data, VOCABULARY, max_length=longest)
    assert len(found) == len(data)
    stamps = data.label_times()
    for i in range(len(data)):
        events = data.events_of(i)[-longest:]
        begin, end = data.events.offsets[i + 1] - len(events), data.events.offsets[i + 1]
        mine = slice(found.events.offsets[i], found.events.offsets[i + 1])
        assert found.events[i].tolist() == [{"B": 3, "A": 4, "C": 5}.get(name, UNKNOWN_ID) for name in events]
        assert found.times[mine].tolist() == data.times[begin:end].tolist()
        np.testing.assert_array_equal(found.channels[mine, 0], data.channel("mileage")[begin:end])
        assert found.labels[i].tolist() == [{"y": 0, "x": 1}[n] for n in data.labels_of(i) if n in ("x", "y")]
        assert found.cut[i] == (len(data.events_of(i)) > longest)
        assert stamps is not None
        known = [t for t in stamps[data.labels.offsets[i] : data.labels.offsets[i + 1]] if not math.isnan(t)]
        np.testing.assert_equal(found.outcome_times[i], min(known) if known else np.nan)


def literal_rows(encoded: Encoded, index: int) -> list[tuple[int, float, float, list[float]]]:
    """(id, gap, elapsed, channels) of the start token and each event, in float32."""
    begin, end = encoded.events.offsets[index], encoded.events.offsets[index + 1]
    rows: list[tuple[int, float, float, list[float]]] = [(START_ID, 0.0, 0.0, [math.nan])]
    before = None
    for at in range(begin, end):
        now = float(encoded.times[at])
        gap = 0.0 if before is None else now - before
        rows.append((int(encoded.events.ids[at]), gap, now, encoded.channels[at].tolist()))
        before = now
    return rows


def same(found: list[Any], expected: tuple[int, float, float, list[float]]) -> None:
    assert found[0] == expected[0]
    np.testing.assert_array_equal(np.array(found[1:3], np.float32), np.array(expected[1:3], np.float32))
    np.testing.assert_array_equal(found[3], np.array(expected[3], np.float32))


@given(datasets(), st.randoms(use_true_random=False), st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_pad_is_literal(data: Dataset, random: Any, wider: int) -> None:
    encoded = encode(data, VOCABULARY, max_length=6)
    indices = np.array(random.sample(range(len(data)), random.randint(1, len(data))))
    longest = int(encoded.events.lengths[indices].max()) + 1
    batch = pad(encoded, indices, length=longest + wider if wider else None)
    assert batch.event_ids.shape == (len(indices), longest + wider)
    for row, index in enumerate(indices):
        expected = literal_rows(encoded, index)
        assert batch.lengths[row] == len(expected)
        for column, one in enumerate(expected):
            at = (row, column)
            same([batch.event_ids[at], batch.gaps[at], batch.elapsed[at], batch.channels[at]], one)
        assert (batch.event_ids[row, len(expected) :] == PAD_ID).all()
        assert (batch.gaps[row] >= 0).all()


@given(datasets(), st.randoms(use_true_random=False), st.integers(0, 9))
@settings(max_examples=60, deadline=None)
def test_pack_is_literal(data: Dataset, random: Any, spare: int) -> None:
    encoded = encode(data, VOCABULARY, max_length=6)
    indices = np.array(random.sample(range(len(data)), random.randint(1, len(data))))
    counts = encoded.events.lengths[indices] + 1
    used, tokens = int(counts.sum()), int(counts.sum()) + spare
    most = len(indices) + math.ceil(spare / int(counts.max()))
    packed = pack(encoded, indices, tokens=tokens, most_sequences=most)
    assert packed.event_ids.shape == (tokens,)
    assert packed.bounds.shape == (most + 1,)
    assert packed.sequences == len(indices)
    at = 0
    for index in indices:
        for position, one in enumerate(literal_rows(encoded, index)):
            same([packed.event_ids[at], packed.gaps[at], packed.elapsed[at], packed.channels[at]], one)
            assert packed.positions[at] == position
            at += 1
    assert at == used
    assert (packed.event_ids[used:] == PAD_ID).all()
    assert packed.bounds[: len(indices) + 1].tolist() == [0, *np.cumsum(counts).tolist()]
    assert packed.bounds[-1] == tokens
    runs = np.diff(packed.bounds)
    assert (runs >= 0).all()
    assert runs.max() <= counts.max()  # no run of padding is longer than a sequence


@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=200),
    st.integers(1, 120),
    st.booleans(),
    st.none() | st.integers(1, 5),
    st.integers(0, 3),
)
@settings(max_examples=150, deadline=None)
def test_a_plan_holds_every_sequence_once_within_the_budget(
    lengths: list[int], tokens: int, padded: bool, most: int | None, epoch: int
) -> None:
    sizes = np.array(lengths)
    plan = plan_batches(sizes, tokens, seed=1, epoch=epoch, padded=padded, most_sequences=most)
    assert sorted(np.concatenate(plan).tolist()) == list(range(len(lengths)))
    for batch in plan:
        cost = sizes[batch].max() * len(batch) if padded else sizes[batch].sum()
        assert cost <= tokens or len(batch) == 1
        assert most is None or len(batch) <= most
    again = plan_batches(sizes, tokens, seed=1, epoch=epoch, padded=padded, most_sequences=most)
    assert all(np.array_equal(a, b) for a, b in zip(plan, again, strict=True))


def test_epochs_and_seeds_shuffle_and_rectangles_waste_little() -> None:
    lengths = np.random.default_rng(0).integers(1, 200, 3000)
    plans = [plan_batches(lengths, 4096, seed=s, epoch=e, padded=True) for s, e in ((0, 0), (0, 1), (1, 0))]
    orders = [np.concatenate(plan).tolist() for plan in plans]
    assert orders[0] != orders[1]
    assert orders[0] != orders[2]
    cells = sum(int(lengths[b].max()) * len(b) for b in plans[0])
    assert cells < 1.1 * lengths.sum()
    assert plan_batches(np.empty(0, np.int64), 10, seed=0, epoch=0, padded=True) == []
    full = plan_batches(lengths, 4096, seed=0, epoch=0, padded=False)
    assert np.mean([lengths[b].sum() for b in full[:-1]]) > 0.95 * 4096


def test_shards_of_a_batch_are_strided() -> None:
    """Rank r of w takes every w-th sequence; together they are the batch."""
    batch = plan_batches(np.arange(1, 30), 100, seed=0, epoch=0, padded=True)[0]
    shards = [batch[rank::3] for rank in range(3)]
    assert sorted(np.concatenate(shards).tolist()) == sorted(batch.tolist())


def test_labels_nobody_knows() -> None:
    data = from_records([{"sequence_id": "1", "events": ["A"], "times": [0], "labels": ["unheard"]}])
    assert encode(data, VOCABULARY, max_length=3).labels[0].tolist() == []
    with pytest.raises(KeyError):
        VOCABULARY.label_ids["unheard"]
