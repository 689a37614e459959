"""A test about the world: does an event help to predict a label as it was *observed*, beyond all other events?

A holdout randomisation test (Tansey et al. 2022) in its permutation form (Berrett et al. 2020). Held-out sequences with
the event are taken together with others that could have had it at some place. Under the null, label independent of the
event given all else, only the odds of the event given all else decide which of them have it; Tf_x gives those odds,
past and future included. Which sequences have the event is drawn anew with these odds; the null is rejected if the true
arrangement makes the observed labels more probable under Tf_y than nearly all others do. A poor Tf_y costs power only;
the p-value is as good as the odds of Tf_x. The sequences must be unseen by the model.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch

from oscar_causal.data.batches import Encoded, encode
from oscar_causal.data.sequences import Dataset
from oscar_causal.data.vocabulary import SPECIAL_IDS
from oscar_causal.density.interface import Contexts
from oscar_causal.density.model import sequence_contexts
from oscar_causal.discovery.contexts import Float64, Int64
from oscar_causal.errors import UsageError
from oscar_causal.graph.assembling import Source
from oscar_causal.graph.judges import judge_of
from oscar_causal.graph.population import BOUNDARY_SCHEMA
from oscar_causal.graph.population_folder import Population

CASES = 24
"""Most sequences with the event; as many without it."""
LEAST_CASES = 5
REDRAWS = 499
STEPS = 12
"""Rounds of swaps between two arrangements."""
CLIP = 1e-4
OnProgress = Callable[[int, int], None]
Pair = tuple[str, str]


@dataclass(frozen=True)
class Trial:
    """One sequence with and without the event at one place."""

    has_event: bool
    log_odds: float
    """Of having the event there, given everything else in the sequence."""
    gain: float
    """Log probability of the observed label (or of its absence) with the event minus without."""


@dataclass(frozen=True)
class HeldOut:
    """Sequences the model has not seen, ready to be asked about."""

    model: Any
    """A model, or a `ModelSet` whose fold that has not seen the subject is asked."""
    encoded: Encoded
    subjects: tuple[str, ...]

    @classmethod
    def of(cls, model: Any, dataset: Dataset) -> HeldOut:
        """The labelled sequences of the dataset."""
        labelled = dataset.take(dataset.labelled)
        if not len(labelled):
            raise UsageError("world test: expected labelled sequences that the model has not seen, found none")
        channels = getattr(model, "channels", labelled.channels)
        encoded = encode(labelled, model.vocabulary, max_length=model.max_length, channels=channels)
        return cls(model, encoded, tuple(labelled.subject_ids.to_pylist()))

    def p_value(self, pair: Pair, seed: int) -> float | None:
        """Of the null that the label does not depend on the event given the rest; None with too few sequences."""
        rng = np.random.default_rng(
            [seed, int.from_bytes(hashlib.blake2b("\0".join(pair).encode()).digest()[:8], "big")]
        )
        label, event = self.model.vocabulary.label_ids.get(pair[0]), self.model.vocabulary.event_ids.get(pair[1])
        if label is None or event is None:
            return None
        places = self._places(event, rng)
        if places is None:
            return None
        trials = [self._trial(row, position, has, label, event, rng) for row, position, has in places]
        return permutation_p_value(trials, rng)

    def _places(self, event: int, rng: np.random.Generator) -> list[tuple[int, int, bool]] | None:
        """(sequence, position, has the event): sequences that have it once, and places in others drawn by length."""
        ids, offsets, rows = self.encoded.events.ids, self.encoded.events.offsets, self.encoded.events.rows()
        number = np.bincount(rows[ids == event], minlength=len(self.encoded))
        cases = np.flatnonzero(number == 1)
        free = np.flatnonzero(number[rows] == 0)  # places in sequences without the event
        if len(cases) < LEAST_CASES or len(free) < LEAST_CASES:
            return None
        size = min(CASES, len(cases), len(free))
        chosen = rng.choice(cases, size, replace=False)
        at = [int(np.flatnonzero(ids[offsets[row] : offsets[row + 1]] == event)[0]) for row in chosen]
        others = rng.choice(free, size, replace=False)
        found = [(int(row), place, True) for row, place in zip(chosen, at, strict=True)]
        return found + [(int(rows[k]), int(k - offsets[rows[k]]), False) for k in others]

    def _trial(self, row: int, position: int, has: bool, label: int, event: int, rng: np.random.Generator) -> Trial:
        model, observed = judge_of(self.model, self.subjects[row]), sequence_contexts(self.encoded, row)
        ids = observed.event_ids[0].cpu().numpy().copy()
        law = model.event_probs(observed)[position].double().cpu().numpy()
        others = law.copy()
        others[:SPECIAL_IDS] = 0.0
        others[event] = 0.0
        without, with_event = ids.copy(), ids.copy()
        with_event[position] = event
        if has:
            without[position] = int(rng.choice(len(others), p=others / others.sum()))
        future = [_future(model, observed, variant, position) for variant in (with_event, without)]
        odds = np.log(max(law[event], 1e-12)) - np.log(max(1 - law[event], 1e-12)) + future[0] - future[1]
        came = label in self.encoded.labels[row]
        gain = _gain(model, observed, np.stack([with_event, without]), label, came)
        return Trial(has, float(np.clip(odds, -30, 30)), gain)


def _future(model: Any, observed: Contexts, ids: Int64, position: int) -> float:
    """Log probability of the events after the place."""
    law = model.event_probs(observed.variants(torch.as_tensor(ids)[None]))
    probs = law[torch.arange(position + 1, len(ids)), torch.as_tensor(ids[position + 1 :])]
    return float(probs.double().clamp(min=1e-12).log().sum())


def _gain(model: Any, observed: Contexts, both: Int64, label: int, came: bool) -> float:
    """Log probability of what was observed in the first of two variants (2, L) minus that in the second."""
    contexts = observed.variants(torch.as_tensor(both))
    probs = model.label_probs(contexts, torch.tensor([label]), torch.tensor([both.shape[1]]))[:, 0, 0]
    clipped = probs.double().cpu().numpy().clip(CLIP, 1 - CLIP)
    logs = np.log(clipped if came else 1 - clipped)
    return float(logs[0] - logs[1])


def permutation_p_value(trials: Sequence[Trial], rng: np.random.Generator) -> float:
    """How many arrangements of the event, drawn by the odds, explain the labels as well as the true one.

    All arrangements are drawn from one that is itself `STEPS` rounds away from the true one, so true and drawn ones are
    exchangeable under the null, however short the chains.
    """
    has = np.array([trial.has_event for trial in trials])
    odds, gain = (np.array([getattr(trial, name) for trial in trials]) for name in ("log_odds", "gain"))
    hub = _walk(has[None], odds, rng)
    drawn = _walk(np.repeat(hub, REDRAWS, axis=0), odds, rng)
    reached = int(((drawn @ gain) >= has @ gain - 1e-9).sum())
    return (1 + reached) / (REDRAWS + 1)


def _walk(has: npt.NDArray[np.bool_], odds: Float64, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Rounds of swaps between random pairs (one with, one without the event): leaves the law given the number with."""
    has = has.copy()
    rows = np.arange(len(has))[:, None]
    size = min(int(has[0].sum()), int((~has[0]).sum()))
    for _ in range(STEPS):
        luck = rng.random(has.shape)
        ones = np.argsort(np.where(has, luck, 2.0), axis=1)[:, :size]
        zeros = np.argsort(np.where(has, 2.0, luck), axis=1)[:, :size]
        swap = rng.random(ones.shape) < 1 / (1 + np.exp(np.clip(odds[ones] - odds[zeros], -60, 60)))
        has[rows, ones] = ~swap
        has[rows, zeros] = swap
    return has


def strongest_pairs(boundaries: pa.Table, most: int) -> list[Pair]:
    """The accepted pairs that were tested in most sequences; at most so many."""
    if most < 0:
        raise UsageError(f"world: expected 0 or more pairs to test, got {most}")
    rows = [row for row in boundaries.to_pylist() if row["verdict"] in ("cause", "inhibitor")]
    rows.sort(key=lambda row: (-row["tested"], row["label"], row["event"]))
    return [(row["label"], row["event"]) for row in rows[:most]]


def with_world_p_values(
    population: Population,
    source: Source,
    pairs: Sequence[Pair],
    *,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> Population:
    """The population with `world_p_value` filled in for these pairs, from sequences the model has not seen."""
    if source.models is None:
        raise UsageError(f"{source.results}: the world test needs the model of the results")
    unseen = source.dataset.take(~source.models.seen_in_training(source.dataset.subject_ids))
    if not len(unseen):
        raise UsageError(f"{source.results}: the world test needs sequences that the model has not seen, found none")
    held_out = HeldOut.of(source.models, unseen)
    found = {}
    for done, pair in enumerate(pairs):
        found[pair] = held_out.p_value(pair, seed)
        if on_progress is not None:
            on_progress(done + 1, len(pairs))
    table = population.boundaries
    keys = zip(table["label"].to_pylist(), table["event"].to_pylist(), strict=True)
    column = pa.array([found.get(key) for key in keys], pa.float64())
    place = BOUNDARY_SCHEMA.get_field_index("world_p_value")
    return replace(population, boundaries=table.set_column(place, "world_p_value", column))
