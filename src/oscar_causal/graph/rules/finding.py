"""From candidates to a rule: presence first, then blockers, then order and count, then what is still unexplained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from oscar_causal.data.rules import Event, Not, Rule, all_of, any_of, evaluate, event_names, shortest
from oscar_causal.data.rules.tree import atoms
from oscar_causal.discovery.contexts import Bool, Float64, Int64
from oscar_causal.discovery.reading import NONE as NO_FEATURES
from oscar_causal.discovery.reading import Features
from oscar_causal.graph.rules import stepwise
from oscar_causal.graph.rules.boundary_rule import boundary_rule
from oscar_causal.graph.rules.laboratory import Laboratory
from oscar_causal.graph.rules.mining import Mined, agreement
from oscar_causal.graph.rules.observed import observed_rule
from oscar_causal.graph.rules.proposal import Method
from oscar_causal.graph.rules.truth_table import MOST_CANDIDATES, TruthTable

GOOD = 0.9
"""Presence rules that agree with the observed labels less well than this F1 are tried with order and count."""
MOST_OBSERVED = 12
"""Candidates among which routes are searched for in the observations alone."""
FINE = 0.95
"""The same where insertions of the same events disagree."""
UNEXPLAINED = 0.01
"""A second look is taken when the rule holds in none of this share of the sequences with the label (two at least)."""


@dataclass(frozen=True)
class Candidates:
    """One label's candidates before any table is asked for."""

    label: str
    known: tuple[str, ...]
    """Those the model knows: the given ones, and those it needs itself."""
    unknown: tuple[str, ...]
    positives: int
    enough: bool

    @classmethod
    def of(cls, lab: Laboratory, label: str, events: Sequence[str]) -> Candidates:
        """The given events, completed by what the model needs in sequences with the label."""
        lab.label_id(label)
        vocabulary = lab.model.vocabulary.event_ids
        positives = int(lab.mined.with_label(label).sum())
        enough = positives >= lab.config.least_positives
        given = tuple(name for name in dict.fromkeys(events) if name in vocabulary)
        known = lab.candidates(label, given) if enough else given
        return cls(label, known, tuple(name for name in events if name not in vocabulary), positives, enough)

    @property
    def judged(self) -> bool:
        """Whether the model is asked at all."""
        return self.enough and bool(self.known)


@dataclass(frozen=True)
class Finding:
    """A rule (or none), how it was found, and how steady it was when the evidence was drawn again."""

    rule: Rule | None
    method: Method
    stability: float
    table: TruthTable | None = None
    reason: str = "no candidates together bring the label"
    """Why there is no rule, where there is none."""


def find(
    lab: Laboratory, candidates: Candidates, table: TruthTable | None, features: Features = NO_FEATURES
) -> tuple[Candidates, Finding]:
    """The rule of a label, and the candidates it was chosen among in the end.

    `features`: those of the label's boundary, where they are known.
    """
    return _by_boundary(lab, features, *_of_the_model(lab, candidates, table))


def _by_boundary(
    lab: Laboratory, features: Features, candidates: Candidates, finding: Finding
) -> tuple[Candidates, Finding]:
    """What the observed labels say of the features of a boundary.

    A rule of presence must agree with them clearly better than the model's own; one with orders and counts, of which
    the model's word is a matter of arrangements, no worse.
    """
    rule, label = boundary_rule(lab.mined, candidates.label, features), candidates.label
    if rule is None or any(name not in lab.model.vocabulary.event_ids for name in event_names(rule)):
        return candidates, finding
    other = Finding(rule, "observations", 1.0)
    presence = all(isinstance(atom, Event) for atom, _ in atoms(rule))
    if not (_better(lab, label, other, finding) if presence else not _better(lab, label, finding, other)):
        return candidates, finding
    wider = replace(candidates, known=tuple(dict.fromkeys([*candidates.known, *event_names(rule)])))
    return wider, _with_blockers(lab, wider, other)


def _of_the_model(lab: Laboratory, candidates: Candidates, table: TruthTable | None) -> tuple[Candidates, Finding]:
    if not lab.fits(len(candidates.known)):
        reason = f"{len(candidates.known)} candidates fit into too few sequences"
        return candidates, Finding(None, "none", 0.0, reason=reason)
    label, finding = candidates.label, _explain(lab, candidates, table)
    poor, left = _fit(lab, label, finding) < GOOD, _unexplained(lab, candidates, finding)
    if not poor and not len(left):
        return candidates, finding
    among = left if len(left) else np.flatnonzero(lab.mined.with_label(label))
    wider = replace(candidates, known=lab.candidates(label, candidates.known, among=among, once=poor))
    nothing_new = wider.known == candidates.known and finding.method != "patterns"
    if nothing_new or not lab.fits(len(wider.known)):
        return candidates, _by_observation(lab, candidates, finding)
    again = _explain(lab, wider, None, among=among)
    if _better(lab, label, again, finding):
        candidates, finding = wider, again
    return candidates, _by_observation(lab, candidates, finding)


def _by_observation(lab: Laboratory, candidates: Candidates, finding: Finding) -> Finding:
    """Where the model leaves much unexplained: what the labels themselves say of order and count."""
    label = candidates.label
    if _fit(lab, label, finding) >= GOOD or not 2 <= len(candidates.known) <= MOST_OBSERVED:
        return finding
    other = Finding(observed_rule(lab.mined, label, candidates.known), "observations", 1.0)
    other = _with_blockers(lab, candidates, other)
    return other if _fit(lab, label, other) > _fit(lab, label, finding) + 0.02 else finding


def _explain(
    lab: Laboratory, candidates: Candidates, table: TruthTable | None, *, among: Int64 | None = None
) -> Finding:
    """Presence and blockers; order and count where these do not explain the label."""
    label, names = candidates.label, candidates.known
    if table is None and len(names) <= MOST_CANDIDATES:
        table = lab.tables({label: names})[label]
    finding = _from_table(lab, table) if table is not None else _by_steps(lab, candidates)
    finding = _with_blockers(lab, candidates, finding)
    if _fit(lab, label, finding) >= (FINE if finding.table is not None and finding.table.mixed() else GOOD):
        return finding
    other = _with_blockers(lab, candidates, _by_patterns(lab, candidates, among))
    return other if _better(lab, label, other, finding) else finding


def _fit(lab: Laboratory, label: str, finding: Finding) -> float:
    """F1 of the finding against the mined labels; 0 without a rule."""
    return agreement(finding.rule, label, lab.mined) if finding.rule is not None else 0.0


def _better(lab: Laboratory, label: str, new: Finding, old: Finding) -> bool:
    """Whether a new finding agrees clearly better with the mined labels."""
    return _fit(lab, label, new) > _fit(lab, label, old) + 0.005


def _unexplained(lab: Laboratory, candidates: Candidates, finding: Finding) -> Int64:
    """Mined sequences with the label in which the rule does not hold, where they are more than stray ones."""
    has = lab.mined.with_label(candidates.label)
    left = np.flatnonzero(has if finding.rule is None else has & ~evaluate(finding.rule, lab.mined.index))
    return left if len(left) >= max(2, UNEXPLAINED * has.sum()) else left[:0]


def _from_table(lab: Laboratory, table: TruthTable) -> Finding:
    table = table.reduced()
    steady = table.stability(np.random.default_rng([lab.config.seed, 0x57AB]))
    return Finding(table.rule(), "truth table", steady, table)


def _by_steps(lab: Laboratory, candidates: Candidates) -> Finding:
    raising = tuple(name for name in candidates.known if _raises(lab.mined, candidates.label, name))

    def respond(chosen: Bool) -> Float64:
        return lab.insertion_means(candidates.label, raising, chosen)

    if not raising:
        return Finding(None, "stepwise", 0.0)
    found = stepwise.search(raising, respond, np.random.default_rng([lab.config.seed, 0x57E9]))
    return Finding(found.rule, "stepwise", found.agreement)


def _raises(mined: Mined, label: str, event: str) -> bool:
    """Whether the label is more frequent with the event than without."""
    has, present = mined.with_label(label), mined.patterns([event]) > 0
    return bool(present.any() and has[present].mean() > has[~present].mean()) if not present.all() else True


def _by_patterns(lab: Laboratory, candidates: Candidates, among: Int64 | None) -> Finding:
    routes, explained = lab.routes(candidates.label, candidates.known, among)
    if not routes:
        return Finding(None, "patterns", 0.0)
    rule = shortest(any_of(route.rule for route in routes))
    return Finding(rule, "patterns", explained * min(route.accuracy for route in routes))


def _with_blockers(lab: Laboratory, candidates: Candidates, finding: Finding) -> Finding:
    """The finding with blockers that the model shows; where there is a table, decided by a table that includes them."""
    if finding.rule is None:
        return finding
    label, rule = candidates.label, finding.rule
    found = lab.blockers(label, rule)
    if not found:
        return finding
    names = (*event_names(rule), *found)
    if finding.table is not None and len(names) <= MOST_CANDIDATES:
        return _from_table(lab, lab.tables({label: names}, "blockers")[label])
    blocked = replace(finding, rule=all_of([rule, *(Not(Event(name)) for name in found)]), table=None)
    return blocked if _better(lab, label, blocked, finding) else finding
