"""The examples in docstrings of rule recovery and label interplay are true."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import oscar_causal

FOLDER = Path(oscar_causal.__file__).parent / "graph"
MODULES = [f"rules.{file.stem}" for file in sorted((FOLDER / "rules").glob("[!_]*.py"))]


@pytest.mark.parametrize("name", [*MODULES, "interplay", "rule_recovery", "stratified"])
def test_examples(name: str) -> None:
    assert doctest.testmod(import_module(f"oscar_causal.graph.{name}")).failed == 0
