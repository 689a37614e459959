"""Labels from events: every law is evaluated in every sequence, chance and noise are added, reasons are kept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oscar_causal.data.rules import EventIndex, evaluate, reasons
from oscar_causal.data.synthetic.config import BLOCK_SEQUENCES
from oscar_causal.data.synthetic.laws import Law
from oscar_causal.data.synthetic.streams import Floats, Ints, Mask
from oscar_causal.data.synthetic.world import World


@dataclass(frozen=True)
class WhyRow:
    """One row of `why/`: an event and its part in a label that came about and was recorded."""

    row: int
    label: int
    event: int
    positions: tuple[int, ...]
    role: str
    necessary: bool


@dataclass(frozen=True)
class Outcomes:
    """What came of the sequences of a block."""

    observed: Mask
    """(B, Y) the labels as recorded."""
    came: Mask
    """(B, Y) whether the law brought the label about, noise aside."""
    chance: Floats
    """(B, Y) the probability that the label is recorded, given the whole sequence and its start."""
    why: tuple[WhyRow, ...]
    """Reasons of the labels that came about and were recorded, by sequence, label, event."""


def draw_outcomes(world: World, rng: np.random.Generator, index: EventIndex, start_s: Ints) -> Outcomes:
    """Decide the labels of the sequences of `index`, which begin at `start_s`."""
    config, shape = world.config, (index.sequences, world.config.labels)
    luck = rng.random((BLOCK_SEQUENCES, config.labels))[: index.sequences]  # (B, Y)
    early = start_s[:, None] < world.change_s  # (B, Y)
    came, chance = np.zeros(shape, bool), np.zeros(shape)
    graded: list[tuple[int, Mask, Mask]] = []
    for label in range(config.labels):
        if world.laws[label].graded:
            fired, present, chance[:, label] = _graded(world, rng, index, world.laws[label])
            came[:, label] = fired.any(axis=1)
            graded.append((label, fired, present))
            continue
        came[:, label] = evaluate(world.rules[label], index)
        if world.drifting[label]:
            after = evaluate(world.rules[int(world.later[label])], index)
            came[:, label] = np.where(early[:, label], came[:, label], after)
        chance[:, label] = came[:, label]
    false_rate = config.false_labels * world.rates  # (Y,)
    observed = np.where(came, luck >= config.lost_labels, luck < false_rate)
    chance = chance * (1 - config.lost_labels) + (1 - chance) * false_rate
    why = _rule_reasons(world, index, came & observed, early) + _graded_reasons(world, index, observed, graded)
    return Outcomes(observed, came, chance, tuple(sorted(why, key=lambda item: (item.row, item.label))))


def presence(world: World, index: EventIndex, events: tuple[int, ...]) -> Mask:
    """(B, events) whether each event occurs in each sequence."""
    found = np.zeros((index.sequences, len(events)), bool)
    for column, event in enumerate(events):
        found[index.sequence_of[index.rows_of(world.event_names[event])], column] = True
    return found


def _graded(world: World, rng: np.random.Generator, index: EventIndex, law: Law) -> tuple[Mask, Mask, Floats]:
    """Which causes fired, which inhibitors were present, and the label's probability.

    Each present cause fires with its strength; each present inhibitor prevents the label with its inhibition. The
    label comes when something fired and nothing prevented it: 1 - prod(1 - strength), times prod(1 - inhibition).
    """
    causes, inhibitors = presence(world, index, law.causes), presence(world, index, law.blockers)
    strengths, inhibitions = np.array(law.strengths), np.array(law.inhibitions)
    luck = rng.random((BLOCK_SEQUENCES, len(strengths) + len(inhibitions)))[: index.sequences]
    fired = causes & (luck[:, : len(strengths)] < strengths)
    prevented = np.any(inhibitors & (luck[:, len(strengths) :] < inhibitions), axis=1, keepdims=True)
    raised = 1 - np.where(causes, 1 - strengths, 1.0).prod(axis=1)
    chance = raised * np.where(inhibitors, 1 - inhibitions, 1.0).prod(axis=1)
    return fired & ~prevented, inhibitors, chance


def _rule_reasons(world: World, index: EventIndex, recorded: Mask, early: Mask) -> list[WhyRow]:
    found = []
    for label in range(world.config.labels):
        if world.laws[label].graded:
            continue
        for law, inside in ((label, early[:, label]), (int(world.later[label]), ~early[:, label])):
            rows = np.flatnonzero(recorded[:, label] & inside)
            if not len(rows):
                continue
            for row, items in zip(rows.tolist(), reasons(world.rules[law], index, rows), strict=True):
                for item in items:
                    event = world.event_ids[item.event]
                    found.append(WhyRow(row, label, event, item.positions, item.role, item.necessary))
    return found


def _graded_reasons(
    world: World, index: EventIndex, observed: Mask, graded: list[tuple[int, Mask, Mask]]
) -> list[WhyRow]:
    """Causes that fired (necessary when alone), and present inhibitors that did not win."""
    found = []
    for label, fired, inhibitors in graded:
        law = world.laws[label]
        for row in np.flatnonzero(observed[:, label] & fired.any(axis=1)).tolist():
            causes = [event for event, here in zip(law.causes, fired[row].tolist(), strict=True) if here]
            for event in causes:
                places = _positions(world, index, row, event)
                found.append(WhyRow(row, label, event, places, "cause", len(causes) == 1))
            for event, here in zip(law.blockers, inhibitors[row].tolist(), strict=True):
                if here:
                    found.append(WhyRow(row, label, event, _positions(world, index, row, event), "blocker", False))
    return found


def _positions(world: World, index: EventIndex, row: int, event: int) -> tuple[int, ...]:
    rows = index.rows_of(world.event_names[event])
    begin, end = int(index.offsets[row]), int(index.offsets[row + 1])
    inside = rows[np.searchsorted(rows, begin) : np.searchsorted(rows, end)]
    return tuple((inside - begin).tolist())
