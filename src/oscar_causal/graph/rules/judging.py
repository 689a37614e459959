"""From a finding to a proposal: support in the mined data, fidelity on held-out sequences, doubts, confidence."""

from __future__ import annotations

import math

import numpy as np

from oscar_causal.data.rules import Rule, evaluate, event_names, format_rule, negated_names, positive_names
from oscar_causal.data.rules.tree import Atom, atom_names
from oscar_causal.data.sequences import Dataset
from oscar_causal.discovery.contexts import Bool, Float64
from oscar_causal.graph.rules.dates import one_after_the_other
from oscar_causal.graph.rules.finding import Candidates, Finding
from oscar_causal.graph.rules.laboratory import Laboratory, encode_for
from oscar_causal.graph.rules.mining import EXAMPLES, Mined, agreement, pivotal
from oscar_causal.graph.rules.proposal import NONE, CandidateRole, Fidelity, Role, RuleProposal, Share
from oscar_causal.graph.rules.twins import find_twins

ROLES: dict[tuple[bool, bool], Role] = {
    (True, True): "both",
    (True, False): "cause",
    (False, True): "blocker",
    (False, False): "none",
}
EVEN, SLOPE = 0.8, 20.0
"""Where a rule is right as often as wrong, how fast that changes; set by hand on small fleets with known rules."""
Pivots = dict[Atom, tuple[int, int]]
"""Part of a rule -> mined sequences where it held and decided, where it failed and decided."""


class Judge:
    """Judges findings of a laboratory on held-out sequences."""

    def __init__(self, lab: Laboratory, held_out: Dataset) -> None:
        self.lab, self.held_out = lab, Mined(held_out)
        self._encoded = encode_for(lab.model, held_out)
        self._probs: dict[int, Float64] = {}

    def propose(self, candidates: Candidates, finding: Finding | None) -> RuleProposal:
        """The proposal for one label."""
        label, positives = candidates.label, candidates.positives
        if not candidates.enough:
            reason = f"{positives} sequences with the label, {self.lab.config.least_positives} needed"
            return RuleProposal(label, "too few positives", None, 0.0, positives, "none", (reason,))
        if finding is None:
            return RuleProposal(label, NONE, None, 0.0, positives, "none", ("no candidate events",))
        if finding.rule is None:
            roles = self._roles(candidates, finding, {})
            return RuleProposal(label, NONE, None, 0.0, positives, finding.method, (finding.reason,), roles=roles)
        return self._judged(candidates, finding, finding.rule)

    def _judged(self, candidates: Candidates, finding: Finding, rule: Rule) -> RuleProposal:
        label = candidates.label
        found = pivotal(rule, self.lab.mined.index)
        pivots = {atom: (int(held.sum()), int(failed.sum())) for atom, (held, failed) in found.items()}
        twins = find_twins(rule, label, self.lab.mined, lambda *pair: self.lab.preference(label, rule, *pair))
        came = self.lab.mined.with_label(label)
        changed = one_after_the_other({atom: held & came for atom, (held, _) in found.items()}, self.lab.mined.dataset)
        doubts = [*self._unsupported(candidates, pivots), *self._unexplained(rule, label)]
        reasons = [*doubts, *changed, *(twin.sentence() for twin in twins)]
        confidence = 0.0 if changed else self._confidence(finding, rule, label, pivots) / (1 + len(twins))
        holds, has = evaluate(rule, self.held_out.index), self.held_out.with_label(label)
        return RuleProposal(
            label=label,
            status=NONE if reasons else "proposed",
            rule=format_rule(rule),
            confidence=confidence,
            positives=candidates.positives,
            method=finding.method,
            reasons=tuple(reasons),
            fidelity=self.fidelity(rule, label),
            rule_without_label=self.held_out.ids(holds & ~has)[:EXAMPLES],
            label_without_rule=self.held_out.ids(has & ~holds)[:EXAMPLES],
            roles=self._roles(candidates, finding, pivots),
            cells=finding.table.cells(finding.table.holds) if finding.table else (),
            twins=tuple(twins),
        )

    def fidelity(self, rule: Rule, label: str) -> Fidelity:
        """How a rule fares on the held-out sequences."""
        holds, has = evaluate(rule, self.held_out.index), self.held_out.with_label(label)
        asked = self._contested(rule, holds | has)
        agrees = [(self._predict(i, label) > 0.5) == bool(holds[i]) for i in asked]
        both = int((holds & has).sum())
        return Fidelity(
            agreement=Share(int((holds == has).sum()), len(holds)),
            precision=Share(both, int(holds.sum())),
            recall=Share(both, int(has.sum())),
            model=Share(sum(agrees), len(agrees)),
        )

    def _contested(self, rule: Rule, either: Bool) -> list[int]:
        """Sequences to ask the model about: half where rule or label holds, half others with an event of the rule."""
        rng, most = np.random.default_rng([self.lab.config.seed, 0xF1DE]), self.lab.config.judged
        touched = np.zeros(len(either), bool)
        for name in event_names(rule):
            touched[self.held_out.index.sequence_of[self.held_out.index.rows_of(name)]] = True
        inside, others = rng.permutation(np.flatnonzero(either)), rng.permutation(np.flatnonzero(touched & ~either))
        some = others[: most // 2].tolist()
        return [*inside[: most - len(some)].tolist(), *some]

    def _unsupported(self, candidates: Candidates, pivots: Pivots) -> list[str]:
        least = self.lab.config.least_support
        doubts = [f"the model does not know {name!r}" for name in candidates.unknown]
        for atom, (held, failed) in pivots.items():
            if held < least:
                doubts.append(f"no sequence shows {format_rule(atom)} where it alone decides")
            if failed < least:
                doubts.append(f"no sequence lacks {format_rule(atom)} alone")
        return doubts

    def _unexplained(self, rule: Rule, label: str) -> list[str]:
        holds, has = evaluate(rule, self.lab.mined.index), self.lab.mined.with_label(label)
        both, least = int((holds & has).sum()), self.lab.config.explained
        precision, recall = Share(both, int(holds.sum())), Share(both, int(has.sum()))
        doubts = []
        if precision.interval[1] < least:
            doubts.append(f"the label comes in only {both} of {precision.of} sequences where the rule holds")
        if recall.interval[1] < least:
            doubts.append(f"the rule holds in only {both} of {recall.of} sequences with the label")
        return doubts

    def _roles(self, candidates: Candidates, finding: Finding, pivots: Pivots) -> tuple[CandidateRole, ...]:
        """Every candidate, those that recovery added included."""
        rule, table = finding.rule, finding.table
        effects = dict(zip(table.candidates, table.effects().tolist(), strict=True)) if table else {}
        raises = positive_names(rule) if rule is not None else ()
        prevents = negated_names(rule) if rule is not None else ()
        roles = []
        for name in dict.fromkeys([*candidates.known, *raises, *prevents]):
            counts = [pair for atom, pair in pivots.items() if name in atom_names(atom)]
            sums = (sum(held for held, _ in counts), sum(failed for _, failed in counts))
            roles.append(CandidateRole(name, ROLES[name in raises, name in prevents], effects.get(name), *sums))
        return tuple(roles)

    def _predict(self, index: int, label: str) -> float:
        if index not in self._probs:
            subject_id = self.held_out.dataset.subject_ids[index].as_py()
            self._probs[index] = self.lab.predict(self._encoded, index, subject_id)
        return float(self._probs[index][self.lab.label_id(label)])

    def _confidence(self, finding: Finding, rule: Rule, label: str, pivots: Pivots) -> float:
        """Steadiness x F1 on the mined sequences x support of the weakest part, through a logistic curve."""
        least = min(min(pair) for pair in pivots.values())
        evidence = finding.stability * agreement(rule, label, self.lab.mined) * least / (least + 1)
        return 1 / (1 + math.exp(-SLOPE * (evidence - EVEN)))
