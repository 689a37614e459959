"""Blocks: what never changes, what each knob changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from oscar_causal.data.rules import event_names, format_rule
from oscar_causal.data.synthetic import Block, FleetConfig, World, draw_block, make_world, preset
from oscar_causal.errors import UsageError

TINY = {"event_types": 600, "labels": 20, "sequences": 1024, "mean_length": 60.0, "sd_length": 25.0, "label_tail": 0.4}
Measure = Callable[[World, Block], float]


def fleet(name: str = "small", **knobs: Any) -> tuple[World, Block]:
    world = make_world(preset(name, **{**TINY, **knobs}), seed=3)
    return world, draw_block(world, 0)


def present(world: World, block: Block) -> np.ndarray:
    return block.events.indicator(len(world.event_names))  # (B, V)


@pytest.mark.bits
def test_a_block_is_the_same_whenever_it_is_drawn() -> None:
    world, block = fleet("hard")
    draw_block(world, 1)
    again = draw_block(world, 0)
    assert np.array_equal(block.events.ids, again.events.ids)
    assert np.array_equal(block.times, again.times)
    assert np.array_equal(block.observed, again.observed)
    assert block.why == again.why


@pytest.mark.bits
@pytest.mark.parametrize("null", [False, True])
def test_the_first_sequences_of_a_block_do_not_depend_on_the_others(null: bool) -> None:
    world, block = fleet("hard", null=null)
    part = draw_block(world, 0, count=100)
    assert len(part) == 100
    assert np.array_equal(part.events.ids, block.events.ids[: part.events.offsets[-1]])
    assert np.array_equal(part.mileage, block.mileage[: len(part.mileage)], equal_nan=True)
    assert np.array_equal(part.observed, block.observed[:100])
    assert part.why == tuple(item for item in block.why if item.row < 100)


@pytest.mark.parametrize(("number", "count"), [(-1, 5), (0, 0), (0, 1025)])
def test_blocks_that_cannot_be(number: int, count: int) -> None:
    with pytest.raises(UsageError, match="expected a block from 0 and a count from 1 to 1024"):
        draw_block(make_world(preset("demo"), seed=0), number, count)


def test_events_are_in_time_order_and_ties_are_shuffled() -> None:
    _, block = fleet(mean_length=100.0)
    steps = np.diff(block.times)
    inside = np.diff(block.events.rows()) == 0
    assert (steps[inside] >= 0).all()
    assert (block.times[block.events.offsets[:-1]] == 0).all()
    assert 0.1 < (steps[inside] == 0).mean() < 0.5
    assert (block.times == np.rint(block.times)).all()


def test_roles_cannot_be_told_by_place_inside_a_second() -> None:
    """Of two events in one second, one planted and one background, either may be written first."""
    world, block = fleet("hard", mean_length=150.0)
    symptom = np.isin(block.events.ids, world.roles.symptoms.ids)
    tie = (np.diff(block.times) == 0) & (np.diff(block.events.rows()) == 0)
    before, after = (symptom[:-1] & ~symptom[1:] & tie).sum(), (~symptom[:-1] & symptom[1:] & tie).sum()
    assert before + after > 200
    assert 0.4 < before / (before + after) < 0.6


def test_later_sequences_of_a_car_begin_later_and_with_more_kilometres() -> None:
    _, block = fleet(sequences_per_subject=3.0, missing_mileage=0.0)
    subjects = block.subjects
    same = np.diff(subjects.car) == 0
    assert same.mean() > 0.5
    assert (np.diff(subjects.start_s)[same] >= 0).all()
    assert (np.diff(subjects.km_at_start)[same] >= 0).all()
    assert (np.diff(subjects.variant)[same] == 0).all()
    assert (np.diff(subjects.model_year)[same] == 0).all()


def test_labels_come_about_as_often_as_planned() -> None:
    config = preset("paper", label_tail=0.0, labels=100, event_types=3000, mean_length=60.0, sd_length=20.0)
    world = make_world(config, seed=1)
    counts = sum(draw_block(world, number).observed.sum(axis=0) for number in range(4))
    assert counts.sum() / 4096 == pytest.approx(1.2, rel=0.15)
    assert np.quantile(counts / (4096 * world.rates), [0.1, 0.9]) == pytest.approx([1, 1], abs=0.5)


def gaps_under(seconds: float) -> Measure:
    def measure(world: World, block: Block) -> float:
        inside = np.diff(block.events.rows()) == 0
        return float((np.diff(block.times)[inside] < seconds).mean())

    return measure


def neighbours(test: Callable[[World, np.ndarray, np.ndarray], np.ndarray]) -> Measure:
    def measure(world: World, block: Block) -> float:
        inside = np.diff(block.events.rows()) == 0
        return float(test(world, block.events.ids[:-1], block.events.ids[1:])[inside].mean())

    return measure


def most_frequent_share(world: World, block: Block) -> float:
    counts = np.bincount(block.events.ids)
    return float(counts.max() / counts.sum())


def label_spread(world: World, block: Block) -> float:
    return float(np.std(np.log(block.observed.sum(axis=0) + 1)))


def rules_with(text: str) -> Measure:
    return lambda world, block: sum(text in format_rule(rule) for rule in world.rules) / len(world.rules)


def largest_rule(world: World, block: Block) -> float:
    return max(len(event_names(rule)) for rule in world.rules)


def reuse(world: World, block: Block) -> float:
    events = [event for law in world.laws for event in (*law.causes, *law.blockers)]
    return 1 - len(set(events)) / len(events)


def symptoms_given(labelled: bool) -> Measure:
    """Share of (sequence, label, symptom) with the symptom, among labels that came or did not."""

    def measure(world: World, block: Block) -> float:
        here = present(world, block)
        shares = [here[block.observed[:, y] == labelled][:, world.roles.symptoms[y]].mean() for y in range(20)]
        return float(np.mean(shares))

    return measure


def announced_causes(world: World, block: Block) -> float:
    here = present(world, block)
    found = [here[item.row, world.roles.precursor_of[item.event]] for item in block.why if item.role == "cause"]
    return float(np.mean(found))


def dispensable_causes(world: World, block: Block) -> float:
    return float(np.mean([not item.necessary for item in block.why if item.role == "cause"]))


def causes_without_labels(world: World, block: Block) -> float:
    causes = sorted({event for law in world.laws for event in law.causes})
    return float(present(world, block)[block.observed.sum(axis=1) == 0][:, causes].mean())


def driver_association(world: World, block: Block) -> float:
    """How much more frequent labels are where a driven event is present."""
    if not len(world.roles.driven):
        return 1.0
    driven = present(world, block)[:, world.roles.driven].any(axis=1)
    return float(block.observed[driven].mean() / block.observed[~driven].mean())


def lost(world: World, block: Block) -> float:
    return float(block.audit.lost.sum() / max(1, (block.audit.lost + block.audit.observed - block.audit.false).sum()))


def false(world: World, block: Block) -> float:
    return float(block.audit.false.sum() / (world.rates.sum() * len(block)))


def decoy_share(world: World, block: Block) -> float:
    return block.audit.decoy_pairs / block.audit.pairs


def mean_routes(world: World, block: Block) -> float:
    return float(np.mean([len(law.routes) for law in world.laws]))


TEMPORAL = {"temporal_labels": 1.0, "probabilistic_labels": 0.0, "event_types": 900}
PAIRS = {"boundary_sizes": ((2, 1),), "probabilistic_labels": 0.0}
KNOBS: dict[str, tuple[dict[str, Any], Any, Any, Measure, float | None, float | None]] = {
    # knob: other knobs, low, high, measured quantity, its expected value at low and at high (None = just lower/higher)
    "event_types": ({}, 500, 800, lambda w, b: len(w.event_names), 500, 800),
    "labels": ({}, 5, 20, lambda w, b: b.observed.shape[1], 5, 20),
    "mean_length": ({"sd_length": 10.0}, 40.0, 80.0, lambda w, b: b.events.lengths.mean(), 40, 80),
    "sd_length": ({}, 10.0, 30.0, lambda w, b: b.events.lengths.std(), 10, 30),
    "event_tail": ({}, 0.5, 1.5, most_frequent_share, None, None),
    "bursts": ({}, 1.0, 10.0, gaps_under(120), None, None),
    "repeats": ({}, 0.0, 0.4, neighbours(lambda w, a, b: a == b), None, None),
    "cascades": ({}, 0.0, 0.4, neighbours(lambda w, a, b: w.follower_of[a] == b), None, None),
    "sequences_per_subject": ({}, 1.0, 2.0, lambda w, b: 1024 / (b.subjects.car.max() + 1), 1, 2),
    "missing_mileage": ({}, 0.0, 0.5, lambda w, b: np.isnan(b.mileage).mean(), 0, 0.5),
    "days": ({}, 30, 730, lambda w, b: b.subjects.start_s.max() / 86_400, 30, 730),
    "labels_per_sequence": ({}, 0.0, 2.0, lambda w, b: b.observed.sum(axis=1).mean(), 0, 2),
    "label_tail": ({}, 0.0, 1.5, label_spread, None, None),
    "boundary_sizes": ({"probabilistic_labels": 0.0}, ((2, 1),), ((2, 1), (9, 1)), largest_rule, 2, 9),
    "shared_causes": ({"boundary_sizes": ((4, 1),)}, 0.0, 0.6, reuse, 0, None),
    "or_share": ({**PAIRS, "not_share": 0.0}, 0.0, 1.0, rules_with("|"), 0, 1),
    "not_share": (PAIRS, 0.0, 0.5, rules_with("!"), 0, 0.5),
    "near_misses": ({"symptoms": 1.0}, 0.0, 2.0, symptoms_given(False), None, None),
    "symptoms": ({"stray_events": 0.0}, 0.0, 1.0, symptoms_given(True), 0, None),
    "symptoms_per_label": ({}, 1, 4, lambda w, b: w.roles.symptoms.lengths.mean(), 1, 4),
    "precursors": ({"stray_events": 0.0}, 0.0, 1.0, announced_causes, 0, None),
    "redundant_causes": ({"boundary_sizes": ((6, 1),)}, 0.0, 1.0, dispensable_causes, None, None),
    "stray_events": ({}, 0.0, 2.0, causes_without_labels, None, None),
    "hidden_driver": ({}, 0.0, 1.0, driver_association, 1, None),
    "lost_labels": ({}, 0.0, 0.3, lost, 0, 0.3),
    "false_labels": ({}, 0.0, 0.5, false, 0, 0.5),
    "drift": ({}, 0.0, 0.5, lambda w, b: w.drifting.mean(), 0, 0.5),
    "missing_rules": ({}, 0.0, 0.25, lambda w, b: (w.published < 0).mean(), 0, 0.25),
    "probabilistic_labels": ({}, 0.0, 0.5, lambda w, b: np.mean([law.graded for law in w.laws]), 0, 0.5),
    "null": ({}, False, True, lambda w, b: len(b.why) == 0, 0, 1),
    "temporal_labels": ({}, 0.0, 0.5, lambda w, b: np.mean([law.temporal for law in w.laws]), 0, 0.5),
    "routes": (TEMPORAL, 2.0, 3.0, mean_routes, 2, 3),
    "orders": ({**TEMPORAL, "windows": 0.0}, 0.0, 1.0, rules_with("then"), 0, None),
    "windows": ({**TEMPORAL, "orders": 0.0}, 0.0, 1.0, rules_with("within"), 0, None),
    "counts": (TEMPORAL, 0.0, 1.0, rules_with(">="), 0, None),
    "decoys": ({**TEMPORAL, "redundant_causes": 0.0}, 0.0, 1.0, decoy_share, None, None),
}  # fmt: skip


@pytest.mark.parametrize("knob", KNOBS)
def test_each_knob_does_what_it_says(knob: str) -> None:
    others, low, high, measure, at_low, at_high = KNOBS[knob]
    measured = [float(measure(*fleet(**{**others, knob: value}))) for value in (low, high)]
    assert measured[0] < measured[1]
    for value, expected in zip(measured, (at_low, at_high), strict=True):
        if expected is not None:
            assert value == pytest.approx(expected, rel=0.15, abs=0.01)


def test_every_knob_is_tested() -> None:
    assert {field.name for field in fields(FleetConfig)} - set(KNOBS) == {"sequences"}  # in test_write


@pytest.mark.parametrize(
    "knobs",
    [
        {"labels": 1, "boundary_sizes": ((1, 1),)},
        {"labels_per_sequence": 0.0, "false_labels": 0.0},
        {"mean_length": 4.0, "sd_length": 0.0},
        {"mean_length": 5.0, "sd_length": 100.0},
        {"near_misses": 0.0, "symptoms_per_label": 0, "stray_events": 0.0, "precursors": 0.0},
        {"lost_labels": 1.0},
        {"labels_per_sequence": 20.0, "event_types": 2000},
        {"missing_rules": 1.0, "drift": 1.0},
    ],
)
def test_extreme_knobs_still_give_sequences(knobs: dict[str, Any]) -> None:
    _, block = fleet("hard", **knobs)
    assert len(block) == 1024
    assert block.events.lengths.min() >= 3
