"""Drawn sequences against the probabilities the world states, and the truth against what was asked of each kind."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import oscar_causal.data.synthetic.worlds as package
from oscar_causal.data.sequences import read_dataset
from oscar_causal.data.synthetic.worlds import (
    CORE,
    KINDS,
    RECORD_ONLY,
    STATE_DECIDES,
    Drawn,
    Explained,
    World,
    audit,
    draw,
    explain,
    make_world,
)
from oscar_causal.data.synthetic.worlds.world import EVENT_TYPES
from oscar_causal.data.synthetic.worlds.write import write_world
from oscar_causal.errors import UsageError

SEED = 17


@cache
def drawn(kind: str) -> tuple[World, Drawn, list[Explained]]:
    world = make_world(kind, SEED)
    sequences = draw(world, 500, "test")
    return world, sequences, explain(world, sequences)


@pytest.mark.parametrize("kind", KINDS)
def test_labels_come_as_often_as_the_world_says(kind: str) -> None:
    world, sequences, _ = drawn(kind)
    probs = world.probs(sequences.recorded)
    for low, high in ((0, 0.1), (0.1, 0.6), (0.6, 1.01)):  # hidden variables and censoring are integrated out
        chosen = (probs >= low) & (probs < high)
        if chosen.sum() < 50:
            continue
        spread = np.sqrt((probs * (1 - probs))[chosen].sum())
        assert abs(sequences.labels[chosen].sum() - probs[chosen].sum()) < 4 * spread + 1


@pytest.mark.parametrize("kind", KINDS)
def test_the_truth_is_as_hard_as_asked_for(kind: str) -> None:
    _, _, explained = drawn(kind)
    figures = audit(explained)
    assert figures["neutral_share"] <= 0.15
    if kind in STATE_DECIDES:
        assert 0.5 <= figures["decoy_share"] <= 0.8
        assert 0.55 <= figures["presence_f1"] <= 0.85


@pytest.mark.parametrize("kind", ["chain", "many-weak", "hidden-driver"])
def test_reasons_hold_by_removing_events_from_the_record(kind: str) -> None:
    """Necessary causes once more, from the recorded events themselves."""
    world, sequences, explained = drawn(kind)
    for pair in explained[::37]:
        mechanism = world.mechanisms[pair.label]
        one = sequences.recorded.rows(np.array([pair.row]))
        on = mechanism.posterior(one.occurrences(mechanism.types, EVENT_TYPES))
        whole = mechanism.probs_given(one.occurrences(mechanism.types, EVENT_TYPES), on)[0]
        necessary = {pair.present[r.type] for r in pair.reasons if r.necessary and r.role == "cause"}
        for event in set(one.events.tolist()) - {EVENT_TYPES - 1}:
            types = [EVENT_TYPES + 1 if t == event else t for t in mechanism.types]  # it is no longer seen
            without = mechanism.probs_given(one.occurrences(types, EVENT_TYPES + 2), on)[0]
            assert (whole - without >= 0.05 - 1e-9) == (event in necessary)


def test_signs_of_a_hidden_driver_are_no_causes() -> None:
    world, sequences, explained = drawn("hidden-driver")
    signs = {m.types[s] for m in world.mechanisms if m.hidden for s in m.hidden.signs}
    assert signs & set(sequences.recorded.events.tolist())
    assert not any(pair.of_role("cause") & signs for pair in explained)
    probs = world.probs(sequences.recorded)
    for y, mechanism in enumerate(world.mechanisms):  # though the record's own probability hangs on them
        there = sequences.recorded.occurrences(mechanism.types, EVENT_TYPES).present(mechanism.hidden.signs[0])
        assert probs[there, y].mean() > probs[~there, y].mean()


def test_symptoms_are_always_written_and_never_without_their_cause() -> None:
    world, sequences, _ = drawn("symptoms")
    for label in world.labels:
        seen = sequences.recorded.occurrences(label.mechanism.types, EVENT_TYPES)
        for feature, written in zip(label.mechanism.features, label.symptoms, strict=True):
            for kind in written:
                np.testing.assert_array_equal(seen.present(kind), feature.of(seen) > 0.5)


def test_another_seed_is_another_mechanism() -> None:
    first, second = make_world("decay", 1), make_world("decay", 2)
    assert first.labels == make_world("decay", 1).labels
    assert first.mechanisms[0].features != second.mechanisms[0].features


def test_two_parts_are_independent_draws() -> None:
    world = make_world("xor", 3)
    again, test, train = draw(world, 20, "test"), draw(world, 20, "test"), draw(world, 20, "train")
    np.testing.assert_array_equal(again.recorded.events, test.recorded.events)
    assert len(train.recorded.events) != len(test.recorded.events)


def test_names_that_guard_the_record() -> None:
    assert set(CORE) | set(RECORD_ONLY) <= set(KINDS)
    assert not set(CORE) & set(RECORD_ONLY)
    with pytest.raises(UsageError, match="expected one of additive"):
        make_world("nothing", 0)


def test_worlds_import_nothing_of_the_grammar() -> None:
    for path in Path(package.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not any("rules" in name for name in names), path


def test_a_written_world_reads_back(tmp_path: Path) -> None:
    figures = write_world("hazard", SEED, tmp_path / "w", train=30, test=60)
    write_world("hazard", SEED, tmp_path / "again", train=30, test=60)
    for path in sorted((tmp_path / "w").rglob("*.*")):
        assert path.read_bytes() == (tmp_path / "again" / path.relative_to(tmp_path / "w")).read_bytes()
    test = read_dataset(tmp_path / "w" / "test")
    probs = pq.read_table(tmp_path / "w" / "test" / "probabilities.parquet")
    assert len(test) == len(probs) == 60
    assert probs.column_names[1:] == [f"L{y:02d}" for y in range(12)]
    assert test.info["truth"]["presence_f1"] == figures["presence_f1"]
    why = pq.read_table(tmp_path / "w" / "test" / "why").to_pylist()
    index = {name.as_py(): i for i, name in enumerate(test.sequence_ids)}
    for row in why:
        events = test.events_of(index[row["sequence_id"]])
        assert {events[i] for i in row["positions"]} == {row["event"]}
        assert row["label"] in test.labels_of(index[row["sequence_id"]])
