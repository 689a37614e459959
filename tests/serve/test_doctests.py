"""The examples in docstrings of the serve part are true."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import oscar_causal

MODULES = sorted(file.stem for file in (Path(oscar_causal.__file__).parent / "serve").glob("[!_]*.py"))


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    assert doctest.testmod(import_module(f"oscar_causal.serve.{name}")).failed == 0
