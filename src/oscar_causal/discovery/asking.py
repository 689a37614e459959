"""One estimator at work on one sequence, within the memory there is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch

from oscar_causal.data.vocabulary import UNKNOWN_ID, Vocabulary
from oscar_causal.density.interface import Contexts, has_event_probs
from oscar_causal.density.model import pieces_of
from oscar_causal.discovery import fused, intervention, prefix
from oscar_causal.discovery.boundary import EventEvidence, RankedBy
from oscar_causal.discovery.contexts import Int64, Stream
from oscar_causal.discovery.doubt import near, near_decision, plausibility, screen_contexts
from oscar_causal.discovery.extensions import is_own, run_estimator
from oscar_causal.discovery.knowledge import Knowledge
from oscar_causal.discovery.prior_files import opened_prior
from oscar_causal.discovery.settings import DiscoveryConfig
from oscar_causal.discovery.subject import Subject, prepare
from oscar_causal.errors import UsageError

FEW_POSITIONS = 10
"""Among fewer values none can lie 2.75 standard deviations above their mean."""

Found = tuple[float | None, tuple[EventEvidence, ...], list[str]]


@dataclass(frozen=True)
class Answers:
    """What an estimator found in one sequence: for each label its probability, evidence and flags."""

    found: list[Found]
    contexts: int
    logp: tuple[float | None, float | None] = (None, None)
    """Plausibility of the sequence and of its contexts."""
    ranked_by: RankedBy | None = None
    """What chose the events to test, for all labels of the sequence alike."""


def ask(
    model: Any,
    density: Any,
    sequence: Contexts,
    labels: Int64,
    sequence_id: str,
    config: DiscoveryConfig,
    subject_id: str | None = None,
) -> tuple[Answers, list[str]]:
    """Run the estimator; a device that runs out of memory gets smaller pieces for this sequence, and a flag says so."""
    pieces = pieces_of(model)
    for part in pieces:
        part.short = None
    try:
        answers = _run(model, density, sequence, labels, sequence_id, config, subject_id or sequence_id)
    except torch.OutOfMemoryError as error:
        raise UsageError(
            f"{sequence_id}: the device ran out of memory with one context of {sequence.event_ids.shape[1]} events; "
            "expected a larger one, or --device cpu"
        ) from error
    short = [part.short for part in pieces if part.short is not None]
    return answers, [f"memory was short: pieces of {min(short)} contexts"] if short else []


def _run(
    model: Any,
    density: Any,
    sequence: Contexts,
    labels: Int64,
    sequence_id: str,
    config: DiscoveryConfig,
    subject_id: str,
) -> Answers:
    if is_own(config.estimator):
        return _run_own(density, sequence, labels, sequence_id, config)
    if config.estimator == "prefix":
        return _run_prefix(model, density, sequence, labels, sequence_id, config)
    vocabulary, settings = model.vocabulary, config.intervention
    label_names = [vocabulary.labels[int(label)] for label in labels]
    subject = prepare(
        density,
        sequence,
        sequence_id=sequence_id,
        seed=config.seed,
        shuffle=settings.shuffle_ties,
        excluded=_never_replaced(vocabulary, config.known, label_names),
    )
    if not subject.testable.any():
        whole = model.label_probs(sequence, torch.as_tensor(labels), torch.tensor([sequence.event_ids.shape[1]]))
        return Answers([(float(p), (), ["no event may be replaced"]) for p in whole[0, 0]], 1)
    names = [vocabulary.name(t) for t in subject.types.tolist()]
    forbidden = config.known.forbidden_mask(label_names, names) & subject.testable  # (Y', K)
    if config.fused.population is not None:
        prior = opened_prior(config.fused.population)
        both = (settings, config.fused)
        results, spent = fused.explain(density, subject, labels, names, (prior, subject_id), both, forbidden=forbidden)
    else:
        results, spent = intervention.explain(density, subject, labels, names, settings, forbidden=forbidden)
    found: list[Found] = []
    for item in results:
        evidence = tuple(
            replace(part, borderline=True) if near_decision(part, alpha=settings.alpha, delta=settings.delta) else part
            for part in item.evidence
        )
        found.append((item.observed, evidence, list(item.flags)))
    return Answers(found, spent, _plausibility(model, subject, config), results[0].ranked_by)


def _run_own(density: Any, sequence: Contexts, labels: Int64, sequence_id: str, config: DiscoveryConfig) -> Answers:
    stream = Stream(config.seed, sequence_id, "own")
    own = run_estimator(config.estimator, density, sequence, labels, stream)
    found: list[Found] = [(p, evidence, []) for p, evidence in zip(own.probabilities, own.evidence, strict=True)]
    return Answers(found, own.contexts)


def _never_replaced(vocabulary: Vocabulary, known: Knowledge, labels: list[str]) -> frozenset[int]:
    """Excluded events, unknown ones, and those that no label of the sequence may be tested on."""
    forbidden = set.intersection(*(known.forbidden_for(label) for label in labels))
    ids = (vocabulary.event_ids.get(name) for name in {*known.excluded, *forbidden})
    return frozenset({UNKNOWN_ID, *(event for event in ids if event is not None)})


def _plausibility(model: Any, subject: Subject, config: DiscoveryConfig) -> tuple[float | None, float | None]:
    if config.replacement == "delete" or not has_event_probs(model):
        return None, None
    return plausibility(model, subject.sequence, screen_contexts(subject, config.intervention.screen_rate))


def _run_prefix(
    model: Any, density: Any, sequence: Contexts, labels: Int64, sequence_id: str, config: DiscoveryConfig
) -> Answers:
    settings = config.prefix
    length = sequence.event_ids.shape[1]
    whole = model.label_probs(sequence, torch.as_tensor(labels), torch.tensor([length]))[0, 0].tolist()
    if length <= settings.context:
        return Answers([(p, (), [f"shorter than c = {settings.context} events"]) for p in whole], 1)
    pasts = prefix.sample_pasts(density, sequence, settings, seed=config.seed, sequence_id=sequence_id)
    curves = prefix.prefix_curves(model, sequence, pasts, labels, settings.context)
    names = [model.vocabulary.name(event) for event in sequence.event_ids[0].tolist()]
    times = sequence.times.cpu().numpy()
    few = length - settings.context < FEW_POSITIONS
    flags = [f"only {length - settings.context} positions to set a threshold on"] if few else []
    theta = prefix.threshold(curves.cmi_nats, settings.threshold)
    found: list[Found] = []
    for j, probability in enumerate(whole):
        evidence = prefix.prefix_evidence(curves, j, names, times, settings)
        marked = tuple(
            replace(item, borderline=True) if near(item.score or 0.0, float(theta[j])) else item for item in evidence
        )
        found.append((probability, marked, list(flags)))
    logp = plausibility(model, sequence, pasts) if has_event_probs(model) else (None, None)
    return Answers(found, len(pasts) + 1, logp)
