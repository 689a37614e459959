"""What clients send. Strict: an unknown field, a wrong type or a size over the limit is refused before any work."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from oscar_causal.data.schema import MAX_SECONDS
from oscar_causal.serve import limits

Name = Annotated[str, Field(min_length=1, max_length=limits.NAME_CHARS)]
Position = Annotated[int, Field(ge=0, le=limits.EVENTS)]
Seconds = Annotated[float, Field(ge=0, le=MAX_SECONDS, allow_inf_nan=False)]
Value = Annotated[float, Field(ge=-limits.CHANNEL_VALUE, le=limits.CHANNEL_VALUE, allow_inf_nan=False)]


class Payload(BaseModel):
    """Nothing is converted, nothing unknown is let through."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Sequence(Payload):
    """Events in time order, with what else is known of them."""

    sequence_id: Name = "sequence"
    """Together with the seed it decides masks and draws."""
    subject_id: Name | None = None
    """The car, the patient; by default the sequence itself. Says which fold judges it."""
    events: Annotated[list[Name], Field(min_length=1, max_length=limits.EVENTS)]
    times: Annotated[list[Seconds], Field(max_length=limits.EVENTS)] | None = None
    """Seconds from the start, never falling; by default 0, 1, 2, ..."""
    channels: Annotated[dict[Name, list[Value | None]], Field(max_length=64)] = {}
    """Numeric channels the model reads (`mileage`), one value per event, null = missing."""
    labels: Annotated[list[Name], Field(max_length=limits.LABELS)] | None = None
    """Recorded labels; null = not known."""


class Settings(Payload):
    """How to explain. The defaults are those of `oscar explain`."""

    labels: Literal["observed", "predicted"] | Annotated[list[Name], Field(max_length=limits.LABELS)] | None = None
    """What to explain: recorded labels, those with P > 0.5, or these; null = recorded ones, else predicted ones."""
    contexts: Annotated[int, Field(ge=16, le=limits.CONTEXTS)] = 128
    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.05
    delta: Annotated[float, Field(ge=0, lt=1)] = 0.05
    tested_only: bool = False
    """Accept what a test has shown, nothing by its score."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0


class ExplainRequest(Payload):
    """One sequence to explain."""

    sequence: Sequence
    settings: Settings = Settings()
    evidence: bool = False
    """Send what was measured about every tested event, not only the accepted ones."""


class BatchRequest(Payload):
    """Sequences to explain one after the other, as a job."""

    sequences: Annotated[list[Sequence], Field(min_length=1, max_length=limits.BATCH_SEQUENCES)]
    settings: Settings = Settings()
    evidence: bool = False
    """As in `/explain`; for a few sequences only."""


class PredictRequest(Payload):
    """A sequence whose labels are to be predicted."""

    sequence: Sequence
    after: Literal["end", "each event"] = "end"
    """Probabilities at the end of the sequence, or after each of its events."""


class Remove(Payload):
    """Take events out; the others keep their times."""

    op: Literal["remove"]
    positions: Annotated[list[Position], Field(min_length=1, max_length=limits.EVENTS)]


class Insert(Payload):
    """Put an event before `position` (the length of the sequence = at the end)."""

    op: Literal["insert"]
    position: Position
    event: Name
    time: Seconds | None = None
    """By default halfway between its neighbours; at the end one mean gap later. Channels: as the event before it."""


class Replace(Payload):
    """Another event at the same time and place."""

    op: Literal["replace"]
    position: Position
    event: Name


class Swap(Payload):
    """Two events exchange their places; times and channels stay where they are."""

    op: Literal["swap"]
    first: Position
    second: Position


Edit = Annotated[Remove | Insert | Replace | Swap, Field(discriminator="op")]


class WhatIfRequest(Payload):
    """A sequence and what to change in it; each edit speaks of positions after the edits before it."""

    sequence: Sequence
    edits: Annotated[list[Edit], Field(min_length=1, max_length=limits.EDITS)]
    boundary: bool = False
    """Explain the sequence before and after, too."""
    settings: Settings = Settings()
