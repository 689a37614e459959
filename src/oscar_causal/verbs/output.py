"""What every verb shares: JSON on stdout, everything for people on stderr or as a table, progress on long work."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from oscar_causal.data.checksums import log
from oscar_causal.errors import UsageError

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout; progress goes to stderr.")]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing --out.")]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Also what libraries log, and the stack trace of an error.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notes: the result and errors only.")]
OnProgress = Callable[[int, int], None]
"""Called with (done, total) while long work goes on."""


@dataclass
class Volume:
    """How much this process says on stderr; set by the options -v and -q."""

    verbose: bool = False
    quiet: bool = False

    def change(self, *, verbose: bool, quiet: bool) -> None:
        """Raise or lower the voice; asking for both is an error. What was asked for before stays asked for."""
        if (self.verbose or verbose) and (self.quiet or quiet):
            raise UsageError("expected --verbose or --quiet, got both")
        self.verbose, self.quiet = self.verbose or verbose, self.quiet or quiet
        if self.verbose:
            logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s", stream=sys.stderr)


VOLUME = Volume()


def print_note(text: str) -> None:
    """A remark for people on stderr, unless they asked for quiet."""
    if not VOLUME.quiet:
        sys.stderr.write(text + "\n")


TOLD_FROM = 1 << 30
"""Bytes from which on the memory of a short verb is worth a line."""


def print_plan(plan: Any) -> None:
    """The memory plan of a verb that is soon over, where it is large or was cut."""
    if plan.total > TOLD_FROM or plan.pieces:
        print_note(plan.words())


class _Notes(logging.Handler):
    """Keeps what the library logs about folders, each remark once; --verbose shows it at once, with all other logs."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: dict[str, None] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a remark."""
        if not VOLUME.verbose:
            self.texts[record.getMessage()] = None


_NOTES = _Notes()


@contextmanager
def folder_notes() -> Iterator[None]:
    """What was odd about folders (`data.checksums`) is told when the block has ended well; an error stays one line."""
    before = log.level
    _NOTES.texts.clear()
    log.addHandler(_NOTES)
    log.setLevel(logging.INFO)
    try:
        yield
        print_folder_notes()
    finally:
        log.removeHandler(_NOTES)
        log.setLevel(before)


def print_folder_notes() -> None:
    """Tell now what was odd about folders so far, for verbs that do not end by themselves."""
    for text in _NOTES.texts:
        print_note(text)
    _NOTES.texts.clear()


def print_json(value: Any) -> None:
    """The verb's whole stdout under --json."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def print_lines(lines: Iterable[str]) -> None:
    """Plain text for people on stdout."""
    for line in lines:
        sys.stdout.write(line + "\n")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str | None = None) -> None:
    """A table for people on stdout; numbers to the right."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    rows = [[_cell(value) for value in row] for row in rows]
    table = Table(title=title, title_justify="left", header_style="bold")
    for index, name in enumerate(columns):
        numeric = bool(rows) and all(row[index][1] for row in rows)
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(text) for text, _ in row))  # Text: names may look like markup
    Console().print(table)


@contextmanager
def progress_bar(what: str, unit: str) -> Iterator[OnProgress]:
    """A bar with rate and time left on a terminal, a line every ten seconds elsewhere; both on stderr, unless quiet."""
    if VOLUME.quiet:
        yield lambda done, total: None
        return
    if not sys.stderr.isatty():
        yield progress_lines(what, unit)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TextColumn(unit), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def progress_lines(what: str, unit: str) -> OnProgress:
    """A line on stderr every ten seconds, unless quiet; also above the bar of something larger."""
    begun = last = time.monotonic()

    def show(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if VOLUME.quiet or (now - last < 10 and (done < total or now - begun < 10)):
            return
        last = now
        left = (now - begun) * (total - done) / max(done, 1)
        sys.stderr.write(f"{what}: {done:,} of {total:,} {unit}, {left:.0f} s left\n")

    return show


def quiet_numbers(figures: Mapping[str, float]) -> str:
    """Figures in one line for a log."""
    return ", ".join(f"{name.replace('_', ' ')} {value:,.4g}" for name, value in figures.items())


def _cell(value: Any) -> tuple[str, bool]:
    if value is None:
        return "-", True
    if isinstance(value, bool):
        return ("yes" if value else "no"), False
    if isinstance(value, int):
        return f"{value:,}", True
    if isinstance(value, float):
        return f"{value:.3f}", True
    return str(value), False
