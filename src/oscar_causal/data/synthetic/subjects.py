"""The cars behind a block of sequences: who, since when, which variant, how far driven."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from oscar_causal.data.synthetic.config import BLOCK_SEQUENCES
from oscar_causal.data.synthetic.names import VARIANTS
from oscar_causal.data.synthetic.rates import DRIVER_SHARE
from oscar_causal.data.synthetic.streams import Floats, Ints, Mask, below
from oscar_causal.data.synthetic.world import DAY_S, World

FIRST_MODEL_YEAR = 2015
MODEL_YEARS = 9


@dataclass(frozen=True)
class Subjects:
    """One entry per sequence of a block."""

    car: Ints
    """Number of the car within the block."""
    start_s: Ints
    """When the sequence begins, in seconds since `EPOCH`; later sequences of a car begin later."""
    variant: Ints
    model_year: Ints
    km_at_start: Floats
    km_per_day: Floats
    driven: Mask
    """Whether the hidden driver acts on this sequence."""


def draw_subjects(world: World, rng: np.random.Generator) -> Subjects:
    """Draw the cars of one block."""
    config, count = world.config, BLOCK_SEQUENCES
    new_car = rng.random(count) < 1 / config.sequences_per_subject
    new_car[0] = True
    car = np.cumsum(new_car) - 1
    start_s = below(rng, np.full(count, config.days * DAY_S))
    start_s = start_s[np.lexsort((start_s, car))]  # rising inside each car
    variant, year = below(rng, np.full(count, len(VARIANTS)))[car], below(rng, np.full(count, MODEL_YEARS))[car]
    km_per_day = (10 + 80 * rng.random(count))[car]
    km_new = (50_000 * rng.random(count))[car] * (MODEL_YEARS - year) / MODEL_YEARS
    km_at_start = np.rint(km_new + km_per_day * (start_s / DAY_S))
    driven = rng.random(count) < DRIVER_SHARE
    return Subjects(car, start_s, variant, FIRST_MODEL_YEAR + year, km_at_start, km_per_day, driven)


def draw_mileage(
    world: World, rng: np.random.Generator, subjects: Subjects, row: Ints, times: Floats
) -> npt.NDArray[np.float32]:
    """Kilometres at each event; NaN where they were not written."""
    mileage = (subjects.km_at_start[row] + subjects.km_per_day[row] * (times / DAY_S)).astype(np.float32)
    mileage[rng.random(len(row)) < world.config.missing_mileage] = np.nan
    return mileage
