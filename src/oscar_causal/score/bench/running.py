"""Running a benchmark: the chosen rows one after the other, each into the ledger as soon as it is measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from oscar_causal.data.folders import write_text
from oscar_causal.errors import UsageError
from oscar_causal.score.bench.ledger import add_row, ledger_path, provenance
from oscar_causal.score.bench.place import Place, ShowProgress, no_progress
from oscar_causal.score.bench.rows import Row
from oscar_causal.score.bench.settings import BenchSettings

Rows = Mapping[str, Mapping[str, Any]]
"""Row -> its figures, in the order of the table."""


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

    def __call__(self, settings: BenchSettings, show: ShowProgress = no_progress) -> dict[str, Any]:
        """Measure the chosen rows; JSON, Markdown and PNG hold all rows measured so far, now or in earlier calls."""
        known = self.rows(settings)
        chosen = choose_rows(known, settings.rows)
        place = Place(settings, show)
        path = ledger_path(self.name, settings)
        ledger: dict[str, Any] = {}
        for name in chosen:
            begun = time.monotonic()
            figures = known[name].measure(place)
            made = {**provenance(settings), "whole_seconds": time.monotonic() - begun}
            ledger = add_row(path, self.name, name, {**figures, "provenance": made})
            measured = {row: ledger["rows"][row] for row in known if row in ledger["rows"]}
            write_text(path.with_suffix(".md"), self.page(measured))
            self.plot(measured, path.with_suffix(".png"))
        files = {kind: str(path.with_suffix(f".{kind}")) for kind in ("json", "md", "png")}
        return {**ledger, "measured": chosen, "files": files}


def choose_rows(known: Mapping[str, Row], wanted: str | None) -> list[str]:
    """Names that match one of the comma-separated patterns, in the order of the table; each pattern must match one.

    >>> choose_rows({"prefix": None, "iamb": None}, "i*")
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
