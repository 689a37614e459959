"""The examples in docstrings are true: every module that has some, in every folder."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import oscar_causal

ROOT = Path(oscar_causal.__file__).parent
NAMES = [
    ".".join(["oscar_causal", *file.relative_to(ROOT).with_suffix("").parts]).removesuffix(".__init__")
    for file in sorted(ROOT.rglob("*.py"))
    if ">>> " in file.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("name", NAMES)
def test_examples(name: str) -> None:
    found = doctest.testmod(import_module(name))
    assert found.attempted > 0
    assert found.failed == 0


def test_no_folder_is_left_out() -> None:
    folders = {name.rpartition(".")[0].removeprefix("oscar_causal.") for name in NAMES}
    assert {"data", "density", "discovery", "discovery.classical", "graph", "graph.rules", "report", "serve"} <= folders
