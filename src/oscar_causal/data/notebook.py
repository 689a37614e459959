"""What a notebook shows of an object: a caption and a small table, everything escaped."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

SHOWN_ROWS = 8
SHOWN_NAMES = 6


def html_table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], note: str = "") -> str:
    """A table as HTML.

    >>> html_table("a < b", ["x"], [[0.25]])
    '<table><caption>a &lt; b</caption><thead><tr><th>x</th></tr></thead><tbody><tr><td>0.25</td></tr></tbody></table>'
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{escape(_cell(value))}</td>" for value in row) + "</tr>" for row in rows)
    table = f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"{table}<p>{escape(note)}</p>" if note else table


def short_list(names: Sequence[str]) -> str:
    """The first names of a list, and how many there are.

    >>> short_list(["A", "B"]), short_list(list("ABCDEFGH"))
    ('A, B', 'A, B, C, D, E, F, … (8)')
    """
    shown = ", ".join(names[:SHOWN_NAMES])
    return shown if len(names) <= SHOWN_NAMES else f"{shown}, … ({len(names):,})"


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
