"""The tutorial is followed to its end, line by line, with small budgets."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).resolve().parents[1] / "docs" / "tutorial.md"
BUDGETS = {
    "synth": ["--sequences", "240", "--workers", "1"],
    "train": ["--steps", "2", "--batch-tokens", "2048"],
    "discover": ["--contexts", "36", "--workers", "1"],
    "population": ["--looks", "1", "--contexts", "36", "--no-rules"],
    "baseline": ["--workers", "1"],
}
"""What the test adds to a verb: less of everything."""


def lines() -> list[list[str]]:
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [shlex.split(line) for block in blocks for line in block.splitlines()]


def test_tutorial(oscar: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for words in lines():
        assert words[0] == "oscar"
        ran = oscar(*words[1:], *BUDGETS.get(words[1], []))
        assert ran.code == 0, f"{' '.join(words)}: {ran.err}"
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {"fleet", "model", "causes", "page.html", "fleet.png", "population", "judged", "boundaries"}
