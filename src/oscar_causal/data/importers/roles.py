"""Which column plays which part: named by the user, or found by its usual names, or one clear line.

The format's own name (`sequence_id`, `time`, `event`) wins; otherwise exactly one of the usual names must be there,
in any case. What belongs to a whole sequence (subject, start, static) may stand in the event or in the label table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from oscar_causal.data.importers.long_table import LongTable
from oscar_causal.data.importers.options import ImportOptions
from oscar_causal.data.schema import RESERVED
from oscar_causal.errors import DataError, UsageError

SEQUENCE = ("sequence_id", "seq_id", "case_id", "vin", "car", "id")
TIME = ("time", "t", "timestamp")
EVENT = ("event", "code", "activity", "alarm_id")
LABEL = ("label", "outcome", "diagnosis", "pattern", "target")
LABEL_TIME = ("label_time", *TIME)


@dataclass(frozen=True)
class Attribute:
    """A column with one value per sequence; `key` is "subject", "start" or "static:NAME"."""

    key: str
    column: str


@dataclass(frozen=True)
class EventRoles:
    """The columns of the event tables."""

    sequence: str
    time: str
    event: str
    channels: tuple[str, ...]
    attributes: tuple[Attribute, ...]

    @property
    def columns(self) -> list[str]:
        """Every column that is read, once."""
        attributes = [attribute.column for attribute in self.attributes]
        return list(dict.fromkeys([self.sequence, self.time, self.event, *self.channels, *attributes]))


@dataclass(frozen=True)
class LabelRoles:
    """The columns of the label table: long when `label` is set, else wide."""

    sequence: str
    label: str | None
    wide: tuple[str, ...]
    wide_guessed: bool
    time: str | None
    labelled: str | None
    attributes: tuple[Attribute, ...]

    @property
    def columns(self) -> list[str]:
        """Every column that is read, once."""
        single = [self.sequence, self.label, self.time, self.labelled]
        attributes = [attribute.column for attribute in self.attributes]
        return list(dict.fromkeys([name for name in [*single, *self.wide, *attributes] if name is not None]))


def event_roles(tables: Sequence[LongTable], labels: LongTable | None, options: ImportOptions) -> EventRoles:
    """Roles in the event tables; all of them must have the same columns as the first, as far as they are used."""
    first = tables[0]
    for name in options.channels:
        if name in RESERVED:
            raise UsageError(f"--channels {name}: this name is taken by the dataset format; rename the column")
    wanted = (
        (options.sequence_column, SEQUENCE, "the sequence", "--sequence-column"),
        (options.time_column, TIME, "the time", "--time-column"),
        (options.event_column, EVENT, "the event", "--event-column"),
    )
    _refuse_many_missing(first, wanted)
    sequence, time, event = (find(first, *part) for part in wanted)
    roles = EventRoles(
        sequence,
        time,
        event,
        options.channels,
        tuple(item for item in wanted_attributes(first, options) if _here(item, first, labels)),
    )
    _refuse_double_use(first, [roles.sequence, roles.time, roles.event])
    for table in tables:
        for name in roles.columns:
            require(table, name)
    return roles


def label_roles(table: LongTable, events: LongTable, roles: EventRoles, options: ImportOptions) -> LabelRoles:
    """Roles in the label table; attributes found in the event tables are not looked for here."""
    sequence = roles.sequence if roles.sequence in table.header else None
    sequence = sequence or find(table, None, SEQUENCE, "the sequence", "--sequence-column")
    missing = [item for item in wanted_attributes(events, options) if item not in roles.attributes]
    attributes = tuple(missing)
    label = None if options.label_columns else _optional(table, options.label_column, LABEL, "--label-column")
    time = _optional(table, options.label_time_column, LABEL_TIME, "--label-time-column")
    if label is not None:
        labelled = "labelled" if "labelled" in table.header else None
        return LabelRoles(sequence, label, (), False, time, labelled, attributes)
    taken = {sequence, time, *(item.column for item in attributes)}
    explicit = options.label_columns not in ((), ("*",))
    wide = options.label_columns if explicit else tuple(name for name in table.header if name not in taken)
    for name in wide:
        require(table, name)
    if not wide:
        raise DataError(
            f"{table.name}: expected a column {LABEL[0]!r} or one 0/1 column per label, got {listed(table.header)}"
        )
    return LabelRoles(sequence, None, wide, not options.label_columns, time, None, attributes)


def wanted_attributes(first: LongTable, options: ImportOptions) -> list[Attribute]:
    """What is asked for per sequence; `subject_id` is taken without asking."""
    subject = options.subject_column or ("subject_id" if "subject_id" in first.header else None)
    found = [Attribute("subject", subject)] if subject else []
    found += [Attribute("start", options.start_column)] if options.start_column else []
    return found + [Attribute(f"static:{name}", name) for name in options.static]


def find(table: LongTable, named: str | None, usual: Sequence[str], what: str, option: str) -> str:
    """The column for `what`; none, or more than one that it could be, is a DataError."""
    if named is not None:
        return require(table, named)
    found = _matches(table, usual)
    if len(found) == 1:
        return found[0]
    if found:
        raise DataError(f"{table.name}: expected one column for {what}, got {listed(found)}: choose one with {option}")
    hint = _delimiter_hint(table.header)
    raise DataError(
        f"{table.name}: expected a column for {what} ({', '.join(usual)}), got {listed(table.header)}: "
        f"{hint or 'name it with ' + option}"
    )


def _refuse_many_missing(table: LongTable, wanted: Sequence[tuple[str | None, Sequence[str], str, str]]) -> None:
    """Columns that are neither named nor found are told in one go."""
    missing = [part for part in wanted if part[0] is None and not _matches(table, part[1])]
    if len(missing) > 1 and not _delimiter_hint(table.header):
        parts = ", ".join(f"{what} ({', '.join(usual)})" for _, usual, what, _ in missing)
        options = ", ".join(option for *_, option in missing)
        raise DataError(
            f"{table.name}: expected columns for {parts}, got {listed(table.header)}: name them with {options}"
        )


def require(table: LongTable, name: str) -> str:
    """`name` if the table has this column."""
    if name not in table.header:
        raise DataError(f"{table.name}: expected a column {name!r}, got {listed(table.header)}")
    return name


def listed(names: Sequence[str], most: int = 12) -> str:
    """Column names as messages show them.

    >>> listed(["a", "b"]), listed([])
    ("'a', 'b'", 'no columns')
    """
    shown = ", ".join(repr(name[:60]) for name in names[:most])
    return (shown + (f" and {len(names) - most} more" if len(names) > most else "")) or "no columns"


def _matches(table: LongTable, usual: Sequence[str]) -> list[str]:
    known = getattr(table, "known", {}).get(usual[0])  # formats that name their columns themselves
    if known in table.header:
        return [known]
    if usual[0] in table.header:
        return [usual[0]]
    return [name for name in table.header if name.strip().lower() in usual]


def _optional(table: LongTable, named: str | None, usual: Sequence[str], option: str) -> str | None:
    if named is not None:
        return require(table, named)
    found = _matches(table, usual)
    if len(found) > 1:
        raise DataError(f"{table.name}: expected one of {listed(found)}, got all: choose one with {option}")
    return found[0] if found else None


def _here(item: Attribute, first: LongTable, labels: LongTable | None) -> bool:
    if item.column in first.header:
        return True
    if labels is not None and item.column in labels.header:
        return False
    where = f" nor {labels.name}" if labels is not None else ""
    raise DataError(f"{first.name}{where}: expected a column {item.column!r}, got {listed(first.header)}")


def _refuse_double_use(table: LongTable, names: Sequence[str]) -> None:
    for name in names:
        if list(names).count(name) > 1:
            raise UsageError(f"{table.name}: column {name!r} cannot be the sequence, the time and the event at once")


def _delimiter_hint(header: Sequence[str]) -> str:
    for delimiter in (";", "\t", "|", ","):
        if len(header) == 1 and delimiter in header[0]:
            return f"is it --delimiter {delimiter!r}?"
    return ""
