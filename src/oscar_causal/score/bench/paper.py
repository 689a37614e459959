"""The paper's own numbers (`paper.json`), to stand beside ours, labelled as the paper's."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from oscar_causal.data.folders import read_json


@lru_cache(1)
def paper_numbers() -> dict[str, Any]:
    """Benchmark -> source, settings and rows of the paper; `contradictions` -> what does not fit together in it."""
    return read_json(Path(__file__).with_name("paper.json"))


def paper_cell(bench: str, row: str, *keys: str) -> str:
    """A figure of the paper as it is printed there: `55.26 ± 1.42`, or `–` where it has none.

    >>> paper_cell("table-1", "prefix", "precision"), paper_cell("table-1", "iamb", "precision")
    ('55.26 ± 1.42', '–')
    """
    value: Any = paper_numbers()[bench]["rows"].get(row, {})
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    if value is None:
        return "–"
    return " ± ".join(f"{number:.2f}" for number in value) if isinstance(value, list) else str(value)


def paper_value(bench: str, row: str, key: str) -> tuple[float, float] | None:
    """Mean and sd of a figure of the paper (sd 0 where it gives none); None where it has no number."""
    value = paper_numbers()[bench]["rows"].get(row, {}).get(key)
    return (float(value[0]), float(value[1]) if len(value) > 1 else 0.0) if isinstance(value, list) else None
