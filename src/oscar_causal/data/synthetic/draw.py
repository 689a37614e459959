"""The sequences of one block: cars, scenarios and background put together, labels derived, tables made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from oscar_causal.data.rules import EventIndex
from oscar_causal.data.schema import WHY_SCHEMA
from oscar_causal.data.sequences import Ragged, ragged_offsets
from oscar_causal.data.synthetic.audit import Audit, audit
from oscar_causal.data.synthetic.background import SPANS_S, Events, draw_background, snap
from oscar_causal.data.synthetic.config import BLOCK_SEQUENCES
from oscar_causal.data.synthetic.names import VARIANTS
from oscar_causal.data.synthetic.outcomes import Outcomes, WhyRow, draw_outcomes
from oscar_causal.data.synthetic.planting import plant
from oscar_causal.data.synthetic.scenarios import draw_scenarios
from oscar_causal.data.synthetic.streams import Floats, Ints, Mask, length_table, look_up, permutation, stream
from oscar_causal.data.synthetic.subjects import Subjects, draw_mileage, draw_subjects
from oscar_causal.data.synthetic.world import EPOCH, World
from oscar_causal.errors import UsageError

LEAST_LENGTH = 4
LEAST_BACKGROUND = 3
TIE_BITS = 16


@dataclass(frozen=True)
class Block:
    """Some sequences of a fleet, in ids. Sequence i of the block has the number `first + i` in the fleet."""

    number: int
    subjects: Subjects
    events: Ragged
    times: Floats
    mileage: npt.NDArray[np.float32]
    observed: Mask
    """(B, Y) the labels as recorded."""
    why: tuple[WhyRow, ...]
    audit: Audit

    @property
    def first(self) -> int:
        """Number of the first sequence in the fleet."""
        return self.number * BLOCK_SEQUENCES

    def __len__(self) -> int:
        return len(self.events)


def draw_block(world: World, number: int, count: int = BLOCK_SEQUENCES) -> Block:
    """Draw the first `count` sequences of block `number`; the others would not change them.

    >>> from oscar_causal.data.synthetic import make_world, preset
    >>> block = draw_block(make_world(preset("demo"), seed=1), 0, count=100)
    >>> len(block), block.first
    (100, 0)
    """
    if number < 0 or not 1 <= count <= BLOCK_SEQUENCES:
        raise UsageError(
            f"block {number}, count {count}: expected a block from 0 and a count from 1 to {BLOCK_SEQUENCES}"
        )
    subjects, events, times = _draw_events(world, number)
    mileage = draw_mileage(world, stream(world.seed, "mileage", number), subjects, events.rows(), times)
    kept = Ragged(events.offsets[: count + 1], events.ids[: events.offsets[count]])
    times, mileage = times[: len(kept.ids)], mileage[: len(kept.ids)]
    index = EventIndex(kept.offsets, kept.ids, times, world.event_ids)
    if world.config.null:
        outcomes = _null_outcomes(world, number, count)
    else:
        outcomes = draw_outcomes(world, stream(world.seed, "outcomes", number), index, subjects.start_s[:count])
    counts = audit(world, index, outcomes, subjects.start_s)
    return Block(number, subjects, kept, times, mileage, outcomes.observed, outcomes.why, counts)


def _draw_events(world: World, number: int, *, shadow: bool = False) -> tuple[Subjects, Ragged, Floats]:
    """Cars and events of a whole block, in time order; inside a second the order is random."""
    subjects = draw_subjects(world, stream(world.seed, "subjects", number, shadow=shadow))
    rng = stream(world.seed, "scenarios", number, shadow=shadow)
    spans_s = look_up(SPANS_S, rng, BLOCK_SEQUENCES)
    scenarios = draw_scenarios(world, rng, subjects, spans_s)
    plants = plant(world, rng, scenarios, subjects, spans_s)
    rng = stream(world.seed, "background", number, shadow=shadow)
    lengths = look_up(
        length_table(world.config.mean_length, world.config.sd_length, least=LEAST_LENGTH), rng, BLOCK_SEQUENCES
    )
    planted = np.bincount(plants.row, minlength=BLOCK_SEQUENCES)
    background = draw_background(world, rng, np.maximum(lengths - planted, LEAST_BACKGROUND), spans_s)
    times_s = np.maximum(snap(background, plants.row, plants.anchor_s) + plants.delta_s, 0)
    together = Events(
        np.concatenate([background.row, plants.row]),
        np.concatenate([background.event, plants.event]),
        np.concatenate([background.time_s, times_s]),
    )
    ties = (rng.random(len(together.row)) * (1 << TIE_BITS)).astype(np.int64)
    return subjects, *_in_order(together, ties)


def _in_order(events: Events, ties: Ints) -> tuple[Ragged, Floats]:
    order = np.lexsort((ties, events.time_s, events.row))
    offsets = ragged_offsets(np.bincount(events.row, minlength=BLOCK_SEQUENCES))
    times = events.time_s[order]
    first = np.repeat(times[offsets[:-1]], np.diff(offsets))
    return Ragged(offsets, events.event[order].astype(np.int32)), (times - first).astype(np.float64)


def _null_outcomes(world: World, number: int, count: int) -> Outcomes:
    """Labels of other sequences of the same world that nobody sees, each label shuffled by itself."""
    subjects, events, times = _draw_events(world, number, shadow=True)
    index = EventIndex(events.offsets, events.ids, times, world.event_ids)
    rng = stream(world.seed, "outcomes", number, shadow=True)
    unseen = draw_outcomes(world, rng, index, subjects.start_s).observed
    shuffle = stream(world.seed, "shuffle", number)
    observed = np.stack([column[permutation(shuffle, BLOCK_SEQUENCES)] for column in unseen.T], axis=1)[:count]
    chance = np.broadcast_to(world.rates, observed.shape)
    return Outcomes(observed, np.zeros_like(observed), chance, ())


def sequences_table(world: World, block: Block) -> pa.Table:
    """The block in the columns of the dataset format."""
    count = len(block)
    names = pa.array(world.event_names)
    labels = Ragged(ragged_offsets(block.observed.sum(axis=1)), np.nonzero(block.observed)[1].astype(np.int32))
    start_us = block.subjects.start_s[:count] * 1_000_000 + int(EPOCH.timestamp()) * 1_000_000
    return pa.table(
        {
            "sequence_id": pa.array([f"s{block.first + i:07d}" for i in range(count)]),
            "subject_id": pa.array(
                [f"car-{block.number:05d}-{car:04d}" for car in block.subjects.car[:count].tolist()]
            ),
            "start": pa.array(start_us, pa.int64()).cast(pa.timestamp("us", tz="UTC")),
            "events": _lists(block.events.offsets, names.take(pa.array(block.events.ids))),
            "times": _lists(block.events.offsets, pa.array(block.times)),
            "mileage": _lists(block.events.offsets, pa.array(block.mileage, from_pandas=True)),
            "static": _static(block.subjects, count),
            "labels": _lists(labels.offsets, pa.array(world.label_names).take(pa.array(labels.ids))),
        }
    )


def why_table(world: World, block: Block) -> pa.Table:
    """The reasons of the block in the columns of `why/`."""
    rows = block.why
    return pa.table(
        [
            pa.array([f"s{block.first + item.row:07d}" for item in rows], pa.string()),
            pa.array([world.label_names[item.label] for item in rows], pa.string()),
            pa.array([world.event_names[item.event] for item in rows], pa.string()),
            pa.array([item.positions for item in rows], pa.list_(pa.int32())),
            pa.array([item.role for item in rows], pa.string()),
            pa.array([item.necessary for item in rows], pa.bool_()),
        ],
        schema=WHY_SCHEMA,
    )


def _lists(offsets: Ints, values: pa.Array) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)


def _static(subjects: Subjects, count: int) -> pa.MapArray:
    years = subjects.model_year[:count].tolist()
    values = [
        text for v, year in zip(subjects.variant.tolist(), years, strict=False) for text in (VARIANTS[v], str(year))
    ]
    offsets = pa.array(np.arange(0, 2 * count + 1, 2), pa.int32())
    return pa.MapArray.from_arrays(offsets, pa.array(["variant", "model year"] * count), pa.array(values))
