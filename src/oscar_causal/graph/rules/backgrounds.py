"""Backgrounds: sampled sequences into which candidates are put, and the model's answers about them.

A background keeps its times; channel values go with their event, so a new event has none. Events are taken out by
drawing something else from Tf_x, and put in by replacing what stands at a position. Questions about many labels share a
background, so that one forward pass of a trained model answers as many as fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from oscar_causal.data.batches import Encoded
from oscar_causal.density.interface import Contexts, LabelDensity
from oscar_causal.density.model import sequence_contexts
from oscar_causal.discovery.contexts import Float64, Int64, Stream, draw, without_types

ABSENT = -1
"""Stands for "not inserted" among inserted event ids."""


@dataclass(frozen=True)
class Background:
    """One sampled sequence and what could stand at each of its positions."""

    sequence: Contexts
    sequence_id: str
    law: torch.Tensor
    """(L, V), P(event i | events before i)."""
    model: LabelDensity
    """Who is asked about it."""

    @property
    def event_ids(self) -> Int64:
        """(L,) as observed."""
        ids: Int64 = self.sequence.event_ids[0].cpu().numpy()
        return ids

    @property
    def times(self) -> Float64:
        """(L,) seconds from the start."""
        times: Float64 = self.sequence.times.cpu().numpy()
        return times


@dataclass(frozen=True)
class Question:
    """For one label: variants of each background, a list of (N, L) with one entry per background."""

    label: int
    rows: list[Int64]


def open_background(model: Any, encoded: Encoded, index: int, sequence_id: str) -> Background:
    """A sequence of the dataset as a background."""
    sequence = sequence_contexts(encoded, index)
    return Background(sequence, sequence_id, model.event_probs(sequence), model)


def choose_backgrounds(encoded: Encoded, count: int, shortest: int, seed: int) -> Int64:
    """Indices of `count` random sequences of at least `shortest` events, those with the fewest labels first."""
    usable = np.flatnonzero(encoded.events.lengths >= shortest)
    order = np.random.default_rng([seed, 0xBAC4]).permutation(usable)
    return order[np.argsort(encoded.labels.lengths[order], kind="stable")][:count]


def cleared(background: Background, event_ids: Int64, stream: Stream) -> Int64:
    """The background with these types replaced by draws that are none of them: (L,)."""
    ids = background.event_ids.copy()
    at = np.flatnonzero(np.isin(ids, event_ids))
    if len(at):
        law = without_types(background.law[torch.as_tensor(at, device=background.law.device)], event_ids)
        ids[at] = draw(law, stream.uniforms(1, len(ids))[:, at])[0]
    return ids


def inserted(ids: Int64, positions: Int64, events: Int64) -> Int64:
    """Put events at positions: ids (L,), positions and events (N, M), `ABSENT` leaves a place as it is -> (N, L).

    >>> inserted(np.array([7, 7, 7]), np.array([[0, 2]]), np.array([[4, ABSENT]])).tolist()
    [[4, 7, 7]]
    """
    rows = np.repeat(ids[None, :], len(events), axis=0)
    row, column = np.nonzero(events != ABSENT)
    rows[row, positions[row, column]] = events[row, column]
    return rows


def distinct(positions: Int64, length: int) -> Int64:
    """Positions (N, M) with clashes inside a row moved on to the next free place; M is at most `length`."""
    settled = positions % length
    for column in range(1, settled.shape[1]):
        while (clash := (settled[:, :column] == settled[:, column : column + 1]).any(1)).any():
            settled[clash, column] = (settled[clash, column] + 1) % length
    return settled


def answers(backgrounds: Sequence[Background], questions: Sequence[Question]) -> list[list[Float64]]:
    """P(label) after the last event for every row of every question: per question and background, (N,)."""
    labels = torch.as_tensor([question.label for question in questions])
    found: list[list[Float64]] = [[] for _ in questions]
    for place, background in enumerate(backgrounds):
        counts = [len(question.rows[place]) for question in questions]
        if not sum(counts):
            for part in found:
                part.append(np.empty(0))
            continue
        rows = np.concatenate([question.rows[place] for question in questions])
        probs = ask(background.model, background.sequence, rows, labels)  # (rows, questions)
        bounds = np.cumsum([0, *counts])
        for number, part in enumerate(found):
            part.append(probs[bounds[number] : bounds[number + 1], number])
    return found


def ask(model: LabelDensity, sequence: Contexts, rows: Int64, labels: torch.Tensor) -> Float64:
    """P(label) after the last event of variants of a sequence: rows (N, L) -> (N, Y')."""
    contexts = sequence.variants(torch.as_tensor(rows))
    probs = model.label_probs(contexts, labels, torch.tensor([rows.shape[1]]))  # (N, 1, Y')
    return probs[:, 0].double().cpu().numpy()
