"""Running a benchmark: the chosen rows one after the other, each into the ledger as soon as it is measured.

Page and plot are made at the end, however it comes; after a kill `--until 0` makes them from the ledger.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from oscar_causal.data.folders import exclusive, write_text
from oscar_causal.errors import FolderError, UsageError
from oscar_causal.score.bench.ledger import add_row, ledger_path, provenance, read_ledger
from oscar_causal.score.bench.place import Place, ShowProgress, no_progress
from oscar_causal.score.bench.rows import Row
from oscar_causal.score.bench.settings import BenchSettings

Rows = Mapping[str, Mapping[str, Any]]
"""Row -> its figures, in the order of the table."""
Say = Callable[[str], None]
"""Takes a line for people: what is done, and when."""


def say_nothing(line: str) -> None:
    """Nobody listens."""


@dataclass(frozen=True)
class Session:
    """A benchmark at work: its place, its clock, what it says."""

    place: Place
    say: Say = say_nothing
    begun: float = field(default_factory=time.monotonic)

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self.begun

    def late(self) -> bool:
        """Is it too late to begin a row?"""
        until = self.place.settings.until
        return until is not None and self.elapsed >= until


@contextmanager
def at_work(settings: BenchSettings, show: ShowProgress, say: Say) -> Iterator[Session]:
    """A session; no other benchmark may work in the same folder meanwhile."""
    begun = time.monotonic()
    for folder in (settings.out, settings.work_folder):  # better now than after the first row
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FolderError(f"{folder}: expected a folder to write to: {error.strerror}") from error
    with exclusive(settings.work_folder / "lock", what="benchmarking"), closing(Place(settings, show)) as place:
        yield Session(place, say, begun)


@dataclass(frozen=True)
class Bench:
    """One table or figure."""

    name: str
    rows: Callable[[BenchSettings], Mapping[str, Row]]
    """The rows there are, in the order of the table."""
    page: Callable[[Rows], str]
    """Measured rows as a Markdown page."""
    plot: Callable[[Rows, Path], None]
    """Measured rows as a PNG."""

    def __call__(
        self, settings: BenchSettings, show: ShowProgress = no_progress, say: Say = say_nothing
    ) -> dict[str, Any]:
        """Measure the chosen rows; JSON, Markdown and PNG hold all rows measured so far, now or in earlier calls.

        `measured`: rows of this call. `kept`: with `missing`, those that were there. `left_out`: not begun in time.
        """
        chosen = choose_rows(self.rows(settings), settings.rows)
        there = self.there(settings, chosen)  # read in any case: a damaged file is told before the work
        kept, measured = there if settings.missing else [], list[str]()
        try:
            with at_work(settings, show, say) as session:
                if kept and not session.late():
                    kept = self.there(settings, kept, session.place.explained_digest)
                waiting = [name for name in chosen if name not in kept]
                while len(measured) < len(waiting) and not session.late():
                    self.measure(session, waiting[len(measured)])
                    measured.append(waiting[len(measured)])
        finally:
            ledger, files = self.draw(settings)
        return {**ledger, "measured": measured, "kept": kept, "left_out": waiting[len(measured) :], "files": files}

    def measure(self, session: Session, name: str) -> None:
        """Measure one row and add it to the ledger."""
        place, begun = session.place, time.monotonic()
        settings = place.settings
        figures = self.rows(settings)[name].measure(place)
        seconds = time.monotonic() - begun
        made = {**provenance(settings), "whole_seconds": seconds, "explained": place.explained_digest}
        add_row(ledger_path(self.name, settings), self.name, name, {**figures, "provenance": made})
        session.say(f"[{session.elapsed:6.1f} s] {self.name}, {name}: {seconds:.1f} s")

    def there(self, settings: BenchSettings, names: Collection[str], explained: str | None = None) -> list[str]:
        """Those of the rows that the ledger holds, measured with the same settings; any time limit will do that was
        not reached. With `explained`, a digest of sequences: those that were measured on these very sequences."""
        rows, wanted = read_ledger(ledger_path(self.name, settings), self.name)["rows"], settings.to_json()
        whole = {name: rows[name] for name in names if name in rows and not rows[name].get("incomplete_labels")}
        limits = {
            name: row["provenance"]["bench"] | {"time_limit": wanted["time_limit"]} for name, row in whole.items()
        }
        same = [name for name in names if limits.get(name) == wanted]
        return [name for name in same if explained in (None, whole[name]["provenance"].get("explained"))]

    def draw(self, settings: BenchSettings) -> tuple[dict[str, Any], dict[str, str]]:
        """Make the page and the plot of what the ledger holds; the ledger, and the files there are."""
        path = ledger_path(self.name, settings)
        ledger = read_ledger(path, self.name)
        measured = {row: ledger["rows"][row] for row in self.rows(settings) if row in ledger["rows"]}
        if not measured:
            return ledger, {}
        write_text(path.with_suffix(".md"), self.page(measured))
        self.plot(measured, path.with_suffix(".png"))
        return ledger, {kind: str(path.with_suffix(f".{kind}")) for kind in ("json", "md", "png")}


def choose_rows(known: Collection[str], wanted: str | None) -> list[str]:
    """Names that match one of the comma-separated patterns, in the order of the table; each pattern must match one.

    >>> choose_rows(["prefix", "iamb"], "i*")
    ['iamb']
    """
    if wanted is None:
        return list(known)
    patterns = [pattern.strip() for pattern in wanted.split(",") if pattern.strip()]
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in known):
            raise UsageError(f"--rows: expected some of {', '.join(known)}, got {pattern!r}")
    if not patterns:
        raise UsageError(f"--rows: expected some of {', '.join(known)}, got nothing")
    return [name for name in known if any(fnmatchcase(name, pattern) for pattern in patterns)]
