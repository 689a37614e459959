"""The mutation job: every mutant still applies to today's sources, and its record leaves none alive without a proof."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
Script = Callable[[str], ModuleType]


def test_every_mutant_applies_and_has_tests(script: Script) -> None:
    job, mutants = script("mutants"), script("mutant_list").MUTANTS
    assert len(mutants) >= 30
    assert [name for name, count in Counter(mutant.name for mutant in mutants).items() if count > 1] == []
    for mutant in mutants:
        source = (ROOT / job.PACKAGE / mutant.module).read_text(encoding="utf-8")
        compile(job.mutated(source, mutant), mutant.module, "exec")
        assert all((ROOT / name.partition("::")[0]).is_file() for name in mutant.tests), mutant.name


def test_a_mutant_changes_one_thing_in_one_function(script: Script) -> None:
    job, mutant = script("mutants"), script("mutant_list").Mutant
    source = "class A:\n    def f(self, x):\n        return x + 1\n\ndef f(x):\n    return x + 1\n"
    change = mutant("a.py", "A.f", "minus", "x + 1", "x - 1", ("tests/test_a.py",))
    assert job.mutated(source, change).split() == source.replace("x + 1", "x - 1", 1).split()
    for function, old in (("A.f", "x + 2"), ("A.g", "x + 1"), ("g", "x + 1")):
        with pytest.raises(SystemExit, match="expected"):
            job.mutated(source, mutant("a.py", function, "minus", old, "x - 1", ()))
    with pytest.raises(SystemExit, match="found it 2 times"):
        job.mutated("def f(x):\n    return x + x\n", mutant("a.py", "f", "one", "x", "1", ()))
