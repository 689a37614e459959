"""One sequence under study: its replacement law, its contexts, and what the label model says of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
import torch

from oscar_causal.density.interface import Contexts, EventDensity, LabelDensity, carried
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
from oscar_causal.discovery.device_contexts import draw_from, running_sums, shuffle_ties, stacked_uniforms


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
    cumulated: torch.Tensor  # (L, V or a few more) its running sums, float64: what draws are made from
    ties: Int64 | None  # (L,) timestamp numbers, None = leave the order alone
    testable: Bool  # (K,) types that may be replaced

    @cached_property
    def places(self) -> list[tuple[int, ...]]:
        """Where each type stands."""
        order, counts = np.argsort(self.owner, kind="stable"), np.bincount(self.owner, minlength=len(self.types))
        return [tuple(part.tolist()) for part in np.split(order, np.cumsum(counts)[:-1])]


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
    law = model.event_probs(sequence)
    return subject_of(sequence, law, sequence_id=sequence_id, seed=seed, shuffle=shuffle, excluded=excluded)


def subject_of(
    sequence: Contexts,
    law: torch.Tensor,
    *,
    sequence_id: str,
    seed: int,
    shuffle: bool,
    excluded: frozenset[int] = frozenset(),
) -> Subject:
    """The same where P(event i | events before i) is known: `law` (L, V)."""
    event_ids = sequence.event_ids[0].cpu().numpy()
    types, owner = present_types(event_ids)
    groups = tie_groups(sequence.times.cpu().numpy())
    tied = shuffle and groups[-1] + 1 < len(groups)
    law = without_types(law, types)
    testable = np.array([int(t) not in excluded for t in types])
    ties = groups if tied else None
    return Subject(sequence, sequence_id, seed, event_ids, types, owner, law, running_sums(law), ties, testable)


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
    variants, wanted = Variants(subject, masks, purpose, shuffled), torch.as_tensor(labels)
    if isinstance(model, Responsive):
        probs = model.responses(variants, wanted)
    else:
        probs = model.label_probs(*label_question(build_contexts([variants])[0], wanted))
    return probs[:, 0].double().cpu().numpy()


@dataclass(frozen=True)
class Variants:
    """Contexts of a sequence before they are built: the masked positions are replaced, ties shuffled."""

    subject: Subject
    masks: Bool  # (N, L)
    purpose: str
    """Names the stream of the draws."""
    shuffled: bool = True

    @property
    def tied(self) -> bool:
        """Is there an order to shuffle?"""
        return self.shuffled and self.subject.ties is not None


@runtime_checkable
class Responsive(Protocol):
    """A label density that builds contexts itself, together with those of other sequences."""

    def responses(self, variants: Variants, labels: torch.Tensor) -> torch.Tensor:
        """P(label) after the last event: (N, 1, Y')."""


def label_question(contexts: Contexts, labels: torch.Tensor) -> tuple[Contexts, torch.Tensor, torch.Tensor]:
    """What `label_probs` is asked about built contexts: P(label) after the last event."""
    return contexts, labels, torch.tensor([contexts.event_ids.shape[1]])


def build_contexts(parts: Sequence[Variants]) -> list[Contexts]:
    """The contexts of each part, where the laws live. All are built at once, in rectangles of the longest sequence; no
    entry depends on another part or on the padding. Channel values travel with their event, a replaced one has none.
    """
    if not parts:
        return []
    device, lengths = parts[0].subject.cumulated.device, [part.masks.shape[1] for part in parts]
    counts, longest = [len(part.masks) for part in parts], max(lengths)
    at = np.concatenate([[0], np.cumsum(counts)])
    of = send(np.repeat(np.arange(len(parts)), counts), device)  # (all rows,)

    def uniforms(what: str) -> torch.Tensor:
        streams = [Stream(part.subject.seed, part.subject.sequence_id, f"{what} {part.purpose}") for part in parts]
        return stacked_uniforms([(s, 0, count) for s, count in zip(streams, counts, strict=True)], longest, device)

    masks, random = np.zeros((at[-1], longest), bool), uniforms("draw")
    draws = torch.zeros(random.shape, dtype=torch.int64, device=device)
    for k, (part, length) in enumerate(zip(parts, lengths, strict=True)):
        mine, subject = slice(at[k], at[k + 1]), part.subject
        masks[mine, :length] = part.masks
        draws[mine, :length] = draw_from(subject.cumulated, random[mine, :length], subject.law.shape[1])
    observed = send(_padded([part.subject.event_ids for part in parts], longest, 0), device)[of]
    replaced = send(masks, device)
    ids = torch.where(replaced, draws, observed)
    sources = torch.where(replaced, -1, torch.arange(longest, device=device))  # observed position of each event
    if any(part.tied for part in parts):
        groups = send(_padded([_timestamps(part) for part in parts], longest, longest), device)[of]
        random = uniforms("tie")
        ids, sources = shuffle_ties(ids, groups, random), shuffle_ties(sources, groups, random)
    return [
        _contexts(part, ids[at[k] : at[k + 1], :length], sources[at[k] : at[k + 1], :length])
        for k, (part, length) in enumerate(zip(parts, lengths, strict=True))
    ]


def _contexts(part: Variants, ids: torch.Tensor, sources: torch.Tensor) -> Contexts:
    observed = part.subject.sequence
    channels = carried(observed.channels, sources) if observed.channels.shape[1] else observed.channels
    return Contexts(ids, observed.times, channels)


def _timestamps(part: Variants) -> Int64:
    """The number of each position's timestamp; all different where the order is to stay."""
    ties = part.subject.ties if part.shuffled else None
    return np.arange(part.masks.shape[1]) if ties is None else ties


def _padded(rows: Sequence[Int64], longest: int, filling: int) -> Int64:
    padded = np.full((len(rows), longest), filling)
    for k, row in enumerate(rows):
        padded[k, : len(row)] = row
    return padded


def run_stage(
    model: LabelDensity, subject: Subject, labels: Int64, uniforms: Float64, rates: Float64, purpose: str
) -> Stage:
    """Replace each type with its own probability, decided by `uniforms` (N, K), and ask the model."""
    masks = uniforms < rates
    return Stage(masks, rates, respond(model, subject, masks, labels, purpose))
