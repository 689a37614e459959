"""`fused`: one sequence's own evidence together with what the fleet says of each event, as one explicit model.

    log odds(cause here) = log odds(prior here) + log likelihood ratio(own evidence)

The prior comes from `fleet_prior`: what observed labels say in this very sequence (`reading`), and the rate of the pair
in the rest of the fleet, this subject's fold left out. The ratio is from tables fitted to the fleet (`two_groups`).
Where replacing a usual cause changes nothing, or its order does not hold here, "usually a cause" does not become "a
cause here"; where the label came from outside the boundary, own evidence decides. A cause is what is more probably one
than not, as long as the share of non-causes that the fleet expects among events at least as probable (the q-value)
stays within alpha. Inhibitors are those of `intervention`; the prior speaks of causes only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from oscar_causal.data.rules import EventIndex, reasons
from oscar_causal.density.interface import LabelDensity
from oscar_causal.discovery import intervention
from oscar_causal.discovery.boundary import EventEvidence, Verdict
from oscar_causal.discovery.cells import CELLS, NO_WORD, cells_of, grade_of, one_sided, word_of
from oscar_causal.discovery.close_look import CloseLook, close_look
from oscar_causal.discovery.contexts import Bool, Int64, Stream
from oscar_causal.discovery.fleet_prior import FleetPrior, subject_fold
from oscar_causal.discovery.intervention import (
    InterventionConfig,
    LabelEvidence,
    measured_fall,
    shuffled_reference,
)
from oscar_causal.discovery.reading import Read
from oscar_causal.discovery.subject import Subject
from oscar_causal.discovery.two_groups import log_odds, posterior
from oscar_causal.errors import UsageError

CLASSICAL_FLAG = "classical boundary learnt with this subject"
RULE_FLAG = "rule recovered with this subject"
CANDIDATE_SHARE = 0.7
"""Share of the looks that take candidates out alone; the rest is for pairs."""
LEAST = 16
"""Contexts that `intervention` needs."""
EVEN = 0.5
"""A cause is at least as probably one as not."""


@dataclass(frozen=True)
class FusedConfig:
    """Settings of the `fused` estimator."""

    population: str | None = None
    """Population folder that the prior is read from."""
    looks: int = 20
    """Contexts, out of all, for the close look at likely causes."""

    def __post_init__(self) -> None:
        if self.looks < 4:
            raise UsageError(f"looks: expected at least 4, got {self.looks}")


Own = tuple[list[LabelEvidence], int]
"""What `intervention` found for each label, and the contexts it took."""


@dataclass(frozen=True)
class Measured:
    """All measurements of one sequence."""

    labels: list[LabelEvidence]
    look: CloseLook
    contexts: int
    controls: Int64
    """Types among the candidates of the look that nothing speaks for."""


def one_shot(
    model: LabelDensity,
    subject: Subject,
    labels: Int64,
    names: list[str],
    settings: tuple[InterventionConfig, FusedConfig],
    *,
    forbidden: Bool | None = None,
) -> Own:
    """`intervention` with the contexts that the looks leave; of what it accepts by score the fleet judges."""
    config, fused = settings
    if config.contexts - fused.looks < LEAST:
        raise UsageError(f"contexts: fused needs at least {fused.looks + LEAST}, got {config.contexts}")
    smaller = replace(config, contexts=config.contexts - fused.looks)
    return intervention.explain(model, subject, labels, names, smaller, forbidden=forbidden)


def measure(
    model: LabelDensity,
    subject: Subject,
    labels: Int64,
    names: list[str],
    likely: list[list[str]],
    own: Own,
    *,
    looks: int,
    controls: int = 0,
) -> Measured:
    """The close look beside `own` evidence; `likely` are the events the fleet suspects for each label.

    `looks` contexts are spent. `controls`: so many further events that nothing speaks for are looked at, beyond them.
    """
    found, spent = own
    unchanged, again = shuffled_reference(model, subject, labels, np.array([item.observed for item in found]))
    candidates = choose_candidates(subject, names, likely, found, int(CANDIDATE_SHARE * looks))
    suspected = {e.event for item in found for e in item.evidence if e.p_value is not None}.union(*likely)
    others = _controls(subject, names, suspected, controls)
    look = close_look(model, subject, labels, unchanged.mean(0), candidates, looks - again)
    if len(others):
        look = _with_controls(look, close_look(model, subject, labels, unchanged.mean(0), others, len(others)))
    found = [_with_looked_at(item, j, subject, names, look) for j, item in enumerate(found)]
    return Measured(found, look, spent + again + look.contexts, others)


def _with_looked_at(item: LabelEvidence, j: int, subject: Subject, names: list[str], look: CloseLook) -> LabelEvidence:
    """The evidence with a row for every event that was looked at and not tested: its effect is the fall alone."""
    known = {part.event for part in item.evidence}
    more = [
        EventEvidence(
            names[int(t)],
            tuple(np.flatnonzero(subject.owner == t).tolist()),
            "not resolvable",
            float(look.alone[k, j]),
            n_kept=1,
            n_replaced=1,
        )
        for k, t in enumerate(look.candidates)
        if names[int(t)] not in known
    ]
    return replace(item, evidence=(*item.evidence, *more))


def choose_candidates(
    subject: Subject, names: list[str], likely: list[list[str]], found: list[LabelEvidence], most: int
) -> Int64:
    """Types to look at: for each label in turn two of the fleet's suspects, then one finalist of the one-shot test."""
    index = {name: t for t, name in enumerate(names) if subject.testable[t]}
    queues = []
    for suspects, item in zip(likely, found, strict=True):
        tested = [e for e in item.evidence if e.p_value is not None and e.event not in suspects]
        finalists = [index[e.event] for e in sorted(tested, key=lambda e: (e.p_value, -(e.score or 0.0), e.event))]
        queues.append(_two_to_one([index[event] for event in suspects if event in index], finalists))
    chosen: dict[int, None] = {}
    for rank in range(max((len(queue) for queue in queues), default=0)):
        chosen.update(dict.fromkeys(queue[rank] for queue in queues if rank < len(queue)))
    return np.array(list(chosen)[:most], np.int64)


def _controls(subject: Subject, names: list[str], suspected: set[str], count: int) -> Int64:
    """Types drawn among those that nothing points at."""
    free = subject.testable & np.array([name not in suspected for name in names])
    luck = Stream(subject.seed, subject.sequence_id, "controls").uniforms(1, len(names))[0]
    order = np.argsort(np.where(free, luck, 2.0), kind="stable")
    return order[: min(count, int(free.sum()))].astype(np.int64)


def _with_controls(look: CloseLook, controls: CloseLook) -> CloseLook:
    return CloseLook(
        np.concatenate([look.candidates, controls.candidates]),
        np.concatenate([look.alone, controls.alone]),
        np.concatenate([look.responses, controls.responses]),
        look.contexts + controls.contexts,
    )


def _two_to_one(first: list[int], second: list[int]) -> list[int]:
    """Two of the first, one of the second, and so on until both are used up."""
    merged: list[int] = []
    while first or second:
        merged += [*first[:2], *second[:1]]
        first, second = first[2:], second[1:]
    return merged


def measured_cells(measured: Measured, j: int, names: list[str]) -> dict[str, int]:
    """The cell of every event that was looked at or tested for label number j."""
    item, look = measured.labels[j], measured.look
    place = {names[int(t)]: k for k, t in enumerate(look.candidates)}
    known = [e for e in item.evidence if e.p_value is not None or e.event in place]
    p_value = np.array([np.nan if e.p_value is None else e.p_value for e in known])
    response = np.array([look.responses[place[e.event], j] if e.event in place else np.nan for e in known])
    effect = np.array([e.effect for e in known])
    grade = [grade_of(e.p_value, e.share, measured_fall(item.observed, e.effect, e.alone, e.jointly)) for e in known]
    cells = cells_of(
        np.full(len(known), item.observed), one_sided(p_value, effect), response, np.array(grade, np.int64)
    )
    return {e.event: int(cell) for e, cell in zip(known, cells, strict=True)}


def with_words(cells: dict[str, int], read: Read | None) -> dict[str, int]:
    """The cells with what observed labels say of each event."""
    words = {e: NO_WORD if read is None else word_of(read.acted.get(e, 0.0), read.outside) for e in cells}
    return {event: cell + CELLS * words[event] for event, cell in cells.items()}


def explain(
    model: LabelDensity,
    subject: Subject,
    labels: Int64,
    names: list[str],
    fleet: tuple[FleetPrior, str],
    settings: tuple[InterventionConfig, FusedConfig],
    *,
    own: Own | None = None,
    forbidden: Bool | None = None,
) -> Own:
    """Evidence for each label, and the number of contexts spent; the counterpart of `intervention.explain`.

    `fleet`: the prior, and the subject of this sequence. `own`: what `one_shot` has found already.
    """
    prior, subject_id = fleet
    fold, label_names = subject_fold(subject_id), [model.vocabulary.labels[int(label)] for label in labels]
    present, index = [name for t, name in enumerate(names) if subject.testable[t]], event_index(subject, names)
    reads = [prior.read(label, index, fold) for label in label_names]
    likely = [prior.candidates(label, present, fold, read) for label, read in zip(label_names, reads, strict=True)]
    own = own or one_shot(model, subject, labels, names, settings, forbidden=forbidden)
    measured = measure(model, subject, labels, names, likely, own, looks=settings[1].looks)
    flags = (CLASSICAL_FLAG,) if prior.classical_saw(subject_id) else ()
    found = []
    for j, (label, read) in enumerate(zip(label_names, reads, strict=True)):
        judge = _Judge(prior, label, fold, read, measured_cells(measured, j, names), settings[0].alpha)
        evidence = judge.fuse(measured, j, names, rule_causes(prior, label, index))
        item = measured.labels[j]
        of_rule = (RULE_FLAG,) if prior.rule_saw(label, subject_id) else ()
        unseen = never_without(prior, label, evidence, present)
        found.append(replace(item, evidence=evidence, flags=(*item.flags, *flags, *of_rule, *unseen)))
    return found, measured.contexts


def never_without(
    prior: FleetPrior, label: str, evidence: tuple[EventEvidence, ...], present: list[str]
) -> tuple[str, ...]:
    """Flags for accepted events without which the fleet has never seen another event that is here."""
    known, here, flags = prior.never_without.get(label, {}), set(present), []
    for item in evidence:
        others = [other for other in known.get(item.event, ()) if item.accepted and other in here]
        if others:
            flags.append(f"never seen without {item.event}: {', '.join(others)}; the data cannot tell them apart")
    return tuple(flags)


def event_index(subject: Subject, names: list[str]) -> EventIndex:
    """This one sequence, for rules to be evaluated in."""
    ids = {name: int(t) for name, t in zip(names, subject.types, strict=True)}
    times = subject.sequence.times.cpu().numpy()
    return EventIndex(np.array([0, len(subject.event_ids)]), subject.event_ids, times, ids)


def rule_causes(prior: FleetPrior, label: str, index: EventIndex) -> frozenset[str] | None:
    """The events that the label's recovered rule makes causes in this sequence; None = there is no rule."""
    rule = (prior.rules or {}).get(label)
    if rule is None:
        return None
    return frozenset(reason.event for reason in reasons(rule, index, [0])[0] if reason.role == "cause")


@dataclass(frozen=True)
class _Judge:
    """Turns measurements and prior of one label into verdicts."""

    prior: FleetPrior
    label: str
    fold: int
    read: Read | None
    cells: dict[str, int]
    alpha: float

    def fuse(
        self, measured: Measured, j: int, names: list[str], by_rule: frozenset[str] | None
    ) -> tuple[EventEvidence, ...]:
        """Fused evidence for every type of the sequence that may be replaced."""
        events = list(self.cells)
        ratios = self.prior.ratios(self.label, events, list(self.cells.values()), self.fold)
        posteriors = posterior(log_odds(np.array([self._prior(event) for event in events])), ratios)
        q_values = self.prior.q_values(posteriors, self.fold)
        place = {names[int(t)]: k for k, t in enumerate(measured.look.candidates)}
        fused = []
        for item in measured.labels[j].evidence:
            if item.event not in self.cells:
                fused.append(self._sources(item, by_rule))
                continue
            k = events.index(item.event)
            seen = place.get(item.event)
            fused.append(
                replace(
                    self._sources(item, by_rule),
                    verdict=self._verdict(item, float(posteriors[k]), float(q_values[k])),
                    q_value=float(q_values[k]),
                    accepted_by=None,
                    posterior=float(posteriors[k]),
                    log_ratio=float(ratios[k]),
                    response=None if seen is None else float(measured.look.responses[seen, j]),
                    alone=item.alone if seen is None else float(measured.look.alone[seen, j]),
                )
            )
        return tuple(fused)

    def _sources(self, item: EventEvidence, by_rule: frozenset[str] | None) -> EventEvidence:
        return replace(
            item,
            prior=self._prior(item.event),
            fleet_sequences=self.prior.sequences(self.label, item.event),
            classical=self.prior.is_member(self.label, item.event),
            rule=None if by_rule is None else item.event in by_rule,
        )

    def _prior(self, event: str) -> float:
        return self.prior.prior_here(self.label, event, self.fold, self.read)

    def _verdict(self, item: EventEvidence, chance: float, q: float) -> Verdict:
        if item.verdict == "inhibitor":
            return "inhibitor"
        if chance >= EVEN and q <= self.alpha:
            return "cause"
        return "not resolvable" if item.verdict == "cause" else item.verdict
