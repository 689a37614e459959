"""How much one client may ask for. Sizes of payloads are fixed and stand in the OpenAPI text; the rest is a setting."""

from __future__ import annotations

from dataclasses import dataclass

from oscar_causal.errors import UsageError

BODY_BYTES = 8 * 2**20
"""Largest request body."""
BODY_SECONDS = 30.0
"""A body that takes longer to arrive is refused."""
NAME_CHARS = 256
"""Longest name of a sequence, subject, event, label or channel."""
EVENTS = 10_000
"""Longest sequence; the model reads its last `max_length` events."""
LABELS = 64
"""Most labels of one sequence or question."""
CONTEXTS = 512
"""Most contexts (N) of one explanation."""
EDITS = 200
"""Most edits of one what-if."""
BATCH_SEQUENCES = 1_000
"""Most sequences of one batch."""
BATCH_EVENTS = 200_000
"""Most events of all sequences of one batch together."""
EVIDENCE_SEQUENCES = 20
"""Most sequences of a batch whose every tested event is told."""
CHANNEL_VALUE = 1e12
"""Largest absolute value of a channel; beyond it a network answers with no number."""
PAGE_ROWS = 100
"""Most rows of one search."""


@dataclass(frozen=True)
class Limits:
    """What the operator decides."""

    queue: int = 128
    """Explanations that may wait; the next one is refused with Retry-After."""
    quick_queue: int = 512
    """Predictions that may wait."""
    deadline: float = 60.0
    """Seconds after which a request is given up."""
    jobs: int = 16
    """Batch jobs kept, finished ones included; the oldest finished one makes room."""
    job_seconds: float = 3600.0
    """Seconds a job may run, and seconds a finished one is kept."""

    def __post_init__(self) -> None:
        for name in ("queue", "quick_queue", "jobs"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name}: expected at least 1, got {getattr(self, name)}")
        for name in ("deadline", "job_seconds"):
            if not 0 < getattr(self, name) < float("inf"):
                raise UsageError(f"{name}: expected seconds above 0, got {getattr(self, name)}")
