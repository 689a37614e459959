"""The examples in docstrings of the data part are true."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import oscar_causal

ROOT = Path(oscar_causal.__file__).parent
MODULES = sorted(
    ".".join(["oscar_causal", *f.relative_to(ROOT).with_suffix("").parts]) for f in ROOT.glob("data/**/*.py")
)


@pytest.mark.parametrize("name", [name for name in MODULES if not name.endswith("__init__")])
def test_examples(name: str) -> None:
    assert doctest.testmod(import_module(name)).failed == 0
