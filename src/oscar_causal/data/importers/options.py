"""What an import can be told, and what it tells afterwards."""

from __future__ import annotations

import codecs
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from oscar_causal.data.importers.rejects import BadRow
from oscar_causal.errors import UsageError

TIME_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
"""Seconds in one unit of a numeric time."""


@dataclass(frozen=True)
class ImportOptions:
    """How long tables become sequences. Columns left out are found by name (`roles`).

    >>> ImportOptions(sequence_column="Fahrzeug", channels=("Kilometerstand",), decimal=",").delimiter is None
    True
    """

    sequence_column: str | None = None
    """Which sequence a row belongs to; found as sequence_id, seq_id, case_id, vin, car or id."""

    time_column: str | None = None
    """When the event happened; found as time, t or timestamp."""

    event_column: str | None = None
    """What happened; found as event, code, activity or alarm_id."""

    subject_column: str | None = None
    """The car, the patient: sequences of one subject are never split. Found as subject_id; else the sequence itself."""

    start_column: str | None = None
    """ISO timestamp of time zero of each sequence; never guessed."""

    static: tuple[str, ...] = ()
    """Columns known at the start of a sequence (age, variant); an empty cell means not known."""

    channels: tuple[str, ...] = ()
    """Numeric columns that go with each event (mileage); an empty cell means missing."""

    labels: Path | None = None
    """The table of outcomes: long (sequence, label[, time]) or wide (sequence, one 0/1 column per label)."""

    label_column: str | None = None
    """The label's name in a long table; found as label, outcome, diagnosis, pattern or target."""

    label_columns: tuple[str, ...] = ()
    """The 0/1 columns of a wide table; ("*",) means all that are nothing else."""

    label_time_column: str | None = None
    """When the label came, on the clock of the events; found as label_time, time, t or timestamp."""

    gap: float | None = None
    """Leave out events closer to the sequence's earliest label than this (seconds), and all at or after it."""

    time_unit: str | None = None
    """us, ms, s, m, h, d for numbers, `timestamp` for ISO text; None: the first time decides, numbers are seconds."""

    keep_origin: bool = False
    """Numeric times are already seconds (units) from the start; otherwise the first event of a sequence is at 0."""

    skip_bad_rows: bool = False
    """Put bad rows into rejected.csv and go on; otherwise the first bad row is an error."""

    names: Path | None = None
    """Descriptions of events and labels: a JSON object, or a table with the columns name and description."""

    delimiter: str | None = None
    """Between the cells of a text table; None: tab for .tsv, else the comma, or the ; tab or | of a header without."""

    decimal: str = "."
    """Before the fraction of a number in a text table: a point, or a comma."""

    encoding: str = "utf-8"
    """Of text tables."""

    format: str | None = None
    """tables, meds, xes, ocel, easytpp or hf; None: seen from the first file (`formats`)."""

    object_type: str | None = None
    """OCEL: the type of objects whose lives are the sequences."""

    split: str | None = None
    """MEDS, Hugging Face: only sequences of this split."""

    chunk_mb: int = 48
    """About how much of the input is grouped in memory at a time."""

    def __post_init__(self) -> None:
        units = (*TIME_UNITS, "timestamp")
        if self.time_unit is not None and self.time_unit not in units:
            raise UsageError(f"--time-unit: expected one of {', '.join(units)}, got {self.time_unit!r}")
        if self.gap is not None and not (math.isfinite(self.gap) and self.gap >= 0):
            raise UsageError(f"--gap: expected a number of seconds, 0 or more, got {self.gap}")
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '"\r\n\0'):
            raise UsageError(f"--delimiter: expected one character, got {self.delimiter!r}")
        if self.decimal not in (".", ","):
            raise UsageError(f"--decimal: expected '.' or ',', got {self.decimal!r}")
        if self.chunk_mb < 1:
            raise UsageError(f"chunk_mb: expected at least 1, got {self.chunk_mb}")
        if self.label_column and self.label_columns:
            raise UsageError("--label-column (long table) and --label-columns (wide table) exclude each other")
        self._refuse_orphans()
        try:
            codecs.lookup(self.encoding)
        except LookupError:
            raise UsageError(f"--encoding: expected the name of a text encoding, got {self.encoding!r}") from None

    def _refuse_orphans(self) -> None:
        if self.labels is not None:
            return
        for name in ("label_column", "label_columns", "label_time_column", "gap"):
            if getattr(self, name) not in (None, ()):
                option = "--" + name.replace("_", "-")
                raise UsageError(f"{option}: expected together with --labels FILE, got no label table")


@dataclass(frozen=True)
class ImportSummary:
    """What came out of an import."""

    out: str
    sequences: int
    subjects: int
    events: int
    event_types: int
    labels: dict[str, int]
    """Label -> number of sequences that carry it."""
    rows: int
    """Data rows read from the event tables, bad ones included."""
    rejected: int
    """Rows in rejected.csv, of event and label tables."""
    first_rejected: tuple[BadRow, ...]
    dropped_by_gap: int
    """Sequences left without events by --gap; they are named in rejected.csv but not counted as rejected rows."""
    events_left_out: int
    """Events left out by --gap."""
    digest: str

    def to_json(self) -> dict[str, Any]:
        """Everything as plain JSON values."""
        return asdict(self)
