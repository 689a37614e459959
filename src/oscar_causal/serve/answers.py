"""What clients get. Figures are fractions; `null` = the estimator does not define it."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from oscar_causal.density.folds import ModelSet
from oscar_causal.discovery.boundary import Boundary, EventEvidence, RankedBy
from oscar_causal.discovery.oneshot import ESTIMATORS
from oscar_causal.serve.payloads import Sequence, Settings
from oscar_causal.serve.prepared import Prepared


class Answer(BaseModel):
    """Never changed after it was made."""

    model_config = ConfigDict(frozen=True)


class Refusal(Answer):
    """One clear line."""

    error: str


class LabelBoundary(Answer):
    """One explained label."""

    label: str
    observed: bool | None
    probability: float | None
    trusted: bool | None
    trust_reason: str | None
    """Why the label is not to be trusted."""
    seen_in_training: bool | None
    contexts: int
    flags: list[str]
    observed_logp: float | None
    contexts_logp: float | None
    ranked_by: RankedBy | None
    """What chose the events to test."""
    causes: list[EventEvidence]
    """The accepted events, strongest first."""
    evidence: list[EventEvidence] | None
    """Every tested event, when asked for."""


class Explanation(Answer):
    """One explained sequence."""

    sequence_id: str
    estimand: str
    settings: Settings
    boundaries: list[LabelBoundary]
    notes: list[str]


class JobStatus(Answer):
    """How a batch job stands."""

    job_id: str
    state: Literal["waiting", "running", "done", "cancelled", "failed"]
    sequences_done: int
    sequences: int
    contexts_done: int
    contexts: int
    """Most contexts the whole job may take."""
    error: str | None


class JobAnswer(JobStatus):
    """How a job stands, and some of what it found."""

    explanations: list[Explanation]


class Prediction(Answer):
    """Probabilities of all labels."""

    sequence_id: str
    labels: list[str]
    after: list[int]
    """Number of events after which each row of `probabilities` holds, counted from the first event sent."""
    probabilities: list[list[float]]
    min_context: int
    """After fewer events than this a probability means little."""
    seen_in_training: bool
    flags: list[str]
    names: dict[str, str]
    """Descriptions of the events, as far as there are any."""


class Change(Answer):
    """What became of one label."""

    label: str
    before: float
    after: float
    trusted: bool


class BoundaryChange(Answer):
    """The same labels explained before and after."""

    before: list[LabelBoundary]
    after: list[LabelBoundary]


class WhatIf(Answer):
    """The edited sequence and what it does to the labels."""

    sequence: Sequence
    changes: list[Change]
    """All labels, in the model's order."""
    sentences: list[str]
    """The largest changes in plain words."""
    flags: list[str]
    boundary: BoundaryChange | None


class LabelInfo(Answer):
    """How well a label can be judged (`quality.json`)."""

    label: str
    description: str | None
    trusted: bool
    reason: str | None
    f1: float | None
    positives: int | None


class ModelInfo(Answer):
    """The model behind the service."""

    version: str
    digest: str
    folds: int
    """1 = a plain model."""
    events: int
    labels: list[LabelInfo]
    channels: list[str]
    max_length: int
    min_context: int
    estimand: str
    dataset: bool
    """Are there sequences to pick from?"""
    most_contexts: int
    most_events: int


class Health(Answer):
    """Alive, and how much waits."""

    status: Literal["ok"]
    waiting: int


class EventName(Answer):
    """An event type the model knows."""

    event: str
    description: str | None


class EventNames(Answer):
    """Event types that match a search."""

    total: int
    events: list[EventName]


class SequenceRow(Answer):
    """One sequence of the dataset, in a list."""

    sequence_id: str
    subject_id: str
    events: int
    labels: list[str] | None
    seen_in_training: bool


class SequenceList(Answer):
    """Sequences that match a search."""

    total: int
    sequences: list[SequenceRow]


def boundary_of(models: ModelSet, item: Boundary, *, evidence: bool) -> LabelBoundary:
    """A boundary of the library as an answer."""
    return LabelBoundary(
        label=item.label,
        observed=item.observed,
        probability=item.probability,
        trusted=item.trusted,
        trust_reason=None if item.trusted else trust_reason(models, item.label),
        seen_in_training=item.seen_in_training,
        contexts=item.contexts,
        flags=list(item.flags),
        observed_logp=item.observed_logp,
        contexts_logp=item.contexts_logp,
        ranked_by=item.ranked_by,
        causes=list(item.causes),
        evidence=list(item.evidence) if evidence else None,
    )


def explanation_of(
    models: ModelSet, prepared: Prepared, found: list[Boundary], settings: Settings, *, evidence: bool
) -> Explanation:
    """All boundaries of a sequence as an answer."""
    unknown = [name for name in prepared.sequence.labels or () if name not in models.vocabulary.label_ids]
    notes = [f"the model does not know the label {name!r}" for name in unknown]
    if not found:
        notes.append("no label to explain: none is recorded that the model knows, or none has P > 0.5")
    return Explanation(
        sequence_id=prepared.sequence.sequence_id,
        estimand=ESTIMATORS["intervention"],
        settings=settings,
        boundaries=[boundary_of(models, item, evidence=evidence) for item in found],
        notes=notes,
    )


def trust_reason(models: ModelSet, label: str) -> str | None:
    """Why `quality.json` of the model, or of the first fold that says so, does not trust a label."""
    rows = [model.info.get("quality", {}).get("per_label", {}).get(label) for model in models.models]
    if all(row is None for row in rows):
        return "never checked"
    return next((row["reason"] for row in rows if row and not row["trusted"] and row.get("reason")), None)
