"""P(label | the first n events) along sequences, as the model that judges each sequence sees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from oscar_causal.data.sequences import Dataset

if TYPE_CHECKING:
    from oscar_causal.data.batches import Encoded
    from oscar_causal.density.folds import MeanModel
    from oscar_causal.density.model import OscarModel

OnProgress = Callable[[int, int], None]


@dataclass(frozen=True)
class Forecast:
    """Probabilities of one label after the first `begin`, `begin` + 1, ... events of a sequence."""

    begin: int
    values: tuple[float, ...]


def label_forecasts(
    model: Path | str,
    dataset: Dataset,
    labels: Sequence[Sequence[str]],
    *,
    on_progress: OnProgress | None = None,
) -> list[dict[str, Forecast]]:
    """For sequence i of the dataset the forecasts of `labels[i]`; labels the model does not know are left out.

    They begin where the model's label probabilities mean something (`min_context`), at the last event of a shorter one.
    """
    from oscar_causal.data.batches import encode
    from oscar_causal.density.folds import MEAN, load_models

    models = load_models(model)
    routes = models.routes(dataset.subject_ids)
    found: dict[int, dict[str, Forecast]] = {}
    for route in np.unique(routes):
        judge = models.mean if route == MEAN else models.models[int(route)]
        rows = np.flatnonzero(routes == route)
        part = dataset.take(rows)
        encoded = encode(part, judge.vocabulary, max_length=judge.max_length, channels=judge.channels)
        for k, row in enumerate(rows.tolist()):
            found[row] = _of_sequence(judge, encoded, k, int(part.lengths[k]), labels[row])
            if on_progress is not None:
                on_progress(len(found), len(labels))
    return [found[row] for row in range(len(labels))]


def _of_sequence(
    judge: OscarModel | MeanModel, encoded: Encoded, index: int, length: int, names: Sequence[str]
) -> dict[str, Forecast]:
    import torch

    from oscar_causal.density.model import sequence_contexts

    known = [name for name in names if name in judge.vocabulary.label_ids]
    if not known:
        return {}
    contexts = sequence_contexts(encoded, index)
    kept = contexts.event_ids.shape[1]
    steps = torch.arange(min(judge.min_context, kept), kept + 1)
    wanted = torch.tensor([judge.vocabulary.label_ids[name] for name in known])
    probs = judge.label_probs(contexts, wanted, steps)[0].double().cpu().numpy()  # (P, Y')
    begin = length - kept + int(steps[0])
    return {name: Forecast(begin, tuple(probs[:, k].tolist())) for k, name in enumerate(known)}
