"""The examples in the docstrings of `score` run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import oscar_causal.score

NAMES = [item.name for item in pkgutil.walk_packages(oscar_causal.score.__path__, "oscar_causal.score.")]


@pytest.mark.parametrize("name", NAMES)
def test_examples_run(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
