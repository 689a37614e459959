"""docs/results: every file is in the index, with its commit, and what pages cite is there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results"
INDEX = RESULTS / "README.md"
LOG = ROOT / "docs" / "lab-log.md"
"""A record: it names files as they were when it was written; the history has them."""
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in INDEX.read_text(encoding="utf-8").splitlines()
    if line.startswith("|") and "](" in line
]


def files_of(row: list[str]) -> list[str]:
    return re.findall(r"\]\(([^)]+)\)", row[-1])


def commits_in(value: Any) -> set[str]:
    """Every commit that a JSON file names, at any depth."""
    if isinstance(value, dict):
        own = {value["commit"]} if isinstance(value.get("commit"), str) else set()
        own |= set(value["commits"].values()) if isinstance(value.get("commits"), dict) else set()
        return own.union(*(commits_in(part) for part in value.values()))
    return set().union(*(commits_in(part) for part in value)) if isinstance(value, list) else set()


def test_the_index_names_every_file_once_and_no_other() -> None:
    named = [name for row in ROWS for name in files_of(row)]
    assert sorted(named) == sorted(path.name for path in RESULTS.iterdir() if path != INDEX)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_the_index_has_the_commit_that_the_file_has(row: list[str]) -> None:
    assert len(row) == 5
    found = set().union(
        *(commits_in(json.loads((RESULTS / name).read_text())) for name in files_of(row) if name.endswith(".json"))
    )
    known = {text[:7] for text in found if text != "unknown"}
    if row[2] == "row by row":
        assert known
    else:
        assert set(re.findall(r"\b[0-9a-f]{7}\b", row[2])) == known
        assert row[2].startswith("not recorded") != bool(known)


def test_what_pages_cite_exists() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        if page != LOG and RESULTS not in page.parents:
            for name in re.findall(r"\bresults/([\w.-]+\.(?:json|md|png))", page.read_text(encoding="utf-8")):
                assert (RESULTS / name).exists(), f"{page.name}: {name}"
