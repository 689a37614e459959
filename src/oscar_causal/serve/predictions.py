"""Label probabilities of many clients' sequences in as few forward passes as their lengths allow."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence as List
from dataclasses import dataclass

import numpy as np

from oscar_causal.data.sequences import Float64
from oscar_causal.density.folds import MEAN, ModelSet
from oscar_causal.density.model import length_batches
from oscar_causal.density.quality import calibrated, logits_at
from oscar_causal.errors import DataError
from oscar_causal.serve.prepared import Prepared, join

ROWS_PER_PASS = 8192
"""Rows of answers (each with all labels) held at the same time."""


@dataclass(frozen=True, eq=False)
class Question:
    """P(every label) at the end of a sequence, or after each of the events the model reads."""

    prepared: Prepared
    each_event: bool = False

    @property
    def rows(self) -> int:
        """Rows of the answer."""
        return self.prepared.length if self.each_event else 1


def predict(models: ModelSet, questions: List[Question]) -> list[Float64]:
    """One array (P, Y) for each question, P = 1 at the end.

    Sequences of one route are answered together, cut into passes of similar length. Company changes an answer by
    rounding alone (about 1e-7).
    """
    groups: dict[tuple[int, bool], list[int]] = defaultdict(list)
    for index, question in enumerate(questions):
        groups[question.prepared.route, question.each_event].append(index)
    answers: list[Float64] = [np.empty(0)] * len(questions)
    for (route, each), members in groups.items():
        parts = [questions[index].prepared for index in members]
        for index, probs in zip(members, _predict_group(models, parts, route, each), strict=True):
            answers[index] = probs
    return answers


def _predict_group(models: ModelSet, parts: list[Prepared], route: int, each: bool) -> list[Float64]:
    encoded = join([part.encoded for part in parts])
    lengths = encoded.events.lengths
    group = models.models if route == MEAN else (models.models[route],)
    answers: list[Float64] = [np.empty(0)] * len(parts)
    # answers after each event are rectangles (B, P, Y): similar lengths share one, so that it holds little padding
    for chosen in length_batches(lengths, ROWS_PER_PASS) if each else [np.arange(len(parts))]:
        ends = lengths[chosen][:, None]
        positions = np.minimum(np.arange(1, int(ends.max()) + 1), ends) if each else ends  # (B, P)
        probs = np.mean([calibrated(logits_at(m, encoded, chosen, positions), m.calibration) for m in group], axis=0)
        for index, row in zip(chosen.tolist(), probs, strict=True):
            answers[index] = row[: int(lengths[index])] if each else row
    if not all(np.isfinite(answer).all() for answer in answers):
        raise DataError("sequence: the model has no number for such times or channel values")
    return answers
