"""One sequence under study: its replacement law, its contexts, and what the label model says of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from oscar_causal.density.interface import Contexts, EventDensity, LabelDensity
from oscar_causal.density.transfer import send
from oscar_causal.discovery.contexts import (
    Bool,
    Float64,
    Int64,
    Stream,
    present_types,
    tie_groups,
    without_types,
)
from oscar_causal.discovery.device_contexts import draw_on, shuffle_ties, uniforms_on


@dataclass(frozen=True)
class Subject:
    """A sequence under study: what is drawn once and used in all contexts."""

    sequence: Contexts
    sequence_id: str
    seed: int
    event_ids: Int64  # (L,)
    types: Int64  # (K,) distinct event ids
    owner: Int64  # (L,) index into types
    law: torch.Tensor  # (L, V) replacement law
    ties: Int64 | None  # (L,) timestamp numbers, None = leave the order alone
    testable: Bool  # (K,) types that may be replaced


@dataclass(frozen=True)
class Stage:
    """Contexts of one stage: which types were replaced, with which probability, and what became of P(label)."""

    masks: Bool  # (N, K)
    rates: Float64  # (K,)
    outcomes: Float64  # (N, Y')


def prepare(
    model: EventDensity,
    sequence: Contexts,
    *,
    sequence_id: str,
    seed: int,
    shuffle: bool,
    excluded: frozenset[int] = frozenset(),
) -> Subject:
    """Compute the replacement law of a sequence once; `excluded` event ids are never replaced."""
    event_ids = sequence.event_ids[0].cpu().numpy()
    types, owner = present_types(event_ids)
    groups = tie_groups(sequence.times.cpu().numpy())
    tied = shuffle and groups[-1] + 1 < len(groups)
    law = without_types(model.event_probs(sequence), types)
    testable = np.array([int(t) not in excluded for t in types])
    return Subject(sequence, sequence_id, seed, event_ids, types, owner, law, groups if tied else None, testable)


def respond(
    model: LabelDensity, subject: Subject, masks: Bool, labels: Int64, purpose: str, *, shuffled: bool = True
) -> Float64:
    """P(label) after the last event with the masked types replaced: masks (N, K) -> (N, Y')."""
    return respond_at(model, subject, masks[:, subject.owner], labels, purpose, shuffled=shuffled)


def without(
    model: LabelDensity, subject: Subject, groups: Iterable[Sequence[int] | Int64], labels: Int64, purpose: str
) -> Float64:
    """P(label) after the last event without each group of types: (groups, Y')."""
    listed = [np.asarray(group, np.int64) for group in groups]
    masks = np.zeros((len(listed), len(subject.types)), bool)
    for row, group in enumerate(listed):
        masks[row, group] = True
    return respond(model, subject, masks, labels, purpose)


def respond_at(
    model: LabelDensity, subject: Subject, masks: Bool, labels: Int64, purpose: str, *, shuffled: bool = True
) -> Float64:
    """P(label) after the last event with the masked positions replaced: masks (N, L) -> (N, Y')."""
    ids = replaced_ids(subject, masks, purpose, shuffled=shuffled)
    contexts = Contexts(ids, subject.sequence.times, subject.sequence.channels)
    probs = model.label_probs(contexts, torch.as_tensor(labels), torch.tensor([ids.shape[1]]))  # (N, 1, Y')
    return probs[:, 0].double().cpu().numpy()


def replaced_ids(subject: Subject, masks: Bool, purpose: str, *, shuffled: bool = True) -> torch.Tensor:
    """The sequence with the masked positions (N, L) replaced and its ties shuffled: (N, L), where the law lives."""
    device, (rows, length) = subject.law.device, masks.shape

    def uniforms(what: str) -> torch.Tensor:
        return uniforms_on(Stream(subject.seed, subject.sequence_id, f"{what} {purpose}"), rows, length, device)

    observed = send(subject.event_ids, device)
    ids = torch.where(send(masks, device), draw_on(subject.law, uniforms("draw")), observed)
    if shuffled and subject.ties is not None:
        ids = shuffle_ties(ids, send(subject.ties, device), uniforms("tie"))
    return ids


def run_stage(
    model: LabelDensity, subject: Subject, labels: Int64, uniforms: Float64, rates: Float64, purpose: str
) -> Stage:
    """Replace each type with its own probability, decided by `uniforms` (N, K), and ask the model."""
    masks = uniforms < rates
    return Stage(masks, rates, respond(model, subject, masks, labels, purpose))
