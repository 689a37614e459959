"""The scripts import each other as plain modules: put their folder in reach."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

SCRIPTS = str(Path(__file__).resolve().parents[2] / "scripts")


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Import a script by name."""
    monkeypatch.syspath_prepend(SCRIPTS)
    return lambda name: sys.modules.get(name) or import_module(name)
