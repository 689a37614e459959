"""`discover`: boundaries for every sequence of a dataset; none can touch another, also where a GPU takes many."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from oscar_causal.data.batches import Encoded, encode
from oscar_causal.data.sequences import Dataset
from oscar_causal.data.vocabulary import UNKNOWN_ID, Vocabulary
from oscar_causal.density.interface import Contexts, LabelDensity
from oscar_causal.density.model import sequence_contexts
from oscar_causal.discovery.asking import ask
from oscar_causal.discovery.batched import are_fast, by_length, explain_together, room_for
from oscar_causal.discovery.boundary import Boundary, EventEvidence
from oscar_causal.discovery.contexts import Int64
from oscar_causal.discovery.doubt import borderline_flags, with_agreement
from oscar_causal.discovery.settings import ESTIMATORS, DiscoveryConfig
from oscar_causal.discovery.sources import with_replacement
from oscar_causal.discovery.survey import first_names

__all__ = ["ESTIMATORS", "DiscoveryConfig", "discover", "explain_sequence"]

WINDOW = 512
"""Sequences whose results are waited for together where a model takes many at once."""
OnProgress = Callable[[int, int], None]


def discover(
    model: Any,
    dataset: Dataset,
    config: DiscoveryConfig | None = None,
    *,
    indices: Sequence[int] | npt.NDArray[Any] | None = None,
    also: Sequence[Any] = (),
    background: Dataset | None = None,
    on_progress: OnProgress | None = None,
) -> Iterator[list[Boundary]]:
    """Explain sequences one after the other: a list with one Boundary per label for each.

    `model` has both protocols of `density.interface` (a label density is enough where `config.replacement` is not
    `model`). The result for a sequence depends on the model, the sequence, its id and the config alone, and for the
    replacements marginal and donors on the events of `background` (default: `dataset`); bit by bit while torch keeps
    its number of threads. `also`: further models, whose agreement with each verdict is recorded.

    >>> from oscar_causal import from_records
    >>> from oscar_causal.density import adapters
    >>> names = Vocabulary(("boot", "disk slow", "retry", "mail", "cron", "login"), ("outage",))
    >>> night = {"sequence_id": "night", "events": names.events[:4], "times": [0, 5, 6, 9], "labels": ["outage"]}
    >>> log = from_records([night])
    >>> both = lambda rows: [[0.9 if {"disk slow", "retry"} <= set(row) else 0.2] for row in rows]
    >>> model = adapters.combine(labels=adapters.from_function(both, names), events=adapters.marginal(log, names))
    >>> harmless = DiscoveryConfig(replacement=lambda model, sequence: np.ones((4, names.size)))
    >>> sorted(cause.event for (found,) in discover(model, log, harmless) for cause in found.causes)
    ['disk slow', 'retry']
    """
    config = config or DiscoveryConfig()
    config.check(model.vocabulary)
    opened = [_open(part, dataset, config, background) for part in (model, *also)]
    chosen = np.arange(len(dataset)) if indices is None else np.asarray(indices, np.int64)
    fixed = _wanted_labels(config, model.vocabulary)

    def explain(opened: list[Opened], index: int) -> list[Boundary]:
        found = explain_sequence(opened[0][0], dataset, opened[0][1], index, config, fixed, density=opened[0][2])
        return _agreed(found, opened[1:], dataset, index, config) if also else found

    together = config.replacement == "model" and are_fast((model, *also))
    explained = _together(explain, opened, dataset, chosen) if together else (explain(opened, int(k)) for k in chosen)
    for done, found in enumerate(explained):
        yield found
        if on_progress is not None:
            on_progress(done + 1, len(chosen))


def _together(
    explain: Callable[[list[Opened], int], list[Boundary]], opened: list[Opened], dataset: Dataset, chosen: Int64
) -> Iterator[list[Boundary]]:
    """Window by window: those of one length share the model's launches."""

    def meet(models: Sequence[Any], index: int) -> list[Boundary]:
        return explain([(met, encoded, met) for met, (_, encoded, _) in zip(models, opened, strict=True)], index)

    models = [model for model, _, _ in opened]
    for begin in range(0, len(chosen), WINDOW):
        window = chosen[begin : begin + WINDOW]
        order = by_length(dataset.lengths[window].tolist())
        room = room_for(int(dataset.lengths[window].max()), models[0].vocabulary.size)
        found = explain_together(meet, models, [int(window[k]) for k in order], in_flight=room)
        yield from (boundaries for _, boundaries in sorted(zip(order, found, strict=True), key=lambda item: item[0]))


Opened = tuple[Any, Encoded, Any]
"""A model, the dataset in its ids, and the model with its replacement law."""


def _open(model: Any, dataset: Dataset, config: DiscoveryConfig, background: Dataset | None) -> Opened:
    channels = getattr(model, "channels", dataset.channels)  # a model need not read any
    encoded = encode(dataset, model.vocabulary, max_length=model.max_length, channels=channels)
    return model, encoded, with_replacement(model, config.replacement, background or dataset)


def _agreed(
    found: list[Boundary], others: list[Opened], dataset: Dataset, index: int, config: DiscoveryConfig
) -> list[Boundary]:
    """The boundaries with the other models' word on them; a model that does not know a label has none."""
    said: dict[str, list[Boundary]] = {item.label: [] for item in found}
    for model, encoded, density in others:
        known = tuple(label for label in said if label in model.vocabulary.label_ids)
        asked = replace(config, labels=known)
        fixed = _wanted_labels(asked, model.vocabulary)
        for item in explain_sequence(model, dataset, encoded, index, asked, fixed, density=density):
            said[item.label].append(item)
    return [with_agreement(item, said[item.label]) for item in found]


def explain_sequence(
    model: Any,
    dataset: Dataset,
    encoded: Encoded,
    index: int,
    config: DiscoveryConfig,
    fixed: Int64 | None,
    *,
    density: Any = None,
) -> list[Boundary]:
    """All boundaries of one sequence. `density`: the model with another replacement law than its own Tf_x."""
    sequence = sequence_contexts(encoded, index)
    observed = {int(label) for label in encoded.labels[index]}
    labels = fixed if fixed is not None else np.array(sorted(observed), np.int64)
    if config.labels == "predicted":
        labels = _predicted(model, sequence)
    if not len(labels):
        return []
    flags = [*_flags(encoded, index, sequence, model.min_context), *_untrained(config, model)]
    flags += _unknown(dataset, index, sequence, model.vocabulary)
    flags += [f"channel {name} missing" for name in getattr(model, "channels", ()) if name not in dataset.channels]
    sequence_id = dataset.sequence_ids[index].as_py()
    subject_id = dataset.subject_ids[index].as_py()
    answers, short = ask(model, density or model, sequence, labels, sequence_id, config, subject_id)
    shift = int(dataset.lengths[index]) - sequence.event_ids.shape[1]
    present = _positions(model.vocabulary, sequence)
    boundaries = []
    for label, (probability, measured, extra) in zip(labels, answers.found, strict=True):
        name = model.vocabulary.labels[int(label)]
        evidence, required = config.known.obey(name, measured, present)
        boundaries.append(
            Boundary(
                sequence_id=sequence_id,
                label=name,
                observed=(int(label) in observed) if encoded.labelled[index] else None,
                probability=probability,
                evidence=tuple(_shifted(item, shift) for item in evidence),
                contexts=answers.contexts,
                flags=(*flags, *short, *extra, *required, *borderline_flags(evidence)),
                observed_logp=answers.logp[0],
                contexts_logp=answers.logp[1],
                ranked_by=answers.ranked_by,
            )
        )
    return boundaries


def _wanted_labels(config: DiscoveryConfig, vocabulary: Vocabulary) -> Int64 | None:
    if isinstance(config.labels, str):
        return None
    return np.array([vocabulary.label_ids[name] for name in config.labels], np.int64)


def _predicted(model: LabelDensity, sequence: Contexts) -> Int64:
    every = torch.arange(len(model.vocabulary.labels))
    probs = model.label_probs(sequence, every, torch.tensor([sequence.event_ids.shape[1]]))[0, 0]
    return np.flatnonzero((probs > 0.5).cpu().numpy())


def _positions(vocabulary: Vocabulary, sequence: Contexts) -> dict[str, tuple[int, ...]]:
    """Where each event of the sequence stands."""
    places: dict[int, list[int]] = {}
    for position, event in enumerate(sequence.event_ids[0].tolist()):
        places.setdefault(event, []).append(position)
    return {vocabulary.name(event): tuple(found) for event, found in places.items()}


def _flags(encoded: Encoded, index: int, sequence: Contexts, min_context: int) -> list[str]:
    flags = []
    if sequence.event_ids.shape[1] < min_context:
        flags.append(f"shorter than the model's c = {min_context} events")
    if encoded.cut[index]:
        flags.append("oldest events cut off")
    return flags


def _untrained(config: DiscoveryConfig, model: LabelDensity) -> list[str]:
    asked, trained = config.prefix.context, model.min_context
    if config.estimator != "prefix" or asked >= trained:
        return []
    return [f"c = {asked}: the model has learnt to predict labels from c = {trained} events on"]


def _unknown(dataset: Dataset, index: int, sequence: Contexts, vocabulary: Vocabulary) -> list[str]:
    """How many events the model reads as unknown, and the names of the first few."""
    count = int((sequence.event_ids == UNKNOWN_ID).sum())
    if not count:
        return []
    read = dataset.events_of(index)[-sequence.event_ids.shape[1] :]
    names = list(dict.fromkeys(name for name in read if name not in vocabulary.event_ids))
    return [f"{count} unknown events: {first_names(names)}"]


def _shifted(item: EventEvidence, shift: int) -> EventEvidence:
    """Positions as in the dataset, where the oldest events were cut off."""
    if not shift:
        return item
    mattered = None if item.mattered is None else tuple(position + shift for position in item.mattered)
    return replace(item, positions=tuple(position + shift for position in item.positions), mattered=mattered)
