"""The rule behind each label, as far as model and data show it.

Candidates come from boundaries, completed by what the model needs. At most 8: a truth table (`rules.truth_table`);
more: sufficient sets found by steps (`rules.stepwise`). Blockers are looked for where the rule holds without the label
(`rules.removals`). Where presence does not explain the label: order, windows and counts (`rules.order_and_count`).
Where the features of a boundary explain the observed labels better than what the model has learnt: their rule
(`rules.boundary_rule`). What is proposed was chosen on one part of the sequences and is judged on another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from oscar_causal.data.sequences import Dataset
from oscar_causal.data.subjects import held_out as held_out_subjects
from oscar_causal.discovery.reading import NONE as NO_FEATURES
from oscar_causal.discovery.reading import Features
from oscar_causal.errors import UsageError
from oscar_causal.graph.rules.expert import Comparison, compare_with_expert
from oscar_causal.graph.rules.finding import Candidates, find
from oscar_causal.graph.rules.judging import Judge
from oscar_causal.graph.rules.laboratory import Laboratory
from oscar_causal.graph.rules.mining import Mined
from oscar_causal.graph.rules.proposal import RuleProposal, calibration
from oscar_causal.graph.rules.settings import RuleRecoveryConfig
from oscar_causal.graph.rules.truth_table import MOST_CANDIDATES

__all__ = [
    "Comparison",
    "Mined",
    "RuleProposal",
    "RuleRecoveryConfig",
    "calibration",
    "compare_with_expert",
    "recover_rules",
]

TOGETHER = 16
"""Labels whose truth tables are asked for in one batch."""
OnProgress = Callable[[int, int], None]


def recover_rules(
    model: Any,
    dataset: Dataset,
    boundaries: Mapping[str, Sequence[str]],
    config: RuleRecoveryConfig | None = None,
    *,
    held_out: Dataset | None = None,
    features: Mapping[str, Features] | None = None,
    on_progress: OnProgress | None = None,
) -> list[RuleProposal]:
    """One proposal per label of `boundaries`, in its order.

    `model` has both protocols of `density.interface`, or is a `ModelSet`: then each sequence, background or held out,
    is put to the fold that has not seen its subject. `boundaries` gives the candidate events of each label, blockers
    may be among them. Labelled sequences of `dataset` are mined; fidelity is measured on `held_out`, or on a share of
    the subjects of `dataset` that is kept back. Whether a plain model saw those is for the caller to arrange.
    `features`: boundaries with orders and counts, whose rule is proposed where it agrees better with observed labels.
    """
    config = config or RuleRecoveryConfig()
    mining, judging = _split(dataset, held_out, config)
    lab = Laboratory(model, mining, config)
    judge = Judge(lab, judging)
    labels = list(boundaries)
    proposals: list[RuleProposal] = []
    for begin in range(0, len(labels), TOGETHER):
        part = [Candidates.of(lab, label, boundaries[label]) for label in labels[begin : begin + TOGETHER]]
        small = {c.label: c.known for c in part if c.judged and len(c.known) <= MOST_CANDIDATES}
        tables = lab.tables({label: names for label, names in small.items() if lab.fits(len(names))})
        for candidates in part:
            if candidates.judged:
                known = (features or {}).get(candidates.label, NO_FEATURES)
                proposals.append(judge.propose(*find(lab, candidates, tables.get(candidates.label), known)))
            else:
                proposals.append(judge.propose(candidates, None))
            if on_progress is not None:
                on_progress(len(proposals), len(labels))
    return proposals


def _split(dataset: Dataset, held_out: Dataset | None, config: RuleRecoveryConfig) -> tuple[Dataset, Dataset]:
    """Labelled sequences to mine and to judge on."""
    labelled = dataset.take(dataset.labelled)
    if not len(labelled):
        raise UsageError(f"rule recovery: expected labelled sequences, got {len(dataset)} without labels")
    if held_out is not None:
        return labelled, held_out.take(held_out.labelled)
    back = held_out_subjects(labelled.subject_ids, config.held_out, seed=config.seed)
    if back.all() or not back.any():
        raise UsageError(f"rule recovery: expected more subjects, to keep some back, got {len(labelled)} sequences")
    return labelled.take(~back), labelled.take(back)
