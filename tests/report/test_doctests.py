"""The examples in docstrings of graphs and reports are true."""

from __future__ import annotations

import doctest
from importlib import import_module

import pytest


@pytest.mark.parametrize(
    "name",
    [
        "graph.boundary_graph",
        "graph.files",
        "graph.formats",
        "report.drawing",
        "report.entries",
        "report.fleet",
        "report.page",
    ],
)
def test_examples(name: str) -> None:
    assert doctest.testmod(import_module(f"oscar_causal.{name}")).failed == 0
