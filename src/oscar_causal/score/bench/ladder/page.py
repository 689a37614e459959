"""The ladder as a Markdown page: worlds down, rows across."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oscar_causal.score.bench.ladder.methods import METHODS
from oscar_causal.score.bench.pages import table

Rows = Mapping[str, Mapping[str, Any]]
"""world/seed/row -> figures."""

ABOUT = """\
# The ladder

Each world draws the formula of every label from its seed ([worlds](../worlds.md)); truth is by definition, from the
world's own probabilities. F1 of mean precision and mean recall over pairs of sequence and label with a cause, in
percent, with its 95 % interval over resampled sequences. A pair for which a method returns nothing has precision 0 and
recall 0. *True P*: the world's own probabilities stand in for the trained label model, which tells a deaf model
from a weak estimator. Slopes are then exact averages over 128 removals, charged as the gradient of a network: an upper
bound. *prefix* asks the formula as if the record ended at each event; the future is not integrated out.
"""


def to_page(rows: Rows) -> str:
    """F1 of every row on every world, then false alarms and passes."""
    worlds = list(dict.fromkeys(key.rsplit("/", 1)[0] for key in rows))
    names = [name for name in METHODS if any(key.endswith(f"/{name}") for key in rows)]
    parts = [ABOUT]
    for title, cell in (
        ("F1", _f1),
        ("False alarms: pairs without a cause for which one is named, in percent", _alarms),
        ("Forward passes of the label model for a sequence", _passes),
    ):
        lines = [[world, *(cell(rows.get(f"{world}/{name}")) for name in names)] for world in worlds]
        parts += [f"## {title}\n", *table(["world/seed", *names], lines), ""]
    return "\n".join(parts)


def _f1(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return ""
    return f"{100 * row['f1']:.1f} ({100 * row['f1_low']:.1f} to {100 * row['f1_high']:.1f})"


def _alarms(row: Mapping[str, Any] | None) -> str:
    return "" if row is None or row["false_alarms"] is None else f"{100 * row['false_alarms']:.0f}"


def _passes(row: Mapping[str, Any] | None) -> str:
    return "" if row is None or row["passes"] is None else f"{row['passes']:.0f}"
