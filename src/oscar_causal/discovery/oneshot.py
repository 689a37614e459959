"""`discover`: boundaries for every sequence of a dataset, one sequence at a time, so that none can touch another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from oscar_causal.data.batches import Encoded, encode
from oscar_causal.data.sequences import Dataset
from oscar_causal.data.vocabulary import UNKNOWN_ID, Vocabulary
from oscar_causal.density.interface import Contexts, LabelDensity
from oscar_causal.density.model import sequence_contexts
from oscar_causal.discovery import intervention, prefix
from oscar_causal.discovery.boundary import Boundary, EventEvidence
from oscar_causal.discovery.contexts import Int64
from oscar_causal.discovery.intervention import InterventionConfig
from oscar_causal.discovery.prefix import PrefixConfig
from oscar_causal.discovery.subject import prepare
from oscar_causal.errors import UsageError

ESTIMATORS = {
    "intervention": "controlled direct effect of an event type on the model's P(label | whole sequence)",
    "prefix": "information gain of each event over the forecast of the label, averaged over sampled pasts (Eq. 4)",
}
"""Estimator -> what it estimates."""

FEW_POSITIONS = 10
"""Among fewer values none can lie 2.75 standard deviations above their mean."""

OnProgress = Callable[[int, int], None]


@dataclass(frozen=True)
class DiscoveryConfig:
    """What to explain, and how."""

    estimator: str = "intervention"
    """intervention (default) or prefix (the paper's)."""
    intervention: InterventionConfig = field(default_factory=InterventionConfig)
    prefix: PrefixConfig = field(default_factory=PrefixConfig)
    labels: str | tuple[str, ...] = "observed"
    """observed (recorded ones), predicted (P > 0.5), or names of labels to explain in every sequence."""
    excluded: tuple[str, ...] = ()
    """Events that are never replaced, tested or accepted (background knowledge)."""
    seed: int = 0
    """Decides masks and draws."""

    def __post_init__(self) -> None:
        if self.estimator not in ESTIMATORS:
            raise UsageError(f"estimator: expected one of {', '.join(ESTIMATORS)}, got {self.estimator!r}")
        if isinstance(self.labels, str) and self.labels not in ("observed", "predicted"):
            raise UsageError(f"labels: expected observed, predicted or a list of names, got {self.labels!r}")

    def to_json(self) -> dict[str, Any]:
        """All settings that decide the results."""
        settings = asdict(self)
        return {key: value for key, value in settings.items() if key not in ESTIMATORS or key == self.estimator}


def discover(
    model: Any,
    dataset: Dataset,
    config: DiscoveryConfig | None = None,
    *,
    indices: Sequence[int] | npt.NDArray[Any] | None = None,
    on_progress: OnProgress | None = None,
) -> Iterator[list[Boundary]]:
    """Explain sequences one after the other: a list with one Boundary per label for each.

    `model` has both protocols of `density.interface`. The result for a sequence depends on the model, the sequence, its
    id and the config alone.
    """
    config = config or DiscoveryConfig()
    channels = getattr(model, "channels", dataset.channels)  # a model need not read any
    encoded = encode(dataset, model.vocabulary, max_length=model.max_length, channels=channels)
    chosen = np.arange(len(dataset)) if indices is None else np.asarray(indices, np.int64)
    predicted = _wanted_labels(config, model.vocabulary)
    for done, index in enumerate(chosen):
        yield explain_sequence(model, dataset, encoded, int(index), config, predicted)
        if on_progress is not None:
            on_progress(done + 1, len(chosen))


def explain_sequence(
    model: Any, dataset: Dataset, encoded: Encoded, index: int, config: DiscoveryConfig, fixed: Int64 | None
) -> list[Boundary]:
    """All boundaries of one sequence."""
    sequence = sequence_contexts(encoded, index)
    observed = {int(label) for label in encoded.labels[index]}
    labels = fixed if fixed is not None else np.array(sorted(observed), np.int64)
    if config.labels == "predicted":
        labels = _predicted(model, sequence)
    if not len(labels):
        return []
    flags = _flags(encoded, index, sequence)
    flags += [f"channel {name} missing" for name in getattr(model, "channels", ()) if name not in dataset.channels]
    sequence_id = dataset.sequence_ids[index].as_py()
    found, contexts = _run(model, sequence, labels, sequence_id, config)
    shift = int(dataset.lengths[index]) - sequence.event_ids.shape[1]
    return [
        Boundary(
            sequence_id=sequence_id,
            label=model.vocabulary.labels[int(label)],
            observed=(int(label) in observed) if encoded.labelled[index] else None,
            probability=probability,
            evidence=tuple(_shifted(item, shift) for item in evidence if item.event not in config.excluded),
            contexts=contexts,
            flags=tuple(flags + extra),
        )
        for label, (probability, evidence, extra) in zip(labels, found, strict=True)
    ]


Found = tuple[float | None, tuple[EventEvidence, ...], list[str]]


def _run(
    model: Any, sequence: Contexts, labels: Int64, sequence_id: str, config: DiscoveryConfig
) -> tuple[list[Found], int]:
    if config.estimator == "prefix":
        return _run_prefix(model, sequence, labels, sequence_id, config)
    known = model.vocabulary.event_ids
    excluded = frozenset({UNKNOWN_ID, *(known[name] for name in config.excluded if name in known)})
    subject = prepare(
        model,
        sequence,
        sequence_id=sequence_id,
        seed=config.seed,
        shuffle=config.intervention.shuffle_ties,
        excluded=excluded,
    )
    if not subject.testable.any():
        whole = model.label_probs(sequence, torch.as_tensor(labels), torch.tensor([sequence.event_ids.shape[1]]))
        return [(float(p), (), ["no event may be replaced"]) for p in whole[0, 0]], 1
    names = [model.vocabulary.name(int(t)) for t in subject.types]
    results, spent = intervention.explain(model, subject, labels, names, config.intervention)
    return [(item.observed, item.evidence, list(item.flags)) for item in results], spent


def _run_prefix(
    model: Any, sequence: Contexts, labels: Int64, sequence_id: str, config: DiscoveryConfig
) -> tuple[list[Found], int]:
    settings = config.prefix
    length = sequence.event_ids.shape[1]
    whole = model.label_probs(sequence, torch.as_tensor(labels), torch.tensor([length]))[0, 0].tolist()
    if length <= settings.context:
        return [(p, (), [f"shorter than c = {settings.context} events"]) for p in whole], 1
    pasts = prefix.sample_pasts(model, sequence, settings, seed=config.seed, sequence_id=sequence_id)
    curves = prefix.prefix_curves(model, sequence, pasts, labels, settings.context)
    names = [model.vocabulary.name(int(event)) for event in sequence.event_ids[0]]
    times = sequence.times.cpu().numpy()
    few = length - settings.context < FEW_POSITIONS
    flags = [f"only {length - settings.context} positions to set a threshold on"] if few else []
    found = [(p, prefix.prefix_evidence(curves, j, names, times, settings), list(flags)) for j, p in enumerate(whole)]
    return found, len(pasts) + 1


def _wanted_labels(config: DiscoveryConfig, vocabulary: Vocabulary) -> Int64 | None:
    if isinstance(config.labels, str):
        return None
    unknown = [name for name in config.labels if name not in vocabulary.label_ids]
    if unknown:
        raise UsageError(f"labels: the model does not know {unknown[0]!r}")
    return np.array([vocabulary.label_ids[name] for name in config.labels], np.int64)


def _predicted(model: LabelDensity, sequence: Contexts) -> Int64:
    every = torch.arange(len(model.vocabulary.labels))
    probs = model.label_probs(sequence, every, torch.tensor([sequence.event_ids.shape[1]]))[0, 0]
    return np.flatnonzero((probs > 0.5).cpu().numpy())


def _flags(encoded: Encoded, index: int, sequence: Contexts) -> list[str]:
    flags = []
    unknown = int((sequence.event_ids == UNKNOWN_ID).sum())
    if unknown:
        flags.append(f"{unknown} unknown events")
    if encoded.cut[index]:
        flags.append("oldest events cut off")
    return flags


def _shifted(item: EventEvidence, shift: int) -> EventEvidence:
    return replace(item, positions=tuple(position + shift for position in item.positions)) if shift else item
